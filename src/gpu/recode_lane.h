/* These functions do the work per element of the GPU kernels that quantize and dequantize. The
 * results are bitwise identical to the results of the CPU code (src/quantize). */
#ifndef BSMM_GPU_RECODE_LANE_H
#define BSMM_GPU_RECODE_LANE_H

#include "gpu/recode.h"
#include "recipe/rules.h"

/* BSMM_LANE_F32, BSMM_LANE_F16 and BSMM_LANE_BF16 are the values of BSMM_ELEM_F32, BSMM_ELEM_F16
 * and BSMM_ELEM_BF16. */
enum { BSMM_LANE_F32 = 1, BSMM_LANE_F16 = 2, BSMM_LANE_BF16 = 3 };

/* Converts f16 to fp32. Multiplying by 2^112 corrects the exponent bias, also for subnormals. Inf
 * and NaN keep an exponent of all ones, and NaN keeps its payload. */
BSMM_SHARED float bsmm_lane_f16(uint32_t code) {
    float scaled = bsmm_bits_float((code & 0x7fff) << 13) * 0x1p112f;
    uint32_t special = (code & 0x7c00) == 0x7c00 ? 0x7f800000u : 0;
    return bsmm_bits_float(bsmm_float_bits(scaled) | special | (code & 0x8000) << 16);
}

BSMM_SHARED float bsmm_lane_value(uint32_t elem, uint32_t code) {
    if (elem == BSMM_LANE_F32) return bsmm_bits_float(code);
    return elem == BSMM_LANE_F16 ? bsmm_lane_f16(code) : bsmm_bits_float(code << 16);
}

/* Returns code number `at` of an array of codes. A code has `bits` bits. */
BSMM_DEVICE uint32_t bsmm_lane_load_code(const uint8_t *codes, uint32_t bits, uint64_t at) {
    if (bits == 32) return ((const uint32_t *)(const void *)codes)[at];
    if (bits == 16) return ((const uint16_t *)(const void *)codes)[at];
    if (bits == 8) return codes[at];
    uint64_t bit = at * bits;
    const uint8_t *from = codes + bit / 8;
    uint32_t shift = bit % 8, word = from[0];
    if (shift + bits > 8) word |= (uint32_t)from[1] << 8;
    return word >> shift & ((1u << bits) - 1);
}

/* Returns the constants of the recipe (the rules for computing scales) that are the same for all
 * blocks of a tensor. These constants depend on the second-level scale and therefore on the
 * tensor's largest magnitude, `amax`. */
BSMM_SHARED bsmm_tensor_step bsmm_lane_tensor(const bsmm_tensor_step *base,
                                              const bsmm_recipe_steps *steps, float amax) {
    bsmm_tensor_step t = *base;
    bsmm_tensor_by(steps->tensor, amax, &t);
    return t;
}

/* Stores the scale code of a block. The block lies in row `row`. `column` is the part of the
 * scale's offset that depends on the block's column (bsmm_axis_at). */
BSMM_DEVICE void bsmm_lane_store_scale(const bsmm_quantize_job *job, uint32_t row, uint64_t column,
                                       uint32_t code) {
    uint64_t at = bsmm_axis_at(&job->row_map, row) + column;
    if (job->scale == 3)
        ((uint32_t *)(void *)job->scales)[at] = code;
    else
        job->scales[at] = (uint8_t)code;
}

BSMM_DEVICE uint32_t bsmm_lane_load_scale(const bsmm_dequantize_job *job, uint32_t scale,
                                          uint32_t row, uint64_t column_offset) {
    uint64_t at = bsmm_axis_at(&job->row_map, row) + column_offset;
    return scale == 3 ? bsmm_load_word(job->scales + 4 * at) : bsmm_load_byte(job->scales + at);
}

/* Holds the constants with which the values of one block are encoded. */
typedef struct bsmm_lane_encoder {
    float factor;
    uint32_t nan_mask, bounds[7], limit;
} bsmm_lane_encoder;

BSMM_SHARED bsmm_lane_encoder bsmm_lane_encoder_of(const bsmm_quantize_job *job, float factor) {
    bsmm_lane_encoder e;
    bool compares = job->steps.step == BSMM_STEP_COMPARE;
    e.factor = factor;
    e.nan_mask = bsmm_coder_nan_mask(&job->coder);
    e.limit = compares ? 0x7f7fffffu : 0x7f800000u;
    BSMM_UNROLL
    for (int j = 0; j < 7; j++) {
        float bound = compares ? bsmm_e2m1_midpoint(j) * factor : bsmm_e2m1_midpoint(j);
        e.bounds[j] = compares && !(factor > 0) ? 0x7f800000u : bsmm_float_bits(bound);
    }
    return e;
}

