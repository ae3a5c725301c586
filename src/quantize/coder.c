/* fp32 to codes of 16 bits and fewer, a run at a time and without branches. */
#include "quantize/coder.h"

#include <math.h>

static const uint32_t sign_mask = 0x80000000u, inf_bits = 0x7f800000u;

static void set_zero_sign(bsmm_coder *coder, bsmm_zero_sign rule, bool one_zero) {
    coder->zero_and = rule == BSMM_ZERO_KEEPS_SIGN ? UINT32_MAX : 0;
    coder->zero_or = rule == BSMM_ZERO_MINUS ? sign_mask : 0;
    coder->zero_code_and = rule == BSMM_ZERO_CODE_PLUS || one_zero ? 0 : UINT32_MAX;
}

bsmm_coder bsmm_coder_make(uint32_t elem, bool saturate, bsmm_ties ties, bsmm_zero_sign zero_sign) {
    const bsmm_elem_info *info = bsmm_elem_row(elem);
    uint32_t shift = 23 - info->mantissa_bits, sign = 1u << (info->bits - 1);
    bsmm_coder coder = {
        .shift = shift,
        .rebias = ((uint32_t)(info->bias - 127) << 23) + ((1u << shift) >> 1) - 1,
        .min_normal = bsmm_float_bits((float)info->min_normal),
        .magic = bsmm_float_bits(ldexpf((float)info->min_subnormal, 23)),
        .max_code = bsmm_elem_encode(elem, INFINITY, saturate),
        .nan_code = bsmm_elem_encode(elem, NAN, true) & ~sign,
        .sign_shift = 32 - info->bits,
        .down = ties == BSMM_TIES_DOWN,
    };
    bool one_zero = bsmm_elem_encode(elem, -0.0, true) == 0;
    coder.nan_sign = one_zero ? sign : 0;
    coder.nan_code |= coder.nan_sign;
    set_zero_sign(&coder, zero_sign, one_zero);
    return coder;
}

/* The magnitude's code, nearest even: the rounding carry runs into the exponent. */
static inline uint32_t nearest_even(const bsmm_coder *k, uint32_t a) {
    uint32_t normal = (a + k->rebias + (a >> k->shift & 1)) >> k->shift;
    uint32_t small = bsmm_float_bits(bsmm_bits_float(a) + bsmm_bits_float(k->magic)) - k->magic;
    uint32_t code = a < k->min_normal ? small : normal;
    return code < k->max_code ? code : k->max_code;
}

/* The midpoints between e2m1's magnitudes. */
static const float midpoints[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};

static inline uint32_t signed_code(const bsmm_coder *k, uint32_t bits, uint32_t a, uint32_t code) {
    uint32_t sign = bits & sign_mask;
    sign = a == 0 ? (sign & k->zero_and) | k->zero_or : sign;
    sign &= code == 0 ? k->zero_code_and : UINT32_MAX;
    return code | sign >> k->sign_shift;
}

static void run_even(const bsmm_coder *coder, const float *values, int64_t n, uint16_t *codes) {
    const bsmm_coder k = *coder;
    uint32_t nan_sign_and = k.nan_code == 0 || k.nan_sign ? 0 : UINT32_MAX;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = bsmm_float_bits(values[i]), a = bits & ~sign_mask;
        uint32_t code = signed_code(&k, bits, a, nearest_even(&k, a));
        uint32_t nan = k.nan_code | ((bits & sign_mask) >> k.sign_shift & nan_sign_and);
        codes[i] = (uint16_t)(a > inf_bits ? nan : code);
    }
}

/* A bound belongs to the value below it, so a code is the count of bounds exceeded; magnitudes
 * above `limit` exceed none. */
static void run_down(const bsmm_coder *coder, const float *values, int64_t n,
                     const uint32_t bounds[7], uint32_t limit, uint16_t *codes) {
    const bsmm_coder k = *coder;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = bsmm_float_bits(values[i]), a = bits & ~sign_mask, count = 0;
        for (int j = 0; j < 7; j++)
            count += a > bounds[j];
        codes[i] = (uint16_t)signed_code(&k, bits, a, a > limit ? 0 : count);
    }
}

void bsmm_coder_run(const bsmm_coder *coder, const float *values, int64_t n, uint16_t *codes) {
    uint32_t bounds[7];
    if (!coder->down) {
        run_even(coder, values, n, codes);
        return;
    }
    for (int j = 0; j < 7; j++)
        bounds[j] = bsmm_float_bits(midpoints[j]);
    run_down(coder, values, n, bounds, inf_bits, codes);
}

void bsmm_coder_run_bounds(const bsmm_coder *coder, const float *values, int64_t n, float scale,
                           uint16_t *codes) {
    uint32_t bounds[7];
    for (int j = 0; j < 7; j++)
        bounds[j] = scale > 0 ? bsmm_float_bits(midpoints[j] * scale) : inf_bits;
    run_down(coder, values, n, bounds, inf_bits - 1, codes);
}
