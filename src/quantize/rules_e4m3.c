/* Rules that give a block an e4m3 scale, below an fp32 scale per tensor. 448 is e4m3's max. */
#include "quantize/recipe.h"

#include <float.h>
#include <math.h>

static const float e4m3_max = 448;

float bsmm_round_to(uint32_t elem, float value) {
    if (elem == BSMM_ELEM_F32) return value;
    return (float)bsmm_elem_decode(elem, bsmm_elem_encode(elem, (double)value, false));
}

/* NaN passes, as in torch.clamp. */
static float at_least(float value, float low) {
    return bsmm_select_float(value < low, low, value);
}

/* ---- torchao: per_tensor_amax_to_scale, nvfp4_quantize ---- */

/* Of zeros only, or of values so small that 1 / s overflows, torchao makes NaN; here the second
 * level is 1 then. */
void bsmm_tensor_torchao(float amax, bsmm_tensor_step *t) {
    float scale = amax / (e4m3_max * t->max);
    t->multiplier = isinf(1 / scale) ? 1 : scale;
    t->divisor = 1 / t->multiplier;
}

static inline bsmm_block_step e4m3_torchao(float amax, const bsmm_tensor_step *t) {
    float scale = at_least((amax / t->max) / t->multiplier, 0x1p-6f);
    uint32_t code = bsmm_e4m3_code(scale);
    return (bsmm_block_step){code, (1 / t->multiplier) / bsmm_e4m3_value(code)};
}

/* ---- TransformerEngine: quantization_ref_nvfp4.py, core_nvfp4.cuh ---- */

void bsmm_tensor_te(float amax, bsmm_tensor_step *t) {
    float encode = e4m3_max * t->max / amax;
    if (encode > FLT_MAX) encode = FLT_MAX;
    if (amax == 0 || encode == 0) encode = 1;
    t->divisor = encode;
    t->multiplier = 1 / encode;
}

static inline bsmm_block_step e4m3_te(float amax, const bsmm_tensor_step *t) {
    uint32_t code = bsmm_e4m3_code(amax * (t->divisor * (1 / t->max)));
    float factor = 1 / (bsmm_e4m3_value(code) * t->multiplier);
    return (bsmm_block_step){code, bsmm_select_float(factor > FLT_MAX, FLT_MAX, factor)};
}

/* ---- ModelOpt: NVFP4QTensor ---- */

/* Of zeros only, ModelOpt makes NaN; here the second level is 1 then. */
void bsmm_tensor_modelopt(float amax, bsmm_tensor_step *t) {
    float scale = amax / (t->max * e4m3_max);
    t->multiplier = scale == 0 ? 1 : scale;
    t->divisor = 1 / t->multiplier;
}

static inline bsmm_block_step e4m3_modelopt(float amax, const bsmm_tensor_step *t) {
    float scale = amax / (t->max * t->multiplier);
    uint32_t code = bsmm_e4m3_code(bsmm_select_float(scale == 0, 1, at_least(scale, 0x1p-9f)));
    return (bsmm_block_step){code, bsmm_e4m3_value(code) * t->multiplier};
}

/* ---- compressed-tensors: generate_gparam, calculate_qparams ---- */

/* torch divides a number by a tensor as reciprocal times number; both, and amax / 6, are rounded to
 * the weight's own type. */
void bsmm_tensor_compressed_tensors(float amax, bsmm_tensor_step *t) {
    float least = (float)bsmm_elem_row(t->source_elem)->min_normal;
    float reciprocal = bsmm_round_to(t->source_elem, 1 / at_least(amax, least));
    float divisor = bsmm_round_to(t->source_elem, reciprocal * (e4m3_max * t->max));
    t->divisor = isfinite(divisor) ? divisor : 1;
    t->multiplier = 1 / t->divisor;
}

static inline bsmm_block_step e4m3_compressed_tensors(float amax, const bsmm_tensor_step *t) {
    uint32_t code = bsmm_e4m3_code(t->divisor * bsmm_round_to(t->source_elem, amax / t->max));
    if (code == 0) code = bsmm_e4m3_code(0.125f);
    return (bsmm_block_step){code, bsmm_e4m3_value(code) / t->divisor};
}

/* ---- ggml: quantize_row_nvfp4_ref ---- */

/* ggml_fp32_to_ue4m3: half away from zero, and 256 or what rounds to it becomes 448. */
static uint32_t ggml_e4m3_code(float value) {
    if (!(value > 0)) return 0;
    uint32_t bits = bsmm_float_bits(value);
    if (bits < 0x3c800000u) /* 2^-6 */
        return (uint32_t)fminf(value * 512 + 0.5f, 7);
    uint32_t code = (bits - (120u << 23) + (1u << 19)) >> 20;
    return code < 15u << 3 ? code : 0x7e;
}

static inline bsmm_block_step e4m3_ggml(float amax, const bsmm_tensor_step *t) {
    uint32_t code = ggml_e4m3_code(amax / t->max);
    return (bsmm_block_step){code, bsmm_e4m3_value(code)};
}

/* ---- over a strip ---- */

void bsmm_e4m3_torchao(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e4m3_torchao, s, n, t);
}

void bsmm_e4m3_te(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e4m3_te, s, n, t);
}

void bsmm_e4m3_modelopt(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e4m3_modelopt, s, n, t);
}

void bsmm_e4m3_compressed_tensors(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e4m3_compressed_tensors, s, n, t);
}

void bsmm_e4m3_ggml(bsmm_strip_scales *s, int64_t n, const bsmm_tensor_step *t) {
    bsmm_each_block(e4m3_ggml, s, n, t);
}
