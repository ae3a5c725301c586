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

/* The same of a K-major tile as it lies without swizzle: 8 rows of 16 bytes after each other;
 * `along` bytes from there to the next 16 along K, `across` to the next 8 rows. */
static __device__ __forceinline__ uint64_t ptx_wgmma_descriptor_plain(uint32_t address,
                                                                      uint32_t along,
                                                                      uint32_t across) {
    return (uint64_t)((address & 0x3FFFF) >> 4) | (uint64_t)(along >> 4) << 16 |
           (uint64_t)(across >> 4) << 32;
}

/* No instruction: what products read of registers stays there until here. */
static __device__ __forceinline__ void ptx_wgmma_hold_words(uint32_t a[4]) {
    asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3]));
}

#endif
