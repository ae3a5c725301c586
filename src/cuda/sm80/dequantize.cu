/* Defines kernels that dequantize row-major matrices with elements of 4, 6 and 8 bits to f32, f16
 * and bf16. Memory bandwidth limits their speed: they read and write 2.5 to 5 bytes per element. A
 * slow kernel converts all other matrices one element at a time. */
#include "cuda/sm80/dequantize_item.h"
#include "gpu/dequantize_any.h"

#define NAME dequantize_rows_4_f32
#define BITS 4
#define WIDE 1
#include "cuda/sm80/dequantize_body.h"

#define NAME dequantize_rows_4_f16
#define BITS 4
#define WIDE 0
#include "cuda/sm80/dequantize_body.h"

#define NAME dequantize_rows_6_f32
#define BITS 6
#define WIDE 1
#include "cuda/sm80/dequantize_body.h"

#define NAME dequantize_rows_6_f16
#define BITS 6
#define WIDE 0
#include "cuda/sm80/dequantize_body.h"

#define NAME dequantize_rows_8_f32
#define BITS 8
#define WIDE 1
#include "cuda/sm80/dequantize_body.h"

#define NAME dequantize_rows_8_f16
#define BITS 8
#define WIDE 0
#include "cuda/sm80/dequantize_body.h"

#define NAME    dequantize_mx_4_bf16
#define BITS    4
#define WIDE    0
#define SCALE   1
#define WAY     BSMM_WAY_EXACT
#define FAST    TO_BF16
#define IS_BF16 1
#include "cuda/sm80/dequantize_body.h"

#define NAME    dequantize_mx_6_bf16
#define BITS    6
#define WIDE    0
#define SCALE   1
#define WAY     BSMM_WAY_EXACT
#define FAST    TO_BF16
#define IS_BF16 1
#include "cuda/sm80/dequantize_body.h"

#define NAME    dequantize_mx_8_bf16
#define BITS    8
#define WIDE    0
#define SCALE   1
#define WAY     BSMM_WAY_EXACT
#define FAST    TO_BF16
#define IS_BF16 1
#include "cuda/sm80/dequantize_body.h"

#define NAME    dequantize_nv_4_bf16_multiply
#define BITS    4
#define WIDE    0
#define SCALE   2
#define WAY     BSMM_WAY_MULTIPLY
#define FAST    BY_TABLE
#define IS_BF16 1
#include "cuda/sm80/dequantize_body.h"

#define NAME    dequantize_nv_4_bf16_divide
#define BITS    4
#define WIDE    0
#define SCALE   2
#define WAY     BSMM_WAY_DIVIDE
#define FAST    BY_TABLE
#define IS_BF16 1
#include "cuda/sm80/dequantize_body.h"

#define NAME    dequantize_fp8_bf16
#define BITS    8
#define WIDE    0
#define SCALE   3
#define WAY     BSMM_WAY_MULTIPLY
#define FAST    ROUNDED_BF16
#define IS_BF16 1
#include "cuda/sm80/dequantize_body.h"

#define NAME    dequantize_mx_4_f16
#define BITS    4
#define WIDE    0
#define SCALE   1
#define WAY     BSMM_WAY_EXACT
#define FAST    BY_TABLE
#define IS_BF16 0
#include "cuda/sm80/dequantize_body.h"

#define NAME    dequantize_nv_4_f16_multiply
#define BITS    4
#define WIDE    0
#define SCALE   2
#define WAY     BSMM_WAY_MULTIPLY
#define FAST    BY_TABLE
#define IS_BF16 0
#include "cuda/sm80/dequantize_body.h"

#define NAME    dequantize_nv_4_f16_divide
#define BITS    4
#define WIDE    0
#define SCALE   2
#define WAY     BSMM_WAY_DIVIDE
#define FAST    BY_TABLE
#define IS_BF16 0
#include "cuda/sm80/dequantize_body.h"

#define NAME    dequantize_fp8_f16
#define BITS    8
#define WIDE    0
#define SCALE   3
#define WAY     BSMM_WAY_MULTIPLY
#define FAST    (BSMM_WAY_MULTIPLY | BY_CVT)
#define IS_BF16 0
#include "cuda/sm80/dequantize_body.h"

extern "C" __global__ void __launch_bounds__(PACK_THREADS)
    dequantize_any(const __grid_constant__ bsmm_dequantize_job job) {
    bsmm_any_dequantize(&job, blockIdx.x * PACK_THREADS + threadIdx.x, blockIdx.y, gridDim.y);
}
