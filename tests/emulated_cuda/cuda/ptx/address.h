#ifndef BSMM_CUDA_PTX_ADDRESS_H
#define BSMM_CUDA_PTX_ADDRESS_H

static inline uint32_t ptx_shared_address(const void *pointer) {
    return emulated_address(pointer);
}
static inline uint32_t ptx_mapa(uint32_t address, uint32_t rank) {
    return emulated_mapped(address, rank);
}
static inline void ptx_cluster_arrive(void) {
    emulated_cluster_arrive();
}
static inline void ptx_cluster_wait(void) {
    emulated_cluster_wait();
}
static inline void ptx_barrier_sync(uint32_t id, uint32_t threads) {
    emulated_barrier(id, threads);
}
static inline uint32_t ptx_elect(void) {
    return emulated_now->lane == 0;
}
#define PTX_REGISTERS_MORE(count) ((void)0)
#define PTX_REGISTERS_LESS(count) ((void)0)
static inline void ptx_fence_proxy_async(void) {}

#endif
