/* GEMM kernels for few rows of A (small M), which read the weights B as they are stored. The
 * bandwidth of reading the weights limits their speed.
 *
 * The weights are the 16-row operand of mma.sync m16n8k16 (bf16 with fp32 accumulators), and A's
 * rows are its 8 columns. A thread copies whole scale blocks of a row (16 bytes: 32 elements of 4
 * bits or 16 of 8 bits) to its own slots of a ring in shared memory, and decodes them in registers.
 * The 4 threads that share a row of a fragment hold 4 different blocks. The kernels therefore
 * permute K, and A is stored in the same permuted order (small_m_prepare.h). One exact bf16
 * multiplication applies the block scale together with the power of two that decoding leaves over.
 *
 * From 17 columns on, four warps multiply together by wgmma, which reads A from shared memory
 * (small_m_group.h).
 *
 * A block has 16 warps, k_warps of them along K, and 64, 128 or 256 rows of B. The blocks of a
 * cluster have the same rows and split K. Shared memory holds A (all that the block needs, or a
 * ring of steps for the warps that have the same range of K), scales of B, fp32 scales of A, the
 * ring of weights (2 x 32 KiB) and barriers of A. The epilogue reuses all of it for the
 * accumulators. Flags that say which rows of A are nonzero follow.
 *
 * In each step a warp waits for its own copies, decodes and multiplies, and starts the copies of
 * the step after the next. A warp waits for other warps only for slots of A's ring, at the
 * beginning and in the epilogue (small_m_epilogue.h); with wgmma, the four warps of a warpgroup
 * also wait for each other.
 *
 * For one or two rows of A, each block prepares A itself (small_m_own.h). For more rows, a kernel
 * that runs before prepares A (small_m_prepare.h). Error bound: cuda_sm90_small_m.c. Measurements:
 * docs/PERFORMANCE.md, "Few rows of A on one H200". */
#include "cuda/sm90a/small_m_params.h"

extern __shared__ __align__(128) uint8_t small_m_shared[];

#include "cuda/sm90a/small_m_epilogue.h"
#include "cuda/sm90a/small_m_group.h"
#include "cuda/sm90a/small_m_own.h"

#define SMALL_M_PASTE(a, b) a##b
#define SMALL_M_JOIN(a, b)  SMALL_M_PASTE(a, b)

/* The kernel that prepares A before a small-M kernel runs. It has blocks_per_row blocks for each
 * row of A. */
extern "C" __global__ void __launch_bounds__(BSMM_SMALL_M_PREPARE_THREADS)
    small_m_prepare(const __grid_constant__ bsmm_small_m_params p) {
    /* Wait for the kernel that writes A and for the last reader of the old image. */
    ptx_grid_wait();
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

/* ---- kernels for A with one fp32 scale per row ---- */

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
