/* Converts values to and from the float formats of 8, 6 and 4 bits. A table holds the properties
 * of each format. */
#include "floats.h"

const gfx9_format gfx9_formats[] = {
    [FP8] = {4, 3, 7, 0, 0, 1},       [BF8] = {5, 2, 15, 0, 1, 1}, [FP8_FNUZ] = {4, 3, 8, 1, 0, 0},
    [BF8_FNUZ] = {5, 2, 16, 1, 0, 0}, [FP6] = {2, 3, 1, 0, 0, 0},  [BF6] = {3, 2, 3, 0, 0, 0},
    [FP4] = {2, 1, 1, 0, 0, 0},
};

float gfx9_widen(uint32_t code, enum gfx9_small format) {
    const gfx9_format f = gfx9_formats[format];
    const uint32_t sign = code >> (f.exponent + f.mantissa) & 1, top = (1u << f.exponent) - 1;
    const uint32_t e = code >> f.mantissa & top, m = code & ((1u << f.mantissa) - 1);
    if (f.fnuz && sign && e == 0 && m == 0) return NAN;
    if (f.infinity && e == top) return m ? NAN : sign ? -INFINITY : INFINITY;
    if (f.nan && !f.infinity && e == top && m == (1u << f.mantissa) - 1) return NAN;
    const float v = e ? ldexpf((float)(m + (1u << f.mantissa)), (int)e - f.bias - f.mantissa)
                      : ldexpf((float)m, 1 - f.bias - f.mantissa);
    return sign ? -v : v;
}

static uint32_t largest(gfx9_format f) {
    const uint32_t all = (1u << (f.exponent + f.mantissa)) - 1;
    return f.infinity ? all - (1u << f.mantissa) : f.nan ? all - 1 : all;
}

/* Rounds the nonnegative value v to the format `f` and returns its code: to nearest even, or
 * stochastically with the random bits `noise`. A code is the exponent field followed by the
 * mantissa field. If rounding makes the mantissa too large for its field, the addition of the two
 * fields carries into the exponent, which gives the right code. */
static uint32_t round_code(double v, gfx9_format f, int stochastic, uint32_t noise) {
    int e;
    frexp(v, &e);
    e = e - 1 < 1 - f.bias ? 1 - f.bias : e - 1;
    const double units = ldexp(v, f.mantissa - e);
    double whole = stochastic ? floor(units + ldexp(noise, -32)) : nearbyint(units);
    return (uint32_t)(e + f.bias - 1) * (1u << f.mantissa) + (uint32_t)whole;
}

uint32_t gfx9_narrow(double v, enum gfx9_small format, int saturate, int stochastic,
                     uint32_t noise) {
    const gfx9_format f = gfx9_formats[format];
    const uint32_t bits = (uint32_t)(f.exponent + f.mantissa), top = largest(f);
    uint32_t sign = (signbit(v) ? 1u : 0u) << bits;
    const uint32_t nan = f.fnuz ? 1u << bits : f.nan ? sign | ((1u << bits) - 1) : top;
    if (isnan(v)) return nan;
    if (v == 0) return f.fnuz ? 0 : sign;
    if (isinf(v))
        return saturate && !f.fnuz ? (f.infinity ? sign | (top + 1) : sign | top)
               : f.fnuz            ? nan
               : f.infinity        ? sign | (top + 1)
               : f.nan             ? nan
                                   : sign | top;
    uint32_t code = round_code(fabs(v), f, stochastic, noise);
    if (code > top)
        code = saturate || (!f.fnuz && !f.nan) ? top
               : f.infinity                    ? top + 1
                                               : nan & ((2u << bits) - 1);
    if (f.fnuz && code == 0) sign = 0;
    return sign | code;
}
