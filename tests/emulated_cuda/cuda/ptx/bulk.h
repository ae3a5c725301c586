#ifndef BSMM_CUDA_PTX_BULK_H
#define BSMM_CUDA_PTX_BULK_H

static inline void ptx_bulk_init(uint32_t barrier, uint32_t count) {
    emulated_mbarrier_init(barrier, count);
}
static inline void ptx_bulk_fence_init(void) {}
static inline void ptx_bulk_expect(uint32_t barrier, uint32_t bytes) {
    emulated_mbarrier_arrive(barrier, bytes);
}
static inline void ptx_bulk_arrive(uint32_t barrier) {
    emulated_mbarrier_arrive(barrier, 0);
}
static inline void ptx_bulk_copy(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier) {
    assert(to % 16 == 0 && uintptr_t(from) % 16 == 0 && bytes % 16 == 0);
    emulated_later([=] {
        memcpy(emulated_pointer(to), from, bytes);
        emulated_mbarrier_complete(barrier, bytes);
    });
}
static inline uint32_t ptx_bulk_try_wait(uint32_t barrier, uint32_t parity) {
    return emulated_mbarrier_passed(barrier, parity);
}

#endif
