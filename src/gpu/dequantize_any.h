/* Dequantizes matrices for which no faster kernel exists, one element at a time. */
#ifndef BSMM_GPU_DEQUANTIZE_ANY_H
#define BSMM_GPU_DEQUANTIZE_ANY_H

#include "gpu/recode_lane.h"

BSMM_DEVICE uint32_t bsmm_any_decode(const bsmm_dequantize_job *job, uint32_t r, uint32_t c) {
    uint32_t code = bsmm_lane_load_code(job->src, job->src_bits,
                                        r * job->src_lines.row_step + c * job->src_lines.col_step);
    float element = job->src_bits > 8 ? bsmm_lane_value(job->src_elem, code)
                                      : bsmm_narrow_value(&job->codec, code);
    float scale = 1, global = job->global ? bsmm_bits_float(bsmm_load_word(job->global)) : 1;
    if (job->scale)
        scale = bsmm_lane_scale_value(
            job->scale, bsmm_lane_load_scale(job, job->scale, r, bsmm_axis_at(&job->col_map, c)));
    return bsmm_lane_result(job, bsmm_lane_product(job, element, scale, global));
}

/* Dequantizes all elements that one thread computes. A line is a row of a row-major result, or a
 * column of a column-major result. The thread computes element number `fast` of lines `slow`, slow
 * + step, slow + 2 * step and so on. Neighboring threads have neighboring values of `fast`, so they
 * store adjacent elements. */
BSMM_DEVICE void bsmm_any_dequantize(const bsmm_dequantize_job *job, uint32_t fast, uint32_t slow,
                                     uint32_t step) {
    bool by_rows = job->dst_lines.col_step == 1;
    for (;; slow += step) {
        uint32_t r = by_rows ? slow : fast, c = by_rows ? fast : slow;
        if (r >= job->rows || c >= job->cols) return;
        uint32_t result = bsmm_any_decode(job, r, c);
        uint64_t at = r * job->dst_lines.row_step + c * job->dst_lines.col_step;
        if (job->dst_elem == BSMM_LANE_F32)
            ((uint32_t *)(void *)job->dst)[at] = result;
        else
            ((uint16_t *)(void *)job->dst)[at] = (uint16_t)result;
    }
}

#endif
