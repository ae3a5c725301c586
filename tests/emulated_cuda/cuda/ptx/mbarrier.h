#ifndef BSMM_CUDA_PTX_MBARRIER_H
#define BSMM_CUDA_PTX_MBARRIER_H

static inline void ptx_mbarrier_init(uint32_t barrier, uint32_t count) {
    emulated_mbarrier_init(barrier, count);
}
static inline void ptx_mbarrier_arrive_expect(uint32_t barrier, uint32_t bytes) {
    emulated_mbarrier_arrive(barrier, bytes);
}
static inline void ptx_mbarrier_arrive(uint32_t barrier) {
    emulated_mbarrier_arrive(barrier, 0);
}
static inline void ptx_mbarrier_arrive_cluster(uint32_t barrier) {
    emulated_mbarrier_arrive(barrier, 0);
}
static inline uint32_t ptx_mbarrier_try_wait(uint32_t barrier, uint32_t parity) {
    return emulated_mbarrier_passed(barrier, parity);
}
static inline void ptx_fence_mbarrier_init(void) {}

#endif
