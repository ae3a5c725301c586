/* These functions wrap PTX instructions of Blackwell's tensor cores and of their tensor memory (PTX
 * ISA 9.0, section 9.7.16). Each function is one instruction. Tensor memory has 128 lanes of 512
 * columns of 32 bits. The upper 16 bits of an address are the lane, and its lower 16 bits are the
 * column. All functions in this file are for one thread block (cta_group::1). */
#ifndef BSMM_CUDA_PTX_TCGEN05_H
#define BSMM_CUDA_PTX_TCGEN05_H

#include <stdint.h>

/* PTX ISA "tcgen05.alloc": allocates `columns` columns of tensor memory (a power of two from 32 to
 * 512) and writes their address to shared memory. If too few columns are free, it waits until
 * another thread block of the SM frees columns. */
static __device__ __forceinline__ void ptx_tcgen05_alloc(uint32_t to, uint32_t columns) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(to),
                 "r"(columns)
                 : "memory");
}
/* PTX ISA "tcgen05.relinquish_alloc_permit": declares that the thread block will allocate no more
 * columns. */
static __device__ __forceinline__ void ptx_tcgen05_relinquish(void) {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
}
/* PTX ISA "tcgen05.dealloc": frees columns of tensor memory. A thread block must free all of its
 * columns before it ends. */
static __device__ __forceinline__ void ptx_tcgen05_dealloc(uint32_t address, uint32_t columns) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address),
                 "r"(columns));
}

/* PTX ISA "tcgen05.fence". A thread executes the variant "before" before it signals other threads,
 * so that its earlier tcgen05 instructions precede the signal. It executes the variant "after" when
 * it has received a signal, so that its later tcgen05 instructions follow the signal. */
static __device__ __forceinline__ void ptx_tcgen05_fence_before(void) {
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
static __device__ __forceinline__ void ptx_tcgen05_fence_after(void) {
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}
/* PTX ISA "tcgen05.commit": when all earlier tcgen05.mma and tcgen05.cp instructions of this thread
 * have completed, the mbarrier gets one arrival. */
static __device__ __forceinline__ void ptx_tcgen05_commit(uint32_t barrier) {
    asm volatile(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier)
        : "memory");
}

/* Returns the descriptor (PTX ISA "Shared memory descriptor") of a K-major tile in shared memory
 * whose rows have 128 bytes, with the 128-byte swizzle. Groups of eight rows have a stride of 1024
 * bytes. Adding n to the descriptor advances it by 16 n bytes. */
static __device__ __forceinline__ uint64_t ptx_tcgen05_rows_128(uint32_t address) {
    const uint64_t stride = 1024 >> 4, version = 1, swizzle_128 = 2;
    return (uint64_t)((address & 0x3FFFF) >> 4) | stride << 32 | version << 46 | swizzle_128 << 61;
}
/* Returns the descriptor (PTX ISA "Shared memory descriptor") of rows of 16 bytes in shared memory,
 * without a swizzle. All rows are contiguous. */
static __device__ __forceinline__ uint64_t ptx_tcgen05_rows_16(uint32_t address) {
    const uint64_t leading = 128 >> 4, stride = 128 >> 4, version = 1;
    return (uint64_t)((address & 0x3FFFF) >> 4) | leading << 16 | stride << 32 | version << 46;
}

/* PTX ISA "tcgen05.cp": copies 32 rows of 16 bytes from shared memory to tensor memory, where they
 * fill 32 lanes of four columns. The instruction writes this data four times: to the lanes that
 * begin with lane 0, with lane 32, with lane 64 and with lane 96. */
static __device__ __forceinline__ void ptx_tcgen05_copy_32x128b(uint32_t to, uint64_t from) {
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(from)
                 : "memory");
}
/* PTX ISA "tcgen05.mma" with block_scale: multiplies a tile of A by a tile of B, applies the block
 * scales, and adds the product to the accumulators at `d`. If `adds` is 0, the product overwrites
 * the accumulators. `a` and `b` are descriptors of shared memory, `form` is the instruction
 * descriptor, and `a_scales` and `b_scales` are addresses in tensor memory. `KIND` is a literal
 * such as "mxf8f6f4.block_scale.block32". */
