/* Kernels that dequantize rows of codes of 4, 6 and 8 bits to f32, f16 and bf16. A slow kernel
 * converts everything else one element at a time. Memory bandwidth limits their speed: 2.5 to 5
 * bytes move per value. */
#include "cuda/sm80/dequantize_item.h"

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

/* ---- kernels that are specialized for one kind of scale ---- */

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

/* ---- the slow kernel, for any format and layout ---- */

static __device__ uint32_t load_code(const bsmm_dequantize_job *job, uint64_t at) {
    if (job->src_bits == 32) return ((const uint32_t *)job->src)[at];
    if (job->src_bits == 16) return ((const uint16_t *)job->src)[at];
    if (job->src_bits == 8) return job->src[at];
    uint64_t bit = at * job->src_bits;
    const uint8_t *from = job->src + bit / 8;
    uint32_t shift = bit % 8, word = from[0];
    if (shift + job->src_bits > 8) word |= (uint32_t)from[1] << 8;
    return word >> shift & ((1u << job->src_bits) - 1);
}

static __device__ uint32_t decode_any(const bsmm_dequantize_job *job, uint32_t r, uint32_t c) {
    uint32_t code = load_code(job, r * job->src_lines.row_step + c * job->src_lines.col_step);
    float element = job->src_bits > 8 ? bsmm_lane_value(job->src_elem, code)
                                      : bsmm_narrow_value(&job->codec, code);
    float scale = 1, global = job->global ? __ldg(job->global) : 1;
    if (job->scale)
        scale = bsmm_lane_scale_value(
            job->scale, load_scale_code(job, job->scale, r, bsmm_axis_at(&job->col_map, c)));
    return bsmm_lane_result(job, bsmm_lane_product(job, element, scale, global));
}

/* Dequantizes one element per thread. Neighboring threads write neighboring elements. */
extern "C" __global__ void __launch_bounds__(PACK_THREADS)
    dequantize_any(const __grid_constant__ bsmm_dequantize_job job) {
    bool by_rows = job.dst_lines.col_step == 1;
    uint32_t fast = blockIdx.x * PACK_THREADS + threadIdx.x;
    for (uint32_t slow = blockIdx.y;; slow += gridDim.y) {
        uint32_t r = by_rows ? slow : fast, c = by_rows ? fast : slow;
        if (r >= job.rows || c >= job.cols) return;
        uint32_t result = decode_any(&job, r, c);
        uint64_t at = r * job.dst_lines.row_step + c * job.dst_lines.col_step;
        if (job.dst_elem == BSMM_LANE_F32)
            ((uint32_t *)job.dst)[at] = result;
        else
            ((uint16_t *)job.dst)[at] = (uint16_t)result;
    }
}
