/* These mixed-input GEMM kernels for Hopper multiply an f16 A by weights B as they are stored. They
 * are the kernels of sm90a/mixed.cu, except that they decode the weights to f16 instead of bf16. A
 * therefore need not be split into two bf16 parts, with which the tensor cores would work twice as
 * long. f16 holds weights with e8m0 scales only in a range of scales. mixed_half.h places this
 * range separately for each row of B. The kernel mixed_prepare (sm90a/mixed.cu) permutes A along K
 * before these kernels run.
 *
 * All formats but mxfp8 have one tile size, because more kernels would make the library larger.
 * mxfp8 gains most from tiles of 96 instead of 128 columns, if A has up to 96 rows.
 * docs/notes/hopper-large.md has times. */
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
