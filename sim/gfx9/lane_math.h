/* Defines functions that the expressions in valu.def call. Each function computes the result of
 * one lane. */
#ifndef SIM_GFX9_LANE_MATH_H
#define SIM_GFX9_LANE_MATH_H
#include "floats.h"

static inline uint32_t lesser(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
static inline uint32_t greater(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}
static inline int32_t lesser_i(int32_t a, int32_t b) {
    return a < b ? a : b;
}
static inline int32_t greater_i(int32_t a, int32_t b) {
    return a > b ? a : b;
}
static inline int32_t extend(int32_t v, uint32_t bits) {
    return (int32_t)((uint32_t)v << (32 - bits)) >> (32 - bits);
}
static inline uint32_t clamp_u8(int32_t v) {
    return (uint32_t)greater_i(lesser_i(v, 255), 0);
}
static inline uint32_t clamp_i8(int32_t v) {
    return (uint32_t)greater_i(lesser_i(v, 127), -128) & 255;
}
static inline uint32_t clamp_i16(int32_t v) {
    return (uint32_t)greater_i(lesser_i(v, 32767), -32768) & 0xffff;
}

static inline uint32_t reverse(uint32_t v) {
    v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
    v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
    v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(v);
}
static inline uint32_t first_sign(int32_t v) {
    const uint32_t u = (uint32_t)(v < 0 ? ~v : v);
    return u ? (uint32_t)__builtin_clz(u) : ~0u;
}
/* Computes v_perm_b32, in which each byte of `selectors` selects a byte of the result. Numbers 0
 * to 7 select a byte of {a, b}. Numbers 8 to 11 repeat the sign bit of a 16-bit half of {a, b}. 12
 * gives 0, and a larger number gives 0xff. */
static inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selectors) {
    const uint64_t both = (uint64_t)a << 32 | b;
    uint32_t r = 0;
    for (uint32_t k = 0; k < 32; k += 8) {
        const uint32_t s = selectors >> k & 255;
        const uint32_t sign = (uint32_t)(both >> (16 * (s & 3) + 15) & 1) * 255;
        r |= (s < 8     ? (uint32_t)(both >> 8 * (s & 7)) & 255
              : s < 12  ? sign
              : s == 12 ? 0
                        : 255)
             << k;
    }
    return r;
}
static inline uint32_t sad_bytes(uint32_t a, uint32_t b, int masked) {
    uint32_t r = 0;
    for (uint32_t k = 0; k < 32; k += 8) {
        const uint32_t x = a >> k & 255, y = b >> k & 255;
        if (!masked || y) r += x > y ? x - y : y - x;
    }
    return r;
}
static inline uint32_t sad_words(uint32_t a, uint32_t b) {
    const uint32_t x = a & 0xffff, y = b & 0xffff, u = a >> 16, v = b >> 16;
    return (x > y ? x - y : y - x) + (u > v ? u - v : v - u);
}
static inline uint32_t lerp_bytes(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r = 0;
    for (uint32_t k = 0; k < 32; k += 8)
        r |= (((a >> k & 255) + (b >> k & 255) + (c >> k & 1)) >> 1) << k;
    return r;
}

/* These functions return the minimum or maximum as IEEE 754-2019 defines them. The result is NaN if
 * a source is NaN. */
static inline float minimum_f32(float a, float b) {
    return a != a ? a : b != b ? b : min_f32(a, b);
}
static inline float maximum_f32(float a, float b) {
    return a != a ? a : b != b ? b : max_f32(a, b);
}
static inline float med_f32(float a, float b, float c) {
    if (a != a || b != b || c != c) return min_f32(min_f32(a, b), c);
    return max_f32(min_f32(a, b), min_f32(max_f32(a, b), c));
}
static inline float nearest_f32(float a) {
    return roundevenf(a);
}
static inline double nearest_f64(double a) {
    return roundeven(a);
}
static inline float fract_f32(float a) {
    const float f = a - floorf(a);
    return f > 0x1.fffffep-1f ? 0x1.fffffep-1f : f;
}
static inline float fract_f16(float a) {
    const float f = a - floorf(a);
    return f > 0x1.ffcp-1f ? 0x1.ffcp-1f : f;
}
static inline double fract_f64(double a) {
    const double f = a - floor(a);
    return f > 0x1.fffffffffffffp-1 ? 0x1.fffffffffffffp-1 : f;
}
/* These functions return the sine and the cosine of `a` revolutions. Beyond 256 revolutions they
 * return the value for 0, as hardware does. */
