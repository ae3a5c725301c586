/* Few rows of A times weights as they are stored, bound by the bytes of the weights.
 *
 * Weights are the 16-row operand of mma.sync m16n8k16 (bf16, fp32 sums), A's rows its 8 columns. A
 * thread copies whole blocks of a row (16 bytes: 32 elements of 4 bits, 16 of 8) to its own places
 * of a ring and decodes them in registers; 4 threads that share a row hold 4 different blocks, so K
 * is counted in an order of its own, the same for A (small_m_prepare.h). The block scale is
 * multiplied into the decoded bf16, exactly, together with the power of two that decoding leaves
 * over.
 *
 * From 17 columns on four warps multiply together, by wgmma, with A where it lies in shared memory
 * (small_m_group.h).
 *
 * Blocks: 16 warps, k_warps of them along K; 64, 128 or 256 rows of B; a cluster shares rows and
 * cuts K. Shared memory: A (all of the block's, or a ring of steps for the warps that share them),
 * scales of B, fp32 scales of A, the weights' ring (2 x 32 KiB), barriers of A; in the end the sums
 * of all warps over all of it; behind them, which rows of A are not zero.
 * A warp: wait for its copies of a step, decode and multiply, copy the step after the next. No warp
 * waits for another but for slots of A's ring, at the begin and at the end (small_m_epilogue.h),
 * and the four of a warpgroup for each product. One or two rows of A: blocks make A ready
 * (small_m_own.h); more: a kernel before them does (small_m_prepare.h). Bound: cuda_sm90_small_m.c.
 * Measured: docs/PERFORMANCE.md, "Few rows of A on one H200". */
#include "cuda/sm90a/small_m_params.h"

extern __shared__ __align__(128) uint8_t small_m_shared[];

#include "cuda/sm90a/small_m_epilogue.h"
#include "cuda/sm90a/small_m_group.h"
#include "cuda/sm90a/small_m_own.h"

#define SMALL_M_PASTE(a, b) a##b
#define SMALL_M_JOIN(a, b)  SMALL_M_PASTE(a, b)

/* A, before any of the others: blocks_per_row blocks for each row. */
extern "C" __global__ void __launch_bounds__(BSMM_SMALL_M_PREPARE_THREADS)
    small_m_prepare(const __grid_constant__ bsmm_small_m_params p) {
    ptx_grid_wait(); /* for what writes A, and for who reads the last image */
    ptx_grid_release_next();
    uint32_t row = blockIdx.x / p.blocks_per_row, part = blockIdx.x % p.blocks_per_row;
    uint32_t i = part * BSMM_SMALL_M_PREPARE_THREADS + threadIdx.x, any = 0;
    if (i < p.steps * 16) any = small_m_prepare_chunk(&p, row, i);
    if (p.a_image_scales && i < p.steps) small_m_prepare_scale(&p, row, i);
    any = __syncthreads_or(any != 0);
    if (threadIdx.x == 0) p.a_image_any[blockIdx.x] = any;
}

