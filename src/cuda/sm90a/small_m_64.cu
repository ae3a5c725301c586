/* These are the GEMM kernels for few rows of A (small_m.cu) with 33 to 64 columns. A column is one
 * row of A, or one of the bf16 rows into which an f16 or f32 row of A is split. */
#include "cuda/sm90a/small_m_params.h"

extern __shared__ __align__(128) uint8_t small_m_shared[];

#include "cuda/sm90a/small_m_epilogue.h"
#include "cuda/sm90a/small_m_group.h"
#include "cuda/sm90a/small_m_own.h"

#define SMALL_M_NAME    small_m_mxfp4_8
#define SMALL_M_FORMAT  SMALL_M_MXFP4
#define SMALL_M_TILES   8
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_nvfp4_8
#define SMALL_M_FORMAT  SMALL_M_NVFP4
#define SMALL_M_TILES   8
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp6_e2m3_8
#define SMALL_M_FORMAT  SMALL_M_MXFP6_E2M3
#define SMALL_M_TILES   8
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp6_e3m2_8
#define SMALL_M_FORMAT  SMALL_M_MXFP6_E3M2
#define SMALL_M_TILES   8
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp8_8
#define SMALL_M_FORMAT  SMALL_M_MXFP8
#define SMALL_M_TILES   8
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp8_grouped_8
#define SMALL_M_FORMAT  SMALL_M_MXFP8
#define SMALL_M_TILES   8
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_fp8_grouped_8
#define SMALL_M_FORMAT  SMALL_M_FP8_F32
#define SMALL_M_TILES   8
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_fp8_rows_grouped_8
#define SMALL_M_FORMAT  SMALL_M_FP8_ROWS
#define SMALL_M_TILES   8
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"
