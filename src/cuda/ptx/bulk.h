/* These functions wrap PTX instructions for bulk copies to shared memory, and for the mbarriers in
 * shared memory that count the copied bytes. The instructions require sm_90. */
#ifndef BSMM_CUDA_PTX_BULK_H
#define BSMM_CUDA_PTX_BULK_H

#include <stdint.h>

/* PTX ISA 9.7.13.15.9 "mbarrier.init": initializes an mbarrier. `count` arrivals complete each of
 * its phases. */
static __device__ __forceinline__ void ptx_bulk_init(uint32_t barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/* PTX ISA "fence.mbarrier_init": makes initialized mbarriers visible to other threads and to bulk
 * copies. Call it before they use the mbarriers. */
static __device__ __forceinline__ void ptx_bulk_fence_init(void) {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* PTX ISA 9.7.13.15.13 "mbarrier.arrive": arrives once. The current phase then also waits until
 * copies have written `bytes` bytes. */
static __device__ __forceinline__ void ptx_bulk_expect(uint32_t barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* PTX ISA 9.7.13.15.13 "mbarrier.arrive": arrives once. For threads that have waited for the
 * mbarrier, this thread's earlier reads have completed. */
static __device__ __forceinline__ void ptx_bulk_arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* PTX ISA 9.7.9.25.4.1 "cp.async.bulk": copies `bytes` bytes from global to shared memory. The
 * mbarrier counts the bytes that have arrived. `bytes` must be a multiple of 16, and both addresses
 * must be aligned to 16 bytes. */
static __device__ __forceinline__ void ptx_bulk_copy(uint32_t to, const void *from, uint32_t bytes,
                                                     uint32_t barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
}

/* PTX ISA 9.7.13.15.16 "mbarrier.try_wait": returns nonzero if the mbarrier's phase with this
 * parity has completed. */
static __device__ __forceinline__ uint32_t ptx_bulk_try_wait(uint32_t barrier, uint32_t parity) {
    uint32_t done;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done;
}

#endif
