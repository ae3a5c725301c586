#ifndef BSMM_CUDA_PTX_TMA_H
#define BSMM_CUDA_PTX_TMA_H

static inline void ptx_tma_prefetch_map(const void *) {}
static inline void ptx_tma_load_multicast(uint32_t to, const void *map, int32_t x, int32_t y,
                                          uint32_t barrier, uint16_t mask) {
    assert(to % 128 == 0);
    for (uint32_t rank = 0; mask >> rank; rank++) {
        if (!(mask >> rank & 1)) continue;
        emulated_later([=] {
            emulated_map_load(map, x, y, emulated_mapped(to, rank));
            emulated_mbarrier_complete(emulated_mapped(barrier, rank), emulated_map_bytes(map));
        });
    }
}
static inline void ptx_tma_load(uint32_t to, const void *map, int32_t x, int32_t y,
                                uint32_t barrier) {
    ptx_tma_load_multicast(to, map, x, y, barrier, uint16_t(1 << emulated_rank()));
}
static inline void ptx_tma_store(const void *map, uint32_t from, int32_t x, int32_t y) {
    assert(from % 128 == 0);
    emulated_push(EMULATED_STORES, [=] { emulated_map_store(map, x, y, from); });
}
static inline void ptx_tma_commit(void) {
    emulated_commit(EMULATED_STORES);
}
#define PTX_TMA_WAIT_READ(pending) emulated_wait_groups(EMULATED_STORES, pending)
#define PTX_TMA_WAIT(pending)      emulated_wait_groups(EMULATED_STORES, pending)

#endif
