/* These are the GEMM kernels for few rows of A (small M), which read the weights B as they are
 * stored. The bandwidth of reading the weights limits their speed.
 *
 * The instruction is mma.sync m16n8k16 (bf16 with fp32 accumulators). Its first operand is 16 rows
 * of the weights. Its second operand has 8 columns, which are rows of A. A thread copies whole
 * scale blocks of a row of weights to its own slots of a ring buffer in shared memory, and decodes
 * them in registers. It copies 16 bytes at a time, which are 32 elements of 4 bits or 16 elements
 * of 8 bits. Scale blocks of 6-bit weights have 24 bytes, and the warp copies them together
 * (small_m_lane.h).
 *
 * The 4 threads that share a row of an mma fragment hold 4 different scale blocks. The kernels
 * therefore multiply the elements of K in a permuted order, and A is stored in the same permuted
 * order (small_m_prepare.h). Decoding a weight gives the value times a constant power of two. The
 * block scale is multiplied by the inverse of this power of two. One exact bf16 multiplication then
 * corrects and scales the weight.
 *
 * With 17 or more columns, the four warps of a warpgroup multiply together by wgmma, which reads A
 * from shared memory (small_m_group.h). A column is one row of A, or one of the two or three rows
 * of bf16 numbers whose sum is an f16 or f32 row of A.
 *
 * A thread block has 16 warps and 64, 128 or 256 rows of B. k_warps of its warps multiply the same
 * rows of B and split K among them. The thread blocks of a cluster also have the same rows of B and
 * split K among them. Shared memory holds A, B's scales, A's fp32 scales, the ring buffer of
 * weights (2 x 32 KiB) and mbarriers for A. For A there is room either for all elements that the
 * thread block needs or for a ring buffer of a few steps. The epilogue reuses all of this memory
 * for the accumulators. Flags after this memory say which rows of A are nonzero.
 *
 * A step is 128 elements along K. In each step a warp waits for its own copies of weights, decodes
 * them, multiplies them by A, and starts the copies of a later step. A warp waits for other warps
 * at the beginning, for slots of the ring buffer of A, and in the epilogue (small_m_epilogue.h).
 * With wgmma, the four warps of a warpgroup also wait for each other.
 *
 * For one or two rows of A, each thread block converts the part of A that it needs (small_m_own.h).
 * For more rows, the kernel small_m_prepare converts A first (small_m_prepare.h).
 * cuda_sm90_small_m.c states the error bound. docs/PERFORMANCE.md has measurements ("Few rows of A
 * on one H200"). The generated .cu files of small_m.def include this file before the kernels. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_KERNELS_H
#define BSMM_CUDA_SM90A_SMALL_M_KERNELS_H

#include "cuda/sm90a/small_m_params.h"

extern __shared__ __align__(128) uint8_t small_m_shared[];

#include "cuda/sm90a/small_m_epilogue.h"
#include "cuda/sm90a/small_m_group.h"
#include "cuda/sm90a/small_m_own.h"

#ifdef SMALL_M_IN_small_m /* The module small_m also has the kernel that converts A. */

/* Converts A for the small-M kernel that runs next. The grid has blocks_per_row thread blocks for
 * each row of A, and each thread converts one chunk, i.e. 8 elements along K. */
extern "C" __global__ void __launch_bounds__(BSMM_SMALL_M_PREPARE_THREADS)
    small_m_prepare(const __grid_constant__ bsmm_small_m_params p) {
    /* Wait for the kernel that writes A, and for the last kernel that reads the image of A (A
     * converted to bf16), because this kernel overwrites the image. */
    ptx_grid_wait();
    ptx_grid_release_next();
    uint32_t row = blockIdx.x / p.blocks_per_row, part = blockIdx.x % p.blocks_per_row;
    uint32_t i = part * BSMM_SMALL_M_PREPARE_THREADS + threadIdx.x, any = 0;
    if (i < p.steps * 16) any = small_m_prepare_chunk(&p, row, i);
    if (p.a_image_scales && i < p.steps) small_m_prepare_scale(&p, row, i);
    any = __syncthreads_or(any != 0);
    if (threadIdx.x == 0) p.a_image_any[blockIdx.x] = any;
}

#endif

#endif