#define SMALL_M_NAME    small_m_mxfp4_1
#define SMALL_M_FORMAT  SMALL_M_MXFP4
#define SMALL_M_TILES   1
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp4_2
#define SMALL_M_FORMAT  SMALL_M_MXFP4
#define SMALL_M_TILES   2
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp4_4
#define SMALL_M_FORMAT  SMALL_M_MXFP4
#define SMALL_M_TILES   4
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_nvfp4_1
#define SMALL_M_FORMAT  SMALL_M_NVFP4
#define SMALL_M_TILES   1
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_nvfp4_2
#define SMALL_M_FORMAT  SMALL_M_NVFP4
#define SMALL_M_TILES   2
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_nvfp4_4
#define SMALL_M_FORMAT  SMALL_M_NVFP4
#define SMALL_M_TILES   4
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp8_1
#define SMALL_M_FORMAT  SMALL_M_MXFP8
#define SMALL_M_TILES   1
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp8_2
#define SMALL_M_FORMAT  SMALL_M_MXFP8
#define SMALL_M_TILES   2
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp8_4
#define SMALL_M_FORMAT  SMALL_M_MXFP8
#define SMALL_M_TILES   4
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp4_grouped_1
#define SMALL_M_FORMAT  SMALL_M_MXFP4
#define SMALL_M_TILES   1
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp4_grouped_2
#define SMALL_M_FORMAT  SMALL_M_MXFP4
#define SMALL_M_TILES   2
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp4_grouped_4
#define SMALL_M_FORMAT  SMALL_M_MXFP4
#define SMALL_M_TILES   4
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_nvfp4_grouped_1
#define SMALL_M_FORMAT  SMALL_M_NVFP4
#define SMALL_M_TILES   1
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_nvfp4_grouped_2
#define SMALL_M_FORMAT  SMALL_M_NVFP4
#define SMALL_M_TILES   2
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_nvfp4_grouped_4
#define SMALL_M_FORMAT  SMALL_M_NVFP4
#define SMALL_M_TILES   4
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp8_grouped_1
#define SMALL_M_FORMAT  SMALL_M_MXFP8
#define SMALL_M_TILES   1
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp8_grouped_2
#define SMALL_M_FORMAT  SMALL_M_MXFP8
#define SMALL_M_TILES   2
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp8_grouped_4
#define SMALL_M_FORMAT  SMALL_M_MXFP8
#define SMALL_M_TILES   4
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_fp8_grouped_1
#define SMALL_M_FORMAT  SMALL_M_FP8_F32
#define SMALL_M_TILES   1
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_fp8_grouped_2
#define SMALL_M_FORMAT  SMALL_M_FP8_F32
#define SMALL_M_TILES   2
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_fp8_grouped_4
#define SMALL_M_FORMAT  SMALL_M_FP8_F32
#define SMALL_M_TILES   4
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

/* ---- one fp32 scale for a row of A ---- */

#define SMALL_M_NAME    small_m_mxfp4_scaled_1
#define SMALL_M_FORMAT  SMALL_M_MXFP4
#define SMALL_M_TILES   1
#define SMALL_M_GROUPED 0
#define SMALL_M_SCALED  1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp4_scaled_2
#define SMALL_M_FORMAT  SMALL_M_MXFP4
#define SMALL_M_TILES   2
#define SMALL_M_GROUPED 0
#define SMALL_M_SCALED  1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp4_scaled_4
#define SMALL_M_FORMAT  SMALL_M_MXFP4
#define SMALL_M_TILES   4
#define SMALL_M_GROUPED 0
#define SMALL_M_SCALED  1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_nvfp4_scaled_1
#define SMALL_M_FORMAT  SMALL_M_NVFP4
#define SMALL_M_TILES   1
#define SMALL_M_GROUPED 0
#define SMALL_M_SCALED  1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_nvfp4_scaled_2
#define SMALL_M_FORMAT  SMALL_M_NVFP4
#define SMALL_M_TILES   2
#define SMALL_M_GROUPED 0
#define SMALL_M_SCALED  1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_nvfp4_scaled_4
#define SMALL_M_FORMAT  SMALL_M_NVFP4
#define SMALL_M_TILES   4
#define SMALL_M_GROUPED 0
#define SMALL_M_SCALED  1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp8_scaled_1
#define SMALL_M_FORMAT  SMALL_M_MXFP8
#define SMALL_M_TILES   1
#define SMALL_M_GROUPED 0
#define SMALL_M_SCALED  1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp8_scaled_2
#define SMALL_M_FORMAT  SMALL_M_MXFP8
#define SMALL_M_TILES   2
#define SMALL_M_GROUPED 0
#define SMALL_M_SCALED  1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp8_scaled_4
#define SMALL_M_FORMAT  SMALL_M_MXFP8
#define SMALL_M_TILES   4
#define SMALL_M_GROUPED 0
#define SMALL_M_SCALED  1
#include "cuda/sm90a/small_m_body.h"
