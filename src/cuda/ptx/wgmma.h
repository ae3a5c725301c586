/* The warpgroup's matrix product: PTX ISA 8.7, section 9.7.15. One instruction a function. The
 * product itself is in wgmma_one.h. */
#ifndef BSMM_CUDA_PTX_WGMMA_H
#define BSMM_CUDA_PTX_WGMMA_H

#include <stdint.h>

/* 9.7.15.7.1 wgmma.fence: registers are ready for the products that follow. */
static __device__ __forceinline__ void ptx_wgmma_fence(void) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* 9.7.15.7.2 wgmma.commit_group. */
static __device__ __forceinline__ void ptx_wgmma_commit(void) {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* 9.7.15.7.3 wgmma.wait_group: all but the `pending` (a literal) youngest groups are done. */
#define PTX_WGMMA_WAIT(pending)                                                                    \
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory")

/* 9.7.15.5.1.2 matrix descriptor of a K-major tile with rows of 128 bytes, swizzled by 128 bytes,
 * eight rows after eight rows (stride 1024 bytes), at a shared-window address. Adding n to the
 * descriptor moves it by 16 n bytes. */
static __device__ __forceinline__ uint64_t ptx_wgmma_descriptor(uint32_t address) {
    const uint64_t stride = 1024 >> 4, swizzle_128 = 1;
    return (uint64_t)((address & 0x3FFFF) >> 4) | (stride << 32) | (swizzle_128 << 62);
}

#endif
