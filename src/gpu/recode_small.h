/* This is the GPU code of small conversions. It reads values to find a tensor's largest magnitude,
 * computes the second-level scale, copies scales to another layout, and copies elements to
 * row-major order. */
#ifndef BSMM_GPU_RECODE_SMALL_H
#define BSMM_GPU_RECODE_SMALL_H

#include "gpu/recode_lane.h"

/* Returns the magnitude of element `index` of a row or column as an integer. The integer is the
 * element's bits without the sign bit, at the top of a uint32. These integers have the same order
 * as the magnitudes. */
BSMM_DEVICE uint32_t bsmm_amax_code(uint32_t elem, const uint8_t *line, uint64_t index) {
    if (elem == BSMM_LANE_F32) return ((const uint32_t *)(const void *)line)[index] & 0x7fffffffu;
    return (uint32_t)((const uint16_t *)(const void *)line)[index] << 16 & 0x7fff0000u;
}

/* Stores the second-level scale of a tensor. `amax`, the tensor's largest magnitude, and `level`,
 * the result, may point to the same float, so the function reads *amax before it writes *level. */
BSMM_DEVICE void bsmm_level_store(const bsmm_level_job *job) {
    float level = 1;
    if (job->amax) {
        bsmm_tensor_step t = bsmm_lane_tensor(&job->tensor, &job->steps, *job->amax);
        level = job->by_divisor ? t.divisor : t.multiplier;
    }
    *job->level = level;
}

/* Loads the scale codes that a thread copies at once: four codes if `word` is true, else one code.
 * Codes outside the source are read as 0, because they are padding in the destination. */
BSMM_DEVICE uint32_t bsmm_move_load(const bsmm_relayout_job *job, bool word, uint32_t row,
                                    uint32_t column) {
    if (row >= job->known_rows || column >= job->known_cols) return 0;
    uint64_t at = bsmm_axis_at(&job->from_row_map, row) + bsmm_axis_at(&job->from_col_map, column);
    const uint8_t *from = job->from + (job->wide ? 4 * at : at);
    return word ? bsmm_load_word(from) : bsmm_load_byte(from);
}

BSMM_DEVICE void bsmm_move_store(const bsmm_relayout_job *job, bool word, uint32_t row,
                                 uint32_t column, uint32_t code) {
    uint64_t at = bsmm_axis_at(&job->to_row_map, row) + bsmm_axis_at(&job->to_col_map, column);
    uint8_t *to = job->to + (job->wide ? 4 * at : at);
    if (word)
        *(uint32_t *)(void *)to = code;
    else
        *to = (uint8_t)code;
}

/* Copies the elements 8 * item to 8 * item + 7 of a row, or fewer at the end of the row. If an
 * element has n bits, eight elements fill n bytes. The bits after the last element become 0. */
BSMM_DEVICE void bsmm_move_codes(const bsmm_codes_job *job, uint32_t row, uint32_t item) {
    uint64_t done = (uint64_t)item * job->bits, held = 0;
    uint32_t bits = 0, c = 8 * item;
    for (uint8_t *to = job->to + row * job->pitch; done < job->pitch && c < 8 * item + 8; c++) {
        uint64_t at = row * job->lines.row_step + c * job->lines.col_step;
        uint64_t code = c < job->cols ? bsmm_lane_load_code(job->from, job->bits, at) : 0;
        held |= code << bits;
        for (bits += job->bits; bits >= 8 && done < job->pitch; bits -= 8, held >>= 8)
            to[done++] = (uint8_t)held;
    }
}

#endif
