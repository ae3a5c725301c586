/* Rules that give a block an e8m0 scale: a biased exponent byte from the block's amax. */
#include "quantize/recipe.h"

#include <math.h>

static const uint32_t inf_bits = 0x7f800000u;
static const uint32_t nan_code = 255;

static uint32_t clamp_exponent(int exponent, int low, int high) {
    return (uint32_t)(exponent < low ? low : exponent > high ? high : exponent);
}

/* 2^(127 - code): exact, down to the subnormal 2^-127 of code 254. */
static float reciprocal(uint32_t code) {
    return bsmm_bits_float(code == 254 ? 0x00400000u : (254 - code) << 23);
}

/* A block whose scale is NaN keeps the signs of its finite values and nothing else: x / Inf. */
static bsmm_block_step with_reciprocal(uint32_t code) {
    return (bsmm_block_step){code, code == nan_code ? 0 : reciprocal(code)};
}

static int exponent_field(float amax) {
    return (int)(bsmm_float_bits(amax) >> 23);
}

/* OCP MX v1.0 section 6.3: the largest power of two <= amax, over that of the element's max. */
static uint32_t floor_code(float amax, const bsmm_tensor_step *t) {
    if (isnan(amax)) return nan_code;
    return clamp_exponent(exponent_field(amax) - t->emax, 0, 254);
}

static inline bsmm_block_step e8m0_floor(float amax, const bsmm_tensor_step *t) {
    return with_reciprocal(floor_code(amax, t));
}

static inline bsmm_block_step e8m0_ceil(float amax, const bsmm_tensor_step *t) {
    if (isnan(amax)) return with_reciprocal(nan_code);
    bool fraction = bsmm_float_bits(amax) & 0x7fffff;
    return with_reciprocal(clamp_exponent(exponent_field(amax) + fraction - t->emax, 0, 254));
}

/* amax rounded to the element's mantissa, half up, then floor. */
static uint32_t even_code(float amax, uint32_t mantissa_bits, int emax) {
    uint32_t bits = bsmm_float_bits(amax);
    if (bits > inf_bits) return nan_code;
    bits += 1u << (22 - mantissa_bits);
    return clamp_exponent((int)(bits >> 23) - emax, 0, 254);
}

static inline bsmm_block_step e8m0_even(float amax, const bsmm_tensor_step *t) {
    return with_reciprocal(even_code(amax, t->mantissa_bits, t->emax));
}

/* The least power of two that amax / max fits, 254 for Inf (satfinite). */
static uint32_t rceil_code(float descale) {
    if (isnan(descale)) return nan_code;
    return clamp_exponent((int)bsmm_ceil_exponent(descale), 0, 254);
}

static inline bsmm_block_step e8m0_rceil(float amax, const bsmm_tensor_step *t) {
    return with_reciprocal(rceil_code(amax / t->max));
}

/* torchao's eager floor divides by at least 2^-126, though byte 0 means 2^-127. */
static inline bsmm_block_step e8m0_torchao(float amax, const bsmm_tensor_step *t) {
    uint32_t code = floor_code(amax, t);
    return code ? with_reciprocal(code) : (bsmm_block_step){0, 0x1p126f};
}

/* TransformerEngine's exp2f_rcp has factor 1 for byte 0. */
static inline bsmm_block_step e8m0_te(float amax, const bsmm_tensor_step *t) {
    uint32_t code = rceil_code(amax * (1 / t->max));
    if (code == nan_code) return (bsmm_block_step){code, NAN};
    return code ? with_reciprocal(code) : (bsmm_block_step){0, 1};
}

float bsmm_log2_fp32(float value) {
    return (float)log2((double)value);
}

static inline bsmm_block_step e8m0_modelopt(float amax, const bsmm_tensor_step *t) {
    float exponent = ceilf(fmaxf(bsmm_log2_fp32(amax / t->max), -127));
    if (isnan(amax)) return with_reciprocal(nan_code);
    return with_reciprocal(clamp_exponent((int)fminf(exponent, 127) + 127, 0, 254));
}

static inline bsmm_block_step e8m0_ggml(float amax, const bsmm_tensor_step *t) {
    if (!(amax > 0)) return with_reciprocal(0);
    float exponent = floorf(bsmm_log2_fp32(amax)) - (float)t->emax + 127;
    return with_reciprocal((uint32_t)fminf(fmaxf(exponent, 0), 254));
}

/* Quark takes log2 of the rounded amax, so that rounding up to 2^128 gives the largest scale, and
 * stores byte 1 for 2^-127, though it divides by that. */
static inline bsmm_block_step e8m0_quark(float amax, const bsmm_tensor_step *t) {
    uint32_t rounded = bsmm_float_bits(amax) + (1u << (22 - t->mantissa_bits));
    if (!isnan(amax) && rounded >= inf_bits) return with_reciprocal(254);
    bsmm_block_step step = e8m0_even(amax, t);
    if (step.code == 0) step.code = 1;
    return step;
}

/* compressed-tensors rounds amax with e2m1's one mantissa bit for 4 and 8 bits alike, and with
 * e2m3's three for 6. */
static inline bsmm_block_step e8m0_compressed_tensors(float amax, const bsmm_tensor_step *t) {
    return with_reciprocal(even_code(amax, t->max == 7.5f ? 3 : 1, t->emax));
}

static inline bsmm_block_step e8m0_deepgemm(float amax, const bsmm_tensor_step *t) {
    float scale = bsmm_ceil_to_ue8m0((amax < 1e-4f ? 1e-4f : amax) / t->max);
    return with_reciprocal(bsmm_float_bits(scale) >> 23);
}

/* ---- over a strip ---- */

void bsmm_e8m0_floor(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e8m0_floor, s, n, t);
}

void bsmm_e8m0_ceil(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e8m0_ceil, s, n, t);
}

void bsmm_e8m0_even(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e8m0_even, s, n, t);
}

void bsmm_e8m0_rceil(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e8m0_rceil, s, n, t);
}

void bsmm_e8m0_torchao(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e8m0_torchao, s, n, t);
}

void bsmm_e8m0_te(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e8m0_te, s, n, t);
}

void bsmm_e8m0_modelopt(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e8m0_modelopt, s, n, t);
}

void bsmm_e8m0_ggml(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e8m0_ggml, s, n, t);
}

void bsmm_e8m0_quark(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e8m0_quark, s, n, t);
}

void bsmm_e8m0_compressed_tensors(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e8m0_compressed_tensors, s, n, t);
}

void bsmm_e8m0_deepgemm(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e8m0_deepgemm, s, n, t);
}