#define PTX_TCGEN05_MMA_SCALED(KIND, d, a, b, form, a_scales, b_scales, adds)                      \
    asm volatile("{ .reg .pred p;\n\t"                                                             \
                 "setp.ne.b32 p, %6, 0;\n\t"                                                       \
                 "tcgen05.mma.cta_group::1.kind::" KIND                                            \
                 " [%0], %1, %2, %3, [%4], [%5], p; }" ::"r"(d),                                   \
                 "l"(a), "l"(b), "r"(form), "r"(a_scales), "r"(b_scales), "r"(adds)                \
                 : "memory")

/* PTX ISA "tcgen05.mma" without block scales: multiplies a tile of A by a tile of B and adds the
 * product to the accumulators at `d`. If `adds` is 0, the product overwrites the accumulators.
 * `KIND` is a literal such as "f8f6f4". */
#define PTX_TCGEN05_MMA(KIND, d, a, b, form, adds)                                                 \
    asm volatile("{ .reg .pred p;\n\t"                                                             \
                 "setp.ne.b32 p, %4, 0;\n\t"                                                       \
                 "tcgen05.mma.cta_group::1.kind::" KIND " [%0], %1, %2, %3, p; }" ::"r"(d),        \
                 "l"(a), "l"(b), "r"(form), "r"(adds)                                              \
                 : "memory")

/* PTX ISA "tcgen05.ld": loads 32 columns of tensor memory. Warp w of a warpgroup reads the 32 lanes
 * of tensor memory that begin at lane 32 w, and thread i of the warp gets lane 32 w + i. The
 * registers are valid after ptx_tcgen05_wait_loads. */
static __device__ __forceinline__ void ptx_tcgen05_load_x32(uint32_t from, uint32_t r[32]) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "[%32];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]),
                   "=r"(r[6]), "=r"(r[7]), "=r"(r[8]), "=r"(r[9]), "=r"(r[10]), "=r"(r[11]),
                   "=r"(r[12]), "=r"(r[13]), "=r"(r[14]), "=r"(r[15]), "=r"(r[16]), "=r"(r[17]),
                   "=r"(r[18]), "=r"(r[19]), "=r"(r[20]), "=r"(r[21]), "=r"(r[22]), "=r"(r[23]),
                   "=r"(r[24]), "=r"(r[25]), "=r"(r[26]), "=r"(r[27]), "=r"(r[28]), "=r"(r[29]),
                   "=r"(r[30]), "=r"(r[31])
                 : "r"(from));
}
/* PTX ISA "tcgen05.ld": loads 8 columns of tensor memory, like ptx_tcgen05_load_x32. */
static __device__ __forceinline__ void ptx_tcgen05_load_x8(uint32_t from, uint32_t r[8]) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]),
                   "=r"(r[6]), "=r"(r[7])
                 : "r"(from));
}
/* PTX ISA "tcgen05.wait::ld": waits until this thread's loads from tensor memory have completed. */
static __device__ __forceinline__ void ptx_tcgen05_wait_loads(void) {
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

/* A full warp calls the functions from here on. These functions store to tensor memory. */

/* PTX ISA "tcgen05.st": stores four columns of tensor memory. Warp w of a warpgroup writes the 32
 * lanes of tensor memory that begin at lane 32 w, and thread i of the warp writes lane 32 w + i. */
static __device__ __forceinline__ void ptx_tcgen05_store_x4(uint32_t to, const uint32_t r[4]) {
    asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}
/* PTX ISA "tcgen05.wait::st": waits until this thread's stores to tensor memory have completed. */
static __device__ __forceinline__ void ptx_tcgen05_wait_stores(void) {
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

#endif
