/* Bulk copies to shared memory, and the barrier in shared memory that counts their bytes. sm_90. */
#ifndef BSMM_CUDA_PTX_BULK_H
#define BSMM_CUDA_PTX_BULK_H

#include <stdint.h>

/* PTX ISA 9.7.13.15.9 "mbarrier.init". */
static __device__ __forceinline__ void ptx_bulk_init(uint32_t barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/* PTX ISA 9.7.13.5 "fence.mbarrier_init": before others, bulk copies among them, use it. */
static __device__ __forceinline__ void ptx_bulk_fence_init(void) {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* PTX ISA 9.7.13.15.13 "mbarrier.arrive": once, and so many bytes are to come. */
static __device__ __forceinline__ void ptx_bulk_expect(uint32_t barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* PTX ISA 9.7.13.15.13 "mbarrier.arrive": once; what was read before has been read. */
static __device__ __forceinline__ void ptx_bulk_arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* PTX ISA 9.7.9.25.4.1 "cp.async.bulk": bytes a multiple of 16, both addresses aligned to 16. */
static __device__ __forceinline__ void ptx_bulk_copy(uint32_t to, const void *from, uint32_t bytes,
                                                     uint32_t barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
}

/* PTX ISA 9.7.13.15.16 "mbarrier.try_wait": whether the phase of that parity is over. */
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
