/* These functions wrap PTX instructions of Blackwell's tensor cores for pairs of thread blocks,
 * i.e. with cta_group::2 (PTX ISA 9.0, section 9.7.16). Each function is one instruction. Two
 * thread blocks of a cluster are a pair if their ranks differ in the lowest bit only. The block
 * with the even rank is the leader. All tcgen05 instructions of a kernel must have the same
 * cta_group. Loads from tensor memory, fences and descriptors have no cta_group and are in
 * tcgen05.h. */
#ifndef BSMM_CUDA_PTX_TCGEN05_PAIR_H
#define BSMM_CUDA_PTX_TCGEN05_PAIR_H

#include <stdint.h>

/* Each of the two thread blocks must call the allocation functions below by a full warp. */

/* PTX ISA "tcgen05.alloc": allocates `columns` columns of tensor memory (a power of two from 32 to
 * 512) in both thread blocks of a pair and writes their address to shared memory. */
static __device__ __forceinline__ void ptx_tcgen05_pair_alloc(uint32_t to, uint32_t columns) {
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(to),
                 "r"(columns)
                 : "memory");
}
/* PTX ISA "tcgen05.relinquish_alloc_permit": declares that the thread block will allocate no more
 * columns. */
static __device__ __forceinline__ void ptx_tcgen05_pair_relinquish(void) {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
}
/* PTX ISA "tcgen05.dealloc": frees columns of tensor memory in both thread blocks of a pair. */
static __device__ __forceinline__ void ptx_tcgen05_pair_dealloc(uint32_t address,
                                                                uint32_t columns) {
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address),
                 "r"(columns));
}

/* One thread of the pair's leader issues the instructions from here on. */

/* PTX ISA "tcgen05.commit" with multicast: when all earlier products and copies of this thread have
 * completed, one mbarrier in each selected thread block gets one arrival. Bit r of `mask` selects
 * the thread block of rank r. The mbarriers have the same address in all thread blocks. */
static __device__ __forceinline__ void ptx_tcgen05_pair_commit(uint32_t barrier, uint16_t mask) {
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
                 ".multicast::cluster.b64 [%0], %1;" ::"r"(barrier),
                 "h"(mask)
                 : "memory");
}

/* PTX ISA "tcgen05.cp" with cta_group::2: copies as ptx_tcgen05_copy_32x128b does, in both thread
 * blocks of a pair. Each block copies from its own shared memory to its own tensor memory. */
static __device__ __forceinline__ void ptx_tcgen05_pair_copy_32x128b(uint32_t to, uint64_t from) {
    asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(from)
                 : "memory");
}

/* PTX ISA "tcgen05.mma" with block_scale and cta_group::2: multiplies as PTX_TCGEN05_MMA_SCALED
 * does, with the rows of A and B of both thread blocks of a pair. Each block holds half of the rows
 * of A and half of the rows of B. Each block's tensor memory gets the rows of D that belong to its
 * rows of A. */
#define PTX_TCGEN05_PAIR_MMA_SCALED(KIND, d, a, b, form, a_scales, b_scales, adds)                 \
    asm volatile("{ .reg .pred p;\n\t"                                                             \
                 "setp.ne.b32 p, %6, 0;\n\t"                                                       \
                 "tcgen05.mma.cta_group::2.kind::" KIND                                            \
                 " [%0], %1, %2, %3, [%4], [%5], p; }" ::"r"(d),                                   \
                 "l"(a), "l"(b), "r"(form), "r"(a_scales), "r"(b_scales), "r"(adds)                \
                 : "memory")

/* PTX ISA "tcgen05.mma" with cta_group::2: multiplies as PTX_TCGEN05_MMA does, i.e. without block
 * scales. Each thread block of a pair holds half of the rows of A and half of the rows of B, and
 * gets the rows of D that belong to its rows of A. */
#define PTX_TCGEN05_PAIR_MMA(KIND, d, a, b, form, adds)                                            \
    asm volatile("{ .reg .pred p;\n\t"                                                             \
                 "setp.ne.b32 p, %4, 0;\n\t"                                                       \
                 "tcgen05.mma.cta_group::2.kind::" KIND " [%0], %1, %2, %3, p; }" ::"r"(d),        \
                 "l"(a), "l"(b), "r"(form), "r"(adds)                                              \
                 : "memory")

/* One thread of either thread block issues the instructions from here on. */

/* PTX ISA 9.7.9.27.1.2 "cp.async.bulk.tensor" with cta_group::2: loads a tile by TMA as
 * ptx_tma_load does. The mbarrier that counts the bytes may be in either thread block of the pair.
 * ptx_mapa makes its address. */
static __device__ __forceinline__ void ptx_tma_load_pair(uint32_t to, const void *map, int32_t x,
                                                         int32_t y, uint32_t barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".cta_group::2 [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
}

#endif
