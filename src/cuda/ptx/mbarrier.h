/* These functions wrap PTX instructions for mbarriers, which are barriers in shared memory (PTX ISA
 * 8.7, section 9.7.13.15). Each function is one instruction. Addresses are 32-bit addresses in
 * shared memory (ptx/address.h). */
#ifndef BSMM_CUDA_PTX_MBARRIER_H
#define BSMM_CUDA_PTX_MBARRIER_H

#include <stdint.h>

/* PTX ISA 9.7.13.15.9 "mbarrier.init": initializes an mbarrier. `count` arrivals complete each of
 * its phases. */
static __device__ __forceinline__ void ptx_mbarrier_init(uint32_t barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/* PTX ISA 9.7.13.15.13 "mbarrier.arrive" with 9.7.13.15.12 "expect_tx": arrives at the mbarrier
 * once, and adds `bytes` to the number of bytes for which its current phase waits. The phase
 * completes only when copies have written all of these bytes. */
static __device__ __forceinline__ void ptx_mbarrier_arrive_expect(uint32_t barrier,
                                                                  uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* PTX ISA 9.7.13.15.13 "mbarrier.arrive": arrives at an mbarrier of this thread block. */
static __device__ __forceinline__ void ptx_mbarrier_arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* PTX ISA 9.7.13.15.13 "mbarrier.arrive": arrives at an mbarrier of any thread block of the
 * cluster. ptx_mapa makes the address. The qualifier .release.cluster would wait for all memory
 * traffic of this thread, so it is left out. The arrival may therefore only signal that reads have
 * completed, and not that writes are visible. */
static __device__ __forceinline__ void ptx_mbarrier_arrive_cluster(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* PTX ISA 9.7.13.15.13 "mbarrier.arrive" with .release.cluster: arrives at an mbarrier of any
 * thread block of the cluster, like ptx_mbarrier_arrive_cluster. Threads of the cluster that have
 * waited for the mbarrier also see what this thread has written and seen before the arrival. */
static __device__ __forceinline__ void ptx_mbarrier_arrive_release_cluster(uint32_t barrier) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier)
                 : "memory");
}

/* PTX ISA 9.7.13.15.16 "mbarrier.try_wait": returns nonzero if the mbarrier's phase with this
 * parity has completed. The hardware may suspend the thread for a while. */
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

/* PTX ISA "fence.mbarrier_init": makes initialized mbarriers visible to the cluster. */
static __device__ __forceinline__ void ptx_fence_mbarrier_init(void) {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

#endif
