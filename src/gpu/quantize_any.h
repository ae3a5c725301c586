/* Quantizes matrices for which no faster kernel exists: column-major matrices, blocks of any shape,
 * and results of 16 and 32 bits. Each thread quantizes whole scale blocks. No byte of the result
 * holds elements of two threads, so threads never write the same byte. */
#ifndef BSMM_GPU_QUANTIZE_ANY_H
#define BSMM_GPU_QUANTIZE_ANY_H

#include "gpu/recode_lane.h"

BSMM_DEVICE uint32_t bsmm_any_least(uint64_t a, uint64_t b) {
    return (uint32_t)(a < b ? a : b);
}

BSMM_DEVICE float bsmm_any_load_value(const bsmm_quantize_job *job, uint32_t r, uint32_t c) {
    uint64_t at = r * job->src_lines.row_step + c * job->src_lines.col_step;
    uint32_t code = job->src_elem == BSMM_LANE_F32 ? ((const uint32_t *)(const void *)job->src)[at]
                                                   : ((const uint16_t *)(const void *)job->src)[at];
    return bsmm_lane_value(job->src_elem, code);
}

/* Stores one element of the result. A 6-bit element may straddle two bytes. All elements in these
 * bytes belong to this thread, so the thread may read and write the bytes without a race. */
BSMM_DEVICE void bsmm_any_store_code(const bsmm_quantize_job *job, uint64_t at, uint32_t code) {
    if (job->dst_bits == 32) ((uint32_t *)(void *)job->dst)[at] = code;
    if (job->dst_bits == 16) ((uint16_t *)(void *)job->dst)[at] = (uint16_t)code;
    if (job->dst_bits == 8) job->dst[at] = (uint8_t)code;
    if (job->dst_bits >= 8) return;
    uint64_t bit = at * job->dst_bits;
    uint8_t *to = job->dst + bit / 8;
    uint32_t shift = bit % 8, mask = (1u << job->dst_bits) - 1;
    to[0] = (uint8_t)((to[0] & ~(mask << shift)) | code << shift);
    if (shift + job->dst_bits > 8)
        to[1] = (uint8_t)((to[1] & ~(mask >> (8 - shift))) | code >> (8 - shift));
}

BSMM_DEVICE void bsmm_any_store_at(const bsmm_quantize_job *job, uint32_t r, uint32_t c,
                                   uint32_t code) {
    bsmm_any_store_code(job, r * job->dst_lines.row_step + c * job->dst_lines.col_step, code);
}

BSMM_DEVICE uint32_t bsmm_any_encode_wide(const bsmm_quantize_job *job, const bsmm_lane_encoder *e,
                                          float value) {
    if (job->dst_bits == 32) return bsmm_lane_encode_f32(job, e->factor, value);
    return bsmm_lane_encode(job, e, value);
}

/* Quantizes one scale block: rows [r, r_end) and columns [c, c_end). */
BSMM_DEVICE void bsmm_any_convert_block(const bsmm_quantize_job *job, uint32_t r, uint32_t r_end,
                                        uint32_t c, uint32_t c_end, const bsmm_tensor_step *t) {
    uint32_t amax = 0, limit = job->steps.skips_nan ? 0x7f800000u : UINT32_MAX;
    for (uint32_t i = r; i < r_end && job->scale; i++)
        for (uint32_t j = c; j < c_end; j++) {
            uint32_t a = bsmm_float_bits(bsmm_any_load_value(job, i, j)) & 0x7fffffffu;
            amax = bsmm_max_u32(amax, a > limit ? 0 : a);
        }
    bsmm_block_step step = bsmm_block_by(job->steps.block, bsmm_bits_float(amax), t);
    if (job->scale) bsmm_lane_store_scale(job, r, bsmm_axis_at(&job->col_map, c), step.code);
    bsmm_lane_encoder e = bsmm_lane_encoder_of(job, step.factor);
    for (uint32_t i = r; i < r_end; i++)
        for (uint32_t j = c; j < c_end; j++)
            bsmm_any_store_at(job, i, j,
                              bsmm_any_encode_wide(job, &e, bsmm_any_load_value(job, i, j)));
}

/* Stores zeros past the last row or column, so that the last byte group is complete. A byte group
 * is the smallest number of elements that fills whole bytes: 2 elements of 4 bits, 4 elements of 6
 * bits, or 1 element of 8 bits. */
BSMM_DEVICE void bsmm_any_pad_group(const bsmm_quantize_job *job, uint32_t r, uint32_t r_end,
                                    uint32_t c, uint32_t c_end) {
    uint32_t group = job->dst_bits == 4 ? 2 : job->dst_bits == 6 ? 4 : 1;
    bool by_rows = job->dst_lines.col_step == 1;
    uint32_t rows_to = by_rows ? r_end : (r_end + group - 1) / group * group;
    uint32_t cols_to = by_rows ? (c_end + group - 1) / group * group : c_end;
    for (uint32_t i = r; i < rows_to; i++)
        for (uint32_t j = i < r_end ? c_end : c; j < cols_to; j++)
            bsmm_any_store_at(job, i, j, 0);
}

BSMM_DEVICE void bsmm_any_convert_unit(const bsmm_quantize_job *job, uint32_t r, uint32_t r_end,
                                       uint32_t c, uint32_t c_end, const bsmm_tensor_step *t) {
    for (uint32_t i = r; i < r_end; i += job->block_rows)
        for (uint32_t j = c; j < c_end; j += job->block_cols)
            bsmm_any_convert_block(job, i, bsmm_any_least(i + job->block_rows, r_end), j,
                                   bsmm_any_least(j + job->block_cols, c_end), t);
    bsmm_any_pad_group(job, r, r_end, c, c_end);
}

/* Quantizes the units of one thread. A unit is a rectangle of unit_rows x unit_cols elements that
 * consists of whole scale blocks and whole bytes of the result. A line is a row of units if the
 * source is row-major, else a column of units. The thread quantizes unit number `fast` of the lines
 * `slow`, slow + step, slow + 2 * step and so on. Neighboring threads have neighboring values of
 * `fast`, so they read adjacent memory. */
BSMM_DEVICE void bsmm_any_quantize(const bsmm_quantize_job *job, uint32_t unit_rows,
                                   uint32_t unit_cols, uint64_t fast, uint64_t slow,
                                   uint64_t step) {
    bool by_rows = job->src_lines.col_step == 1;
    bsmm_tensor_step t = job->tensor;
    if (job->amax)
        t = bsmm_lane_tensor(&job->tensor, &job->steps, bsmm_bits_float(bsmm_load_word(job->amax)));
    for (;; slow += step) {
        uint64_t r = (by_rows ? slow : fast) * unit_rows, c = (by_rows ? fast : slow) * unit_cols;
        if (r >= job->rows || c >= job->cols) return;
        bsmm_any_convert_unit(job, (uint32_t)r, bsmm_any_least(r + unit_rows, job->rows),
                              (uint32_t)c, bsmm_any_least(c + unit_cols, job->cols), &t);
    }
}

#endif
