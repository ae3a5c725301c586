/* Declares conversions between values and codes of the float formats of at most 16 bits, with all
 * rounding modes of PTX. */
#ifndef SIM_PTX_FLOATS_H
#define SIM_PTX_FLOATS_H
#include "common/floats.h"
#include "sim.h"
#include <math.h>

/* Converts f32 to f16 and rounds to nearest even. NaN becomes 0x7fff, the code that NVIDIA's
 * conversions give. If the result is subnormal, 0.5 is added first: the last mantissa bit of fp32
 * values near 0.5 is 2^-24, like the last bit of f16's subnormals, so the addition rounds. */
static inline uint32_t ptx_f32_to_f16(float v) {
    const uint32_t sign = sim_bits(v) >> 16 & 0x8000, x = sim_bits(v) & 0x7fffffff;
    const uint32_t small = sim_bits(sim_float(x) + 0.5f) - 0x3f000000;
    const uint32_t normal = (x + 0xc8000fffu + (x >> 13 & 1)) >> 13;
    return x > 0x7f800000    ? 0x7fff
           : x >= 0x477ff000 ? sign | 0x7c00
                             : sign | (x < 0x38800000 ? small : normal);
}
static inline float ptx_f16_to_f32(uint32_t h) {
    const uint32_t sign = (h & 0x8000) << 16, x = (h & 0x7fff) << 13;
    /* `small` is the result for a subnormal f16 with the 10 mantissa bits m, whose magnitude is
     * m * 2^-24. The bits become the top mantissa bits of the fp32 number 2^-14, which gives
     * 2^-14 + m * 2^-24. Subtracting 2^-14 is exact, because m * 2^-24 is 0 or a normal fp32
     * number. */
    const float small = sim_float(x + 0x38800000) - 0x1p-14f;
    const uint32_t normal = x + 0x38000000, top = x + 0x70000000;
    return sim_float(sign | ((h & 0x7c00) == 0        ? sim_bits(small)
                             : (h & 0x7c00) == 0x7c00 ? top
                                                      : normal));
}
static inline uint32_t ptx_f32_to_bf16(float v) {
    const uint32_t x = sim_bits(v);
    return (x & 0x7fffffff) > 0x7f800000 ? 0x7fff : (x + 0x7fff + (x >> 16 & 1)) >> 16;
}
static inline float ptx_bf16_to_f32(uint32_t h) {
    return sim_float(h << 16);
}

typedef struct {
    uint8_t type, exponent, mantissa, has_sign;
    int16_t bias;
    /* `largest`, `infinity` and `nan` are codes of the format without the sign bit. `infinity` is 0
     * if the format has no infinity. */
    uint32_t largest, infinity, nan;
    /* `nan_is_largest` is true if the format has no NaN, so that NaN is converted to the largest
     * value. */
    bool nan_is_largest;
} ptx_format;
/* Returns the description of a float format of at most 16 bits, or NULL for any other type. */
const ptx_format *ptx_format_of(ptx_type type);
double ptx_decode(const ptx_format *format, uint32_t code);
uint32_t ptx_encode(const ptx_format *format, double value, int rounding, bool satfinite);
/* ptx_narrow rounds a double to f32 in a rounding mode of PTX. ptx_odd rounds sum + rest to f32
 * with rounding to odd: an inexact result gets an odd last bit. */
float ptx_narrow(double value, int rounding);
float ptx_odd(double sum, double rest);
/* Returns the type of one element of a packed type, e.g. f16 for f16x2. Returns any other type
 * unchanged. */
ptx_type ptx_element_type(ptx_type type);
#endif
