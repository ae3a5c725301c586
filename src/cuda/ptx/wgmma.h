/* Each function here is one of the PTX instructions that must accompany wgmma, the matrix
 * multiply-accumulate of a warpgroup (PTX ISA 8.7, section 9.7.15). wgmma_one.h has wgmma
 * itself. */
#ifndef BSMM_CUDA_PTX_WGMMA_H
#define BSMM_CUDA_PTX_WGMMA_H

#include <stdint.h>

/* PTX ISA 9.7.15.7.1 "wgmma.fence": completes this thread's accesses to registers before later
 * wgmma instructions use the registers. */
static __device__ __forceinline__ void ptx_wgmma_fence(void) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* PTX ISA 9.7.15.7.2 "wgmma.commit_group": makes a group of all wgmma instructions that were
 * started since the last call of this function. */
static __device__ __forceinline__ void ptx_wgmma_commit(void) {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* PTX ISA 9.7.15.7.3 "wgmma.wait_group": waits until all but the `pending` most recent groups of
 * wgmma instructions have completed. `pending` is a literal. */
#define PTX_WGMMA_WAIT(pending)                                                                    \
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory")

/* Returns a matrix descriptor (PTX ISA 9.7.15.5.1.2) for wgmma. It describes a K-major tile in
 * shared memory with rows of 128 bytes and the 128-byte swizzle. Groups of eight rows have a stride
 * of 1024 bytes. Adding n to the descriptor advances it by 16 n bytes. */
static __device__ __forceinline__ uint64_t ptx_wgmma_descriptor(uint32_t address) {
    const uint64_t stride = 1024 >> 4, swizzle_128 = 1;
    return (uint64_t)((address & 0x3FFFF) >> 4) | (stride << 32) | (swizzle_128 << 62);
}

/* Returns a matrix descriptor (PTX ISA 9.7.15.5.1.2) for wgmma. It describes a K-major tile in
 * shared memory without swizzle, where 8 rows of 16 bytes are contiguous. `along` is the stride in
 * bytes to the next 16 bytes along K, and `across` is the stride to the next 8 rows. */
static __device__ __forceinline__ uint64_t ptx_wgmma_descriptor_plain(uint32_t address,
                                                                      uint32_t along,
                                                                      uint32_t across) {
    return (uint64_t)((address & 0x3FFFF) >> 4) | (uint64_t)(along >> 4) << 16 |
           (uint64_t)(across >> 4) << 32;
}

/* Emits no instruction. It keeps the compiler from reusing the registers of a wgmma operand while a
 * wgmma instruction that is still running reads them. */
static __device__ __forceinline__ void ptx_wgmma_hold_words(uint32_t a[4]) {
    asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3]));
}

#endif
