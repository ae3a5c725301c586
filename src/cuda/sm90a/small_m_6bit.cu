/* These are the GEMM kernels for few rows of A (small_m.cu) whose weights B have elements of 6
 * bits. */
#include "cuda/sm90a/small_m_params.h"

extern __shared__ __align__(128) uint8_t small_m_shared[];

#include "cuda/sm90a/small_m_epilogue.h"
#include "cuda/sm90a/small_m_group.h"
#include "cuda/sm90a/small_m_own.h"

#define SMALL_M_NAME    small_m_mxfp6_e2m3_1
#define SMALL_M_FORMAT  SMALL_M_MXFP6_E2M3
#define SMALL_M_TILES   1
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp6_e2m3_2
#define SMALL_M_FORMAT  SMALL_M_MXFP6_E2M3
#define SMALL_M_TILES   2
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp6_e2m3_4
#define SMALL_M_FORMAT  SMALL_M_MXFP6_E2M3
#define SMALL_M_TILES   4
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp6_e3m2_1
#define SMALL_M_FORMAT  SMALL_M_MXFP6_E3M2
#define SMALL_M_TILES   1
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp6_e3m2_2
#define SMALL_M_FORMAT  SMALL_M_MXFP6_E3M2
#define SMALL_M_TILES   2
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp6_e3m2_4
#define SMALL_M_FORMAT  SMALL_M_MXFP6_E3M2
#define SMALL_M_TILES   4
#define SMALL_M_GROUPED 0
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp6_e2m3_grouped_1
#define SMALL_M_FORMAT  SMALL_M_MXFP6_E2M3
#define SMALL_M_TILES   1
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp6_e2m3_grouped_2
#define SMALL_M_FORMAT  SMALL_M_MXFP6_E2M3
#define SMALL_M_TILES   2
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp6_e2m3_grouped_4
#define SMALL_M_FORMAT  SMALL_M_MXFP6_E2M3
#define SMALL_M_TILES   4
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp6_e3m2_grouped_1
#define SMALL_M_FORMAT  SMALL_M_MXFP6_E3M2
#define SMALL_M_TILES   1
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp6_e3m2_grouped_2
#define SMALL_M_FORMAT  SMALL_M_MXFP6_E3M2
#define SMALL_M_TILES   2
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"

#define SMALL_M_NAME    small_m_mxfp6_e3m2_grouped_4
#define SMALL_M_FORMAT  SMALL_M_MXFP6_E3M2
#define SMALL_M_TILES   4
#define SMALL_M_GROUPED 1
#include "cuda/sm90a/small_m_body.h"
