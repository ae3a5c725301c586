/* These mixed-input GEMM kernels for Hopper multiply an f16 A by weights B as they are stored, like
 * the kernels in sm90a/mixed.cu, but decode the weights to f16 instead of bf16. A then need not be
 * split into two bf16 parts, which would take the tensor cores twice as long. f16 holds weights
 * with e8m0 scales only in a range of scales, which mixed_half.h places separately for each row of
 * B. The kernel mixed_prepare (sm90a/mixed.cu) permutes A before.
 *
 * Most formats have one tile size, because more kernels would make the library larger. Tiles with
 * 96 instead of 128 columns take less time for 65 to 96 rows of A: 14% less with mxfp8, and 4 to
 * 10% less with the other formats of 4 and 8 bits. */
#include "cuda/sm90a/small_m_params.h"

extern __shared__ __align__(128) uint8_t small_m_shared[];

#include "cuda/sm90a/mixed_epilogue.h"
#include "cuda/sm90a/mixed_groups.h"
#include "cuda/sm90a/mixed_half.h"
#include "cuda/sm90a/mixed_multiply.h"

#define MIXED_HALF 1

#define MIXED_NAME    mixed_f16_mxfp4_128
#define MIXED_FORMAT  SMALL_M_MXFP4
#define MIXED_COLUMNS 128
#include "cuda/sm90a/mixed_body.h"

#define MIXED_NAME    mixed_f16_nvfp4_128
#define MIXED_FORMAT  SMALL_M_NVFP4
#define MIXED_COLUMNS 128
#include "cuda/sm90a/mixed_body.h"

#define MIXED_NAME    mixed_f16_mxfp8_96
#define MIXED_FORMAT  SMALL_M_MXFP8
#define MIXED_COLUMNS 96
#include "cuda/sm90a/mixed_body.h"

#define MIXED_NAME    mixed_f16_mxfp8_128
#define MIXED_FORMAT  SMALL_M_MXFP8
#define MIXED_COLUMNS 128
#include "cuda/sm90a/mixed_body.h"

#define MIXED_NAME    mixed_f16_mxfp6_e2m3_96
#define MIXED_FORMAT  SMALL_M_MXFP6_E2M3
#define MIXED_COLUMNS 96
#include "cuda/sm90a/mixed_body.h"

#define MIXED_NAME    mixed_f16_mxfp6_e3m2_96
#define MIXED_FORMAT  SMALL_M_MXFP6_E3M2
#define MIXED_COLUMNS 96
#include "cuda/sm90a/mixed_body.h"

#define MIXED_NAME    mixed_f16_fp8_rows_128
#define MIXED_FORMAT  SMALL_M_FP8_ROWS
#define MIXED_COLUMNS 128
#include "cuda/sm90a/mixed_body.h"

#define MIXED_NAME    mixed_f16_fp8_groups_96
#define MIXED_FORMAT  SMALL_M_FP8_F32
#define MIXED_COLUMNS 96
#include "cuda/sm90a/mixed_body.h"
