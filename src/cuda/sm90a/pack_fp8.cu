/* These kernels pack elements of 4, 6 and 8 bits to 8-bit floats (gpu/pack.h explains packing).
 * Memory bandwidth limits their speed: 24 to 32 bytes are read and written for 16 elements. The
 * kernels are compiled for sm_90a for two reasons: they use conversion instructions of sm_90a, and
 * only the GEMM kernels for sm_90a multiply packed 8-bit floats. */
#include "cuda/sm80/pack_fast.h"

#define NAME    pack_rows_e2m1_fp8
#define KIND    FOLD_E2M1
#define BITS    4
#define BY_ROWS 1
#include "cuda/sm80/pack_fold_body.h"

#define NAME    pack_rows_e2m3_fp8
#define KIND    FOLD_E2M3
#define BITS    6
#define BY_ROWS 1
#include "cuda/sm80/pack_fold_body.h"

#define NAME    pack_rows_e3m2_fp8
#define KIND    FOLD_E3M2
#define BITS    6
#define BY_ROWS 1
#include "cuda/sm80/pack_fold_body.h"

#define NAME    pack_rows_8_fp8
#define BITS    8
#define OUT     8
#define BY_ROWS 1
#define E8M0    0
#include "cuda/sm80/pack_narrow_body.h"

#define NAME    pack_rows_e4m3_fast
#define KIND    FOLD_E4M3
#define BITS    8
#define BY_ROWS 1
#include "cuda/sm80/pack_fold_body.h"

#define NAME    pack_rows_e5m2_fast
#define KIND    FOLD_E5M2
#define BITS    8
#define BY_ROWS 1
#include "cuda/sm80/pack_fold_body.h"

#define NAME    pack_columns_e2m1_fp8
#define KIND    FOLD_E2M1
#define BITS    4
#define BY_ROWS 0
#include "cuda/sm80/pack_fold_body.h"

#define NAME    pack_columns_e2m3_fp8
#define KIND    FOLD_E2M3
#define BITS    6
#define BY_ROWS 0
#include "cuda/sm80/pack_fold_body.h"

#define NAME    pack_columns_e3m2_fp8
#define KIND    FOLD_E3M2
#define BITS    6
#define BY_ROWS 0
#include "cuda/sm80/pack_fold_body.h"

#define NAME    pack_columns_8_fp8
#define BITS    8
#define OUT     8
#define BY_ROWS 0
#define E8M0    0
#include "cuda/sm80/pack_narrow_body.h"

#define NAME    pack_columns_e4m3_fast
#define KIND    FOLD_E4M3
#define BITS    8
#define BY_ROWS 0
#include "cuda/sm80/pack_fold_body.h"

#define NAME    pack_columns_e5m2_fast
#define KIND    FOLD_E5M2
#define BITS    8
#define BY_ROWS 0
#include "cuda/sm80/pack_fold_body.h"