BSMM_SHARED uint32_t bsmm_lane_encode(const bsmm_quantize_job *job, const bsmm_lane_encoder *e,
                                      float value) {
    if (job->scale && job->steps.step == BSMM_STEP_MULTIPLY) value = bsmm_mul(value, e->factor);
    if (job->scale && job->steps.step == BSMM_STEP_DIVIDE) value = bsmm_div(value, e->factor);
    uint32_t bits = bsmm_float_bits(value);
    return job->coder.down ? bsmm_coder_down(&job->coder, e->bounds, e->limit, bits)
                           : bsmm_coder_even(&job->coder, e->nan_mask, bits);
}

/* Multiplies or divides an f32 value by the factor of its block, for results that are stored as
 * f32. If a finite value overflows, the result is the largest finite number. */
BSMM_SHARED uint32_t bsmm_lane_encode_f32(const bsmm_quantize_job *job, float factor, float value) {
    if (!job->scale) return bsmm_float_bits(value);
    value = job->steps.step == BSMM_STEP_DIVIDE ? bsmm_div(value, factor) : bsmm_mul(value, factor);
    uint32_t bits = bsmm_float_bits(value);
    return (bits & 0x7fffffffu) == 0x7f800000u ? bits - 1 : bits;
}

/* Rounds a double to fp32 by rounding to odd: truncates toward zero and sets the last bit if the
 * result is inexact. A second rounding, to 22 bits or fewer, then gives the same result as one
 * rounding of the double. */
BSMM_SHARED float bsmm_lane_round_to_odd(double value) {
    float nearest = (float)value;
    uint32_t bits = bsmm_float_bits(nearest);
    double magnitude = value < 0 ? -value : value;
    double rest = magnitude - (double)bsmm_bits_float(bits & 0x7fffffffu);
    if (!(magnitude <= 1.7976931348623157e308) || rest == 0) return nearest;
    /* Rounding to odd first truncates toward zero. If the nearest fp32 number is larger in
     * magnitude than the value, the truncated value is the next smaller fp32 number, whose bits are
     * less by 1. This also turns Inf into the largest finite number. */
    if (rest < 0) bits--;
    return bsmm_bits_float(bits | 1);
}

/* Returns the value of a scale code. A NaN code gives fp32's default NaN, 0x7fc00000. */
BSMM_SHARED float bsmm_lane_scale_value(uint32_t scale, uint32_t code) {
    if (scale == 1) return code == 255 ? bsmm_bits_float(0x7fc00000u) : bsmm_pow2((int)code - 127);
    if (scale == 2) return bsmm_e4m3_value(code);
    float value = bsmm_bits_float(code);
    return value == value ? value : bsmm_bits_float(0x7fc00000u);
}

/* Returns the NaN that an x86 CPU makes when it computes element * scale * global. This is the
 * first NaN among the three factors, as a quiet NaN. If no factor is NaN (for example in Inf * 0),
 * it is the default NaN with its sign bit set. */
BSMM_SHARED float bsmm_lane_nan(float element, float scale, float global) {
    float given = element != element ? element : scale != scale ? scale : global;
    return bsmm_bits_float(given != given ? bsmm_float_bits(given) | 0x00400000u : 0xffc00000u);
}

/* Returns element * scale * global, or element * scale / global, in fp32. `global` is the
 * second-level scale, and missing factors are 1. If the result is stored as f32, it is rounded to
 * nearest. Otherwise it is rounded to odd. A later rounding to f16 or bf16 then gives the same
 * result as one rounding of the exact product. */
BSMM_SHARED float bsmm_lane_product(const bsmm_dequantize_job *job, float element, float scale,
                                    float global) {
    double value = (double)element * (double)scale;
    value = job->by_divisor ? value / (double)global : value * (double)global;
    if (value != value) return bsmm_lane_nan(element, scale, global);
    return job->dst_elem == BSMM_LANE_F32 ? (float)value : bsmm_lane_round_to_odd(value);
}

BSMM_SHARED uint32_t bsmm_lane_result(const bsmm_dequantize_job *job, float value) {
    uint32_t bits = bsmm_float_bits(value);
    if (job->dst_elem == BSMM_LANE_F32) return bits;
    return bsmm_coder_even(&job->coder, bsmm_coder_nan_mask(&job->coder), bits);
}

#endif
