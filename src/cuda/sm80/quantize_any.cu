/* The slow kernel for everything that the kernels of quantize.cu do not quantize: columns, blocks
 * of any shape, and results of 16 and 32 bits. A thread quantizes whole blocks, so many that its
 * codes share no byte with those of another thread. */
#include "cuda/sm80/quantize_item.h"

static __device__ __forceinline__ float load_value(const bsmm_quantize_job *job, uint32_t r,
                                                   uint32_t c) {
    uint64_t at = r * job->src_lines.row_step + c * job->src_lines.col_step;
    uint32_t code = job->src_elem == BSMM_LANE_F32 ? ((const uint32_t *)job->src)[at]
                                                   : ((const uint16_t *)job->src)[at];
    return bsmm_lane_value(job->src_elem, code);
}

/* Stores a code. A 6-bit code may straddle two bytes; all other codes in these bytes belong to the
 * same thread. */
static __device__ void store_code(const bsmm_quantize_job *job, uint64_t at, uint32_t code) {
    if (job->dst_bits == 32) ((uint32_t *)job->dst)[at] = code;
    if (job->dst_bits == 16) ((uint16_t *)job->dst)[at] = (uint16_t)code;
    if (job->dst_bits == 8) job->dst[at] = (uint8_t)code;
    if (job->dst_bits >= 8) return;
    uint64_t bit = at * job->dst_bits;
    uint8_t *to = job->dst + bit / 8;
    uint32_t shift = bit % 8, mask = (1u << job->dst_bits) - 1;
    to[0] = (uint8_t)((to[0] & ~(mask << shift)) | code << shift);
    if (shift + job->dst_bits > 8)
        to[1] = (uint8_t)((to[1] & ~(mask >> (8 - shift))) | code >> (8 - shift));
}

static __device__ void store_at(const bsmm_quantize_job *job, uint32_t r, uint32_t c,
                                uint32_t code) {
    store_code(job, r * job->dst_lines.row_step + c * job->dst_lines.col_step, code);
}

static __device__ uint32_t encode_wide(const bsmm_quantize_job *job, const bsmm_lane_encoder *e,
                                       float value) {
    if (job->dst_bits == 32) return bsmm_lane_encode_f32(job, e->factor, value);
    return bsmm_lane_encode(job, e, value);
}

/* Quantizes one block: rows [r, r_end) and columns [c, c_end). */
static __device__ void convert_block(const bsmm_quantize_job *job, uint32_t r, uint32_t r_end,
                                     uint32_t c, uint32_t c_end, const bsmm_tensor_step *t) {
    uint32_t amax = 0, limit = job->steps.skips_nan ? 0x7f800000u : UINT32_MAX;
    for (uint32_t i = r; i < r_end && job->scale; i++)
        for (uint32_t j = c; j < c_end; j++) {
            uint32_t a = __float_as_uint(load_value(job, i, j)) & 0x7fffffffu;
            amax = max(amax, a > limit ? 0 : a);
        }
    bsmm_block_step step = bsmm_block_by(job->steps.block, __uint_as_float(amax), t);
    if (job->scale) store_scale(job, r, bsmm_axis_at(&job->col_map, c), step.code);
    bsmm_lane_encoder e = bsmm_lane_encoder_of(job, step.factor);
    for (uint32_t i = r; i < r_end; i++)
        for (uint32_t j = c; j < c_end; j++)
            store_at(job, i, j, encode_wide(job, &e, load_value(job, i, j)));
}

/* Writes 0 to the codes past the last row or column that share bytes with existing codes. */
static __device__ void pad_group(const bsmm_quantize_job *job, uint32_t r, uint32_t r_end,
                                 uint32_t c, uint32_t c_end) {
    uint32_t group = job->dst_bits == 4 ? 2 : job->dst_bits == 6 ? 4 : 1;
    bool by_rows = job->dst_lines.col_step == 1;
    uint32_t rows_to = by_rows ? r_end : (r_end + group - 1) / group * group;
    uint32_t cols_to = by_rows ? (c_end + group - 1) / group * group : c_end;
    for (uint32_t i = r; i < rows_to; i++)
        for (uint32_t j = i < r_end ? c_end : c; j < cols_to; j++)
            store_at(job, i, j, 0);
}

static __device__ void convert_unit(const bsmm_quantize_job *job, uint32_t r, uint32_t r_end,
                                    uint32_t c, uint32_t c_end, const bsmm_tensor_step *t) {
    for (uint32_t i = r; i < r_end; i += job->block_rows)
        for (uint32_t j = c; j < c_end; j += job->block_cols)
            convert_block(job, i, min(i + job->block_rows, r_end), j,
                          min(j + job->block_cols, c_end), t);
    pad_group(job, r, r_end, c, c_end);
}

/* Quantizes units of unit_rows x unit_cols elements. A unit consists of whole blocks and of whole
 * bytes of codes. Units that are adjacent in memory belong to neighboring threads, so that accesses
 * coalesce. */
extern "C" __global__ void __launch_bounds__(QUANTIZE_THREADS, 2)
    quantize_any(const __grid_constant__ bsmm_quantize_job job, uint32_t unit_rows,
                 uint32_t unit_cols) {
    uint64_t fast = blockIdx.x * QUANTIZE_THREADS + threadIdx.x;
    bool by_rows = job.src_lines.col_step == 1;
    bsmm_tensor_step t = job.tensor;
    if (job.amax) t = bsmm_lane_tensor(&job.tensor, &job.steps, __ldg(job.amax));
    for (uint64_t slow = blockIdx.y;; slow += gridDim.y) {
        uint64_t r = (by_rows ? slow : fast) * unit_rows, c = (by_rows ? fast : slow) * unit_cols;
        if (r >= job.rows || c >= job.cols) return;
        convert_unit(&job, (uint32_t)r, (uint32_t)min(r + unit_rows, (uint64_t)job.rows),
                     (uint32_t)c, (uint32_t)min(c + unit_cols, (uint64_t)job.cols), &t);
    }
}
