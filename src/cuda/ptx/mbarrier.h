/* Memory barriers in shared memory: PTX ISA 8.7, section 9.7.13.15. One instruction a function.
 * Addresses are 32-bit shared-window addresses (ptx/address.h). */
#ifndef BSMM_CUDA_PTX_MBARRIER_H
#define BSMM_CUDA_PTX_MBARRIER_H

#include <stdint.h>

/* 9.7.13.15.9 mbarrier.init: `count` arrivals complete a phase. */
static __device__ __forceinline__ void ptx_mbarrier_init(uint32_t barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/* 9.7.13.15.13 mbarrier.arrive with 9.7.13.15.12 expect_tx: one arrival, and `bytes` to come. */
static __device__ __forceinline__ void ptx_mbarrier_arrive_expect(uint32_t barrier,
                                                                  uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* 9.7.13.15.13 mbarrier.arrive on this block's barrier. */
static __device__ __forceinline__ void ptx_mbarrier_arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* 9.7.13.15.13 mbarrier.arrive on a barrier anywhere in the cluster (ptx_mapa's address). Without
 * .release.cluster, which would wait for this thread's whole memory traffic: what is released here
 * are reads that have ended. */
static __device__ __forceinline__ void ptx_mbarrier_arrive_cluster(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* 9.7.13.15.16 mbarrier.try_wait: whether the phase of this parity has completed; may suspend the
 * thread for a while. */
static __device__ __forceinline__ uint32_t ptx_mbarrier_try_wait(uint32_t barrier,
                                                                 uint32_t parity) {
    uint32_t done;
    asm volatile("{ .reg .pred p;\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done;
}

/* 9.7.13.4 fence.mbarrier_init: inits are visible to the cluster. */
static __device__ __forceinline__ void ptx_fence_mbarrier_init(void) {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

#endif
