/* Declares conversions between float formats. The common conversions have no branches, so that
 * compilers can vectorize loops over lanes. */
#ifndef SIM_GFX9_FLOATS_H
#define SIM_GFX9_FLOATS_H
#include "common/floats.h"
#include <math.h>

static inline float gfx9_f16_to_f32(uint32_t h) {
    const uint32_t sign = (h & 0x8000) << 16, rest = h & 0x7fff;
    const uint32_t normal = (rest << 13) + (112u << 23);
    const uint32_t special = (rest << 13) | 0x7f800000;
    const float small = (float)(int32_t)rest * 0x1p-24f;
    const uint32_t u = rest >= 0x7c00 ? special : rest >= 0x400 ? normal : sim_bits(small);
    return sim_float(u | sign);
}

/* Converts f32 to f16 with rounding to nearest even. A subnormal result is rounded by an addition
 * of 0.5 in f32: the sum lies between 0.5 and 1, where f32 numbers are multiples of 2^-24, and
 * f16's subnormal numbers are the multiples of 2^-24 too. */
static inline uint32_t gfx9_f32_to_f16(float f) {
    const uint32_t u = sim_bits(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    const uint32_t normal = (a + 0xfff + (a >> 13 & 1) - (112u << 23)) >> 13;
    const uint32_t small = sim_bits(sim_float(a) + 0.5f) - 0x3f000000;
    const uint32_t nan = a > 0x7f800000 ? 0x7e00 | (a >> 13 & 0x3ff) : 0x7c00;
    return sign | (a >= 0x477ff000 ? nan : a >= 0x38800000 ? normal : small);
}

/* Converts f32 to f16 with rounding toward zero. */
static inline uint32_t gfx9_f16_chopped(float a) {
    const uint32_t u = sim_bits(a), e = u >> 23 & 255;
    if (e == 255) return gfx9_f32_to_f16(a);
    if (e >= 143) return (u >> 16 & 0x8000) | 0x7bff;
    if (e >= 113) return (u >> 16 & 0x8000) | ((u & 0x7fffffff) - (112u << 23)) >> 13;
    return (u >> 16 & 0x8000) | (uint32_t)fabsf(a * 0x1p24f);
}

static inline float gfx9_bf16_to_f32(uint32_t b) {
    return sim_float(b << 16);
}
static inline uint32_t gfx9_f32_to_bf16(float f) {
    const uint32_t u = sim_bits(f);
    return (u & 0x7fffffff) > 0x7f800000 ? (u >> 16) | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

/* Names the float formats of at most 8 bits. FP8 is e4m3, BF8 is e5m2, FP6 is e2m3, BF6 is e3m2
 * and FP4 is e2m1. docs/SIMULATOR.md describes their values. */
enum gfx9_small { FP8, BF8, FP8_FNUZ, BF8_FNUZ, FP6, BF6, FP4 };
typedef struct {
    int exponent, mantissa, bias;
    /* `fnuz` is nonzero if the code that would be -0 means NaN. `infinity` is nonzero if the format
     * has Inf and NaN as IEEE 754 has them: the highest exponent with mantissa 0 means Inf, and
     * with any other mantissa NaN. `nan` is nonzero if the format has NaN at the highest exponent.
     * Without `infinity`, only the code with all bits of the exponent and mantissa set is NaN. */
    int fnuz, infinity, nan;
} gfx9_format;
extern const gfx9_format gfx9_formats[];

float gfx9_widen(uint32_t code, enum gfx9_small format);
/* Converts a value to a small format, rounding to nearest even. With `stochastic`, the function
 * instead adds the high bits of `noise` below the last mantissa bit of the result, and truncates
 * the sum. A value that is too large becomes the largest finite value if `saturate` is set, else
 * infinity or NaN. */
uint32_t gfx9_narrow(double v, enum gfx9_small format, int saturate, int stochastic,
                     uint32_t noise);
#endif