static inline float turn_sin(float a) {
    return isfinite(a)
               ? fabsf(a) > 256 ? 0 : (float)sin(6.283185307179586 * ((double)a - floor((double)a)))
               : NAN;
}
static inline float turn_cos(float a) {
    return isfinite(a)
               ? fabsf(a) > 256 ? 1 : (float)cos(6.283185307179586 * ((double)a - floor((double)a)))
               : NAN;
}
static inline int32_t exponent_f64(double a) {
    int e = 0;
    if (isfinite(a) && a != 0) frexp(a, &e);
    return e;
}
static inline double mantissa_f64(double a) {
    int e;
    return isfinite(a) ? frexp(a, &e) : a;
}
static inline float mantissa_f32(float a) {
    return (float)mantissa_f64((double)a);
}
static inline float fma_f16(float a, float b, float c) {
    /* The sum is rounded twice: here to f32, and by the caller to f16. The first rounding is to
     * odd, i.e. an inexact result gets an odd last bit. The two roundings then give the same f16 as
     * a single one. */
    const double p = (double)a * (double)b, s = p + (double)c;
    float f = (float)s;
    if ((double)f != s && isfinite(f)) {
        if (fabs((double)f) > fabs(s)) f = sim_float(sim_bits(f) - 1);
        f = sim_float(sim_bits(f) | 1);
    }
    return f;
}
/* Computes v_div_fixup_f64, which handles the special cases of a division. a is the computed
 * quotient, b is the denominator, and c is the numerator. */
static inline double fixup_f64(double a, double b, double c) {
    const double sign = copysign(1.0, b) * copysign(1.0, c);
    if (c != c) return c;
    if (b != b) return b;
    if ((b == 0 && c == 0) || (isinf(b) && isinf(c))) return -(double)NAN;
    if (b == 0 || isinf(c)) return sign * INFINITY;
    if (isinf(b) || c == 0) return sign * 0.0;
    return copysign(a, sign);
}
static inline float fixup_f32(float a, float b, float c) {
    return (float)fixup_f64((double)a, (double)b, (double)c);
}
static inline int32_t to_i32(double a) {
    return a != a ? 0 : a >= 2147483647.0 ? INT32_MAX : a <= -2147483648.0 ? INT32_MIN : (int32_t)a;
}
static inline uint32_t to_u32(double a) {
    return a != a || a <= 0 ? 0 : a >= 4294967295.0 ? UINT32_MAX : (uint32_t)a;
}
static inline uint32_t norm_i16(float a) {
    return a != a ? 0 : clamp_i16(to_i32(roundeven((double)min_f32(max_f32(a, -1), 1) * 32767)));
}
static inline uint32_t norm_u16(float a) {
    return to_u32(roundeven((double)min_f32(max_f32(a, 0), 1) * 65535));
}
static inline int32_t dot_i8(uint32_t a, uint32_t b) {
    int32_t r = 0;
    for (int k = 0; k < 32; k += 8)
        r += (int8_t)(a >> k) * (int8_t)(b >> k);
    return r;
}
static inline uint32_t dot_u8(uint32_t a, uint32_t b) {
    uint32_t r = 0;
    for (int k = 0; k < 32; k += 8)
        r += (a >> k & 255) * (b >> k & 255);
    return r;
}
static inline int32_t dot_i4(uint32_t a, uint32_t b) {
    int32_t r = 0;
    for (int k = 0; k < 32; k += 4)
        r += extend((int32_t)(a >> k), 4) * extend((int32_t)(b >> k), 4);
    return r;
}
static inline uint32_t dot_u4(uint32_t a, uint32_t b) {
    uint32_t r = 0;
    for (int k = 0; k < 32; k += 4)
        r += (a >> k & 15) * (b >> k & 15);
    return r;
}
static inline float dot_f16(uint32_t a, uint32_t b, float c) {
    return fmaf(gfx9_f16_to_f32(a >> 16), gfx9_f16_to_f32(b >> 16),
                fmaf(gfx9_f16_to_f32(a & 0xffff), gfx9_f16_to_f32(b & 0xffff), c));
}
static inline float dot_bf16(uint32_t a, uint32_t b, float c) {
    return fmaf(sim_float(a & 0xffff0000), sim_float(b & 0xffff0000),
                fmaf(sim_float(a << 16), sim_float(b << 16), c));
}
float cube(float x, float y, float z, int which);
double trig_preop(double a, uint32_t segment);
#endif
