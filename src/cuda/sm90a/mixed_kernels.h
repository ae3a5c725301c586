/* These are the mixed-input GEMM kernels for Hopper. They multiply a 16-bit A with more rows than
 * the small-M kernels take by weights B as they are stored, with 4, 6 or 8 bits. Kernels that first
 * convert all of B to bf16 in device memory move up to eight times as many bytes.
 *
 * Each thread decodes its weights to bf16 in registers, and wgmma takes them as its first operand,
 * which has 64 rows. wgmma therefore computes tiles of the transposed result: the rows of a tile
 * are rows of B, and its columns are rows of A. wgmma reads A from shared memory. The kernel
 * mixed_prepare has converted A to bf16 (an f16 A stays f16) and permuted it along K, so that each
 * thread decodes whole words of weights that share a scale (mixed_prepare.h). While a warpgroup
 * decodes, wgmma instructions of all warpgroups run.
 *
 * For few rows of A, a thread block has four warpgroups and computes a tile of up to 256 rows of B
 * by 32 to 128 rows of A. The warpgroups multiply different rows of B, or half of them multiply
 * other steps of K. For many rows of A, a thread block has two warpgroups and computes a tile of
 * 128 rows of B by 256 rows of A. It then uses each decoded weight for twice as many products, so
 * it decodes half as often. A thread has 128 accumulators, which four warpgroups would have no
 * registers for. The thread blocks of a cluster split K, too. Each thread copies its own weights
 * through a ring buffer in shared memory (mixed_weights.h). Bulk copies move A's tile through
 * another one (mixed_stage.h). If the thread blocks of the last wave would not fill all SMs, a
 * second launch computes the last rows of B with a larger split of K. There is no producer warp,
 * because with more than 16 warps a thread would have fewer than 128 registers. The epilogue adds
 * the accumulators in a fixed order (mixed_epilogue.h). cuda_sm90a_mixed.c states the error bound,
 * and docs/notes/hopper-large.md has measurements.
 *
 * If A is f16, the kernels decode weights to f16 instead of bf16. A therefore need not be split
 * into two bf16 parts, with which the tensor cores would work twice as long. f16 holds weights with
 * e8m0 scales only in a range of scales. mixed_half.h places this range separately for each row of
 * B.
 *
 * The drawing shows the time of one warpgroup of four. "mul 0.1" means that wgmma multiplies chunk
 * 1 (32 of 128 elements of K) of step 0, and "dec 0.1" means that the threads decode the weights of
 * this chunk. A's ring buffer has four slots, or two for each group if two groups split K:
 *
 *     time ---------------------------------------------------------------------------------->
 *     copies of A    ~~ F0 ~~ F1 ~~ F2 ~~ F3                                      ~~ step 4 ~~
 *     threads        dec 0.0 | dec 0.1 | dec 0.2 | dec 0.3 | W1 dec 1.0 |    dec 1.1 | dec 1.2
 *     tensor cores   wait F0 | mul 0.0 | mul 0.1 | mul 0.2 | mul 0.3    |    mul 1.0 | mul 1.1
 *     barriers                                                          D0 F1           wait D0
 *
 *     F  "full" barrier of a slot of A's ring buffer: the tile of a step has arrived in the slot.
 *        The warps of the group wait before they multiply the step.
 *     D  "done" barrier of a slot: every warp of the group has multiplied the step. One warp waits
 *        during chunk 1 of the next step, and then copies the tile of a later step to the slot.
 *        With 256 rows of A, a slot holds half a step. A warp then leaves a slot only after it has
 *        started the first chunk of the next slot, so that the tensor cores always have work.
 *     W  The thread waits until its own weights of the next step are in its ring buffer (cp.async),
 *        reads them, and starts the copy of the weights of a later step to the slot that it read
 *        before. No other thread takes part, except with 6-bit weights.
 *
 * This file and the files that it includes follow a step through the kernel: A's conversion, tiles
 * and slots (mixed_stage.h), weights and scales (mixed_weights.h, mixed_groups.h), decoding
 * (mixed_multiply.h) and the epilogue. mixed_body.h has the loop over the steps. The generated .cu
 * files of mixed.def include this file before the kernels. */
#ifndef BSMM_CUDA_SM90A_MIXED_KERNELS_H
#define BSMM_CUDA_SM90A_MIXED_KERNELS_H

#include "cuda/sm90a/small_m_params.h"

extern __shared__ __align__(128) uint8_t small_m_shared[];

#include "cuda/sm90a/mixed_epilogue.h"
#include "cuda/sm90a/mixed_groups.h"
#include "cuda/sm90a/mixed_half.h"
#include "cuda/sm90a/mixed_multiply.h"
#include "cuda/sm90a/mixed_prepare.h"

#ifdef MIXED_IN_mixed /* The module mixed also has the kernel that converts A. */

/* Converts A to bf16 or f16 for the mixed-input kernel that runs next. Thread block (x, y) converts
 * rows [8 x, 8 x + 8) of A for steps [8 y, 8 y + 8) of 128 elements along K, and each of its warps
 * converts one step of these rows. The next kernel also needs to know how small the numbers of a
 * row are. For each row, the thread block therefore finds the smallest nonzero magnitude in its
 * steps, and stores it in a_image_any as a bf16 code minus 1. The magnitude of an f16 number is
 * rounded down to bf16. If A has one fp32 scale per row, thread blocks (x, 0) store these scales in
 * a_image_scales.
 *
 * `source` is p->source. There is a kernel for each source, so that a thread block has few
 * instructions to fetch. One kernel for all sources took 2.0 to 2.6 us on an H200, but only 1.0 us
 * when its instructions were already in the instruction cache. */
static __device__ __forceinline__ void mixed_prepare(const bsmm_small_m_params *p,
                                                     const uint32_t source,
                                                     uint32_t (*least)[BSMM_MIXED_PREPARE_ROWS]) {
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint32_t row = blockIdx.x * BSMM_MIXED_PREPARE_ROWS + lane / 4;
    const uint32_t step = blockIdx.y * BSMM_MIXED_PREPARE_STEPS + warp;
    /* A prefetch reads no value, so it may come before the wait for earlier kernels. */
    if (row < p->m) mixed_prefetch_fragment(p, source, row, step * 4 + lane % 4);
    /* This kernel overwrites A's image (the copy of A in the order of the main loop), so it waits
     * for the last kernel that reads the old image. It also waits for the kernel that writes A. */
    ptx_grid_wait();
    ptx_grid_release_next();
    uint32_t mine = ~0u;
    if (row < p->m && step < p->steps)
        mine = mixed_prepare_fragment(p, source, row, step, lane % 4);
    mine = min(mine, __shfl_xor_sync(0xffffffffu, mine, 1));
    mine = min(mine, __shfl_xor_sync(0xffffffffu, mine, 2));
    if (lane % 4 == 0) least[warp][lane / 4] = mine;
    __syncthreads();
    if (threadIdx.x >= BSMM_MIXED_PREPARE_ROWS) return;
    const uint32_t own = blockIdx.x * BSMM_MIXED_PREPARE_ROWS + threadIdx.x;
    uint32_t all = ~0u;
    for (uint32_t i = 0; i < BSMM_MIXED_PREPARE_STEPS; i++)
        all = min(all, least[i][threadIdx.x]);
    if (p->half) all = mixed_half_least(all);
    if (own < p->m) p->a_image_any[own * p->blocks_per_row + blockIdx.y] = all;
    if (own < p->m && p->row_scaled && blockIdx.y == 0)
        p->a_image_scales[own] = bsmm_gpu_scale(&p->a, own, 0);
}

#    define MIXED_PREPARE(name, source)                                                            \
        extern "C" __global__ void __launch_bounds__(BSMM_SMALL_M_PREPARE_THREADS)                 \
            name(const __grid_constant__ bsmm_small_m_params p) {                                  \
            __shared__ uint32_t least[BSMM_MIXED_PREPARE_STEPS][BSMM_MIXED_PREPARE_ROWS];          \
            mixed_prepare(&p, source, least);                                                      \
        }

MIXED_PREPARE(mixed_prepare_any, BSMM_SMALL_M_ANY)
MIXED_PREPARE(mixed_prepare_bf16, BSMM_SMALL_M_BF16)
MIXED_PREPARE(mixed_prepare_f16, BSMM_SMALL_M_F16)
MIXED_PREPARE(mixed_prepare_e4m3, BSMM_SMALL_M_E4M3)
MIXED_PREPARE(mixed_prepare_e2m1, BSMM_SMALL_M_E2M1)

#endif

#endif
