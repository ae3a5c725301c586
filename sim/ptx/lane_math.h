/* Defines functions that the expressions in alu.def call. Each function computes the result of one
 * lane. */
#ifndef SIM_PTX_LANE_MATH_H
#define SIM_PTX_LANE_MATH_H
#include "floats.h"

static inline uint64_t high_u64(uint64_t a, uint64_t b) {
    return (uint64_t)((ptx_u128)a * b >> 64);
}
static inline int64_t high_s64(int64_t a, int64_t b) {
    return (int64_t)((ptx_s128)a * b >> 64);
}
static inline int32_t saturated(int64_t v) {
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}
/* These functions divide integers as GPUs do. A division by 0 returns all ones. PTX leaves the
 * result of such a division undefined. The smallest integer divided by -1 gives itself. */
static inline uint64_t divide_u(uint64_t a, uint64_t b) {
    return b ? a / b : ~0ull;
}
static inline uint64_t remainder_u(uint64_t a, uint64_t b) {
    return b ? a % b : a;
}
static inline int64_t divide_s(int64_t a, int64_t b) {
    return b == 0 ? -1 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
static inline int64_t remainder_s(int64_t a, int64_t b) {
    return b == 0 ? a : b == -1 ? 0 : a % b;
}

/* These functions shift an integer as PTX defines it. A shift by at least the register's width
 * gives 0, or copies of the sign bit for a signed shift to the right. */
static inline uint32_t left_32(uint32_t a, uint32_t n) {
    return n > 31 ? 0 : a << n;
}
static inline uint32_t right_32(uint32_t a, uint32_t n) {
    return n > 31 ? 0 : a >> n;
}
static inline int32_t right_s32(int32_t a, uint32_t n) {
    return a >> (n > 31 ? 31 : n);
}
static inline uint64_t left_64(uint64_t a, uint32_t n) {
    return n > 63 ? 0 : a << n;
}
static inline uint64_t right_64(uint64_t a, uint32_t n) {
    return n > 63 ? 0 : a >> n;
}
static inline int64_t right_s64(int64_t a, uint32_t n) {
    return a >> (n > 63 ? 63 : n);
}
/* These functions shift the 64-bit value with the upper word b and the lower word a by n bits
 * (funnel shift). A shift to the left returns the upper word of the result, and a shift to the
 * right returns the lower word. */
static inline uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t n) {
    return (uint32_t)((((uint64_t)b << 32 | a) << n) >> 32);
}
static inline uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t n) {
    return (uint32_t)(((uint64_t)b << 32 | a) >> n);
}
static inline uint32_t at_most_32(uint32_t n) {
    return n > 32 ? 32 : n;
}

static inline uint32_t reverse_32(uint32_t v) {
    v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
    v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
    v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(v);
}
static inline uint64_t reverse_64(uint64_t v) {
    return (uint64_t)reverse_32((uint32_t)v) << 32 | reverse_32((uint32_t)(v >> 32));
}
static inline uint32_t leading_32(uint32_t v) {
    return v ? (uint32_t)__builtin_clz(v) : 32;
}
static inline uint32_t leading_64(uint64_t v) {
    return v ? (uint32_t)__builtin_clzll(v) : 64;
}
/* Computes bfind, i.e. the position of the highest bit that differs from the sign bit. If
 * `distance` is set, computes the distance of this bit from the top bit. */
static inline uint32_t find_32(uint32_t v, int distance) {
    return v == 0 ? ~0u : distance ? leading_32(v) : 31 - leading_32(v);
}
static inline uint32_t find_64(uint64_t v, int distance) {
    return v == 0 ? ~0u : distance ? leading_64(v) : 63 - leading_64(v);
}
static inline uint64_t extract_u(uint64_t a, uint32_t at, uint32_t length, uint32_t bits) {
    at &= 255, length &= 255;
    if (at >= bits || length == 0) return 0;
    a >>= at;
    return length >= 64 ? a : a & ((1ull << length) - 1);
}
/* Computes bfe for a signed source, i.e. extracts the field of `length` bits that begins at bit
 * `at`. The field's top bit fills the higher bits of the result. Bits of the field beyond the
 * source's top bit are copies of its sign bit. */
static inline int64_t extract_s(int64_t a, uint32_t at, uint32_t length, uint32_t bits) {
    at &= 255, length &= 255;
    if (length == 0) return 0;
    const uint32_t last = at + length - 1 > bits - 1 ? bits - 1 : at + length - 1;
    const uint64_t sign = (uint64_t)a >> last & 1;
    const uint64_t field = extract_u((uint64_t)a, at, length, bits);
    const uint32_t have = at >= bits ? 0 : last - at + 1;
    return have >= 64 ? a : (int64_t)(sign ? field | ~0ull << have : field);
}
static inline uint64_t insert(uint64_t a, uint64_t b, uint32_t at, uint32_t length, uint32_t bits) {
    at &= 255, length &= 255;
    if (at >= bits || length == 0) return b;
    const uint64_t mask = (length >= 64 ? ~0ull : (1ull << length) - 1) << at;
    return (b & ~mask) | (a << at & mask);
}

/* Computes prmt, which chooses four of the eight bytes {b, a}. The low three bits of each 4-bit
 * selector are the number of the chosen byte. If bit 3 of the selector is set, the result's byte
 * contains eight copies of the chosen byte's sign bit. */
static inline uint32_t permute(uint32_t a, uint32_t b, uint32_t selectors) {
    const uint64_t both = (uint64_t)b << 32 | a;
    uint32_t r = 0;
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t s = selectors >> 4 * k & 15, byte = (uint32_t)(both >> 8 * (s & 7)) & 255;
        r |= (s & 8 ? (byte >> 7) * 255 : byte) << 8 * k;
    }
    return r;
}
/* Computes prmt with one of its modes f4e, b4e, rc8, ecl, ecr or rc16, which are numbered 0 to 5.
 * The table gives the byte selectors for each mode and each value of the lowest two bits of c. */
static inline uint32_t permute_mode(uint32_t a, uint32_t b, uint32_t c, int mode) {
    static const uint16_t selectors[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
        {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
        {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
    return permute(a, b, selectors[mode][c & 3]);
}
static inline uint32_t logic3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t r = 0;
    for (uint32_t k = 0; k < 8; k++)
        if (table >> k & 1) r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return r;
}
static inline int32_t dot_4(uint32_t a, uint32_t b, int sign_a, int sign_b) {
    int32_t sum = 0;
    for (uint32_t k = 0; k < 32; k += 8) {
        const int32_t x = sign_a ? (int8_t)(a >> k) : (int32_t)(a >> k & 255);
        const int32_t y = sign_b ? (int8_t)(b >> k) : (int32_t)(b >> k & 255);
        sum += x * y;
    }
    return sum;
}

/* These functions return the minimum or maximum of two floats. If a source is NaN, the result is
 * NaN. */
static inline float min_nan(float a, float b) {
    return a != a ? a : b != b ? b : min_f32(a, b);
}
static inline float max_nan(float a, float b) {
    return a != a ? a : b != b ? b : max_f32(a, b);
}
/* Computes a * b + c of 16-bit floats and rounds the exact result to f32 with rounding to odd. The
 * caller then rounds to 16 bits. Together, both roundings give the same result as one rounding. */
static inline float fma_half(float a, float b, float c) {
    const double product = (double)a * (double)b, sum = product + (double)c;
    const double part = sum - product, rest = (product - (sum - part)) + ((double)c - part);
    return ptx_odd(sum, rest);
}
static inline float relu(float v) {
    return v > 0 || v != v ? v : 0;
}
/* Keeps 20 bits of the significand, which is the precision of rcp.approx.ftz.f64 and
 * rsqrt.approx.ftz.f64. */
static inline double coarse(double v) {
    return sim_double(sim_bits64(v) & ~0xffffffffull);
}
static inline uint32_t float_class(float v, int what) {
    return (uint32_t)(what == 0 ? !isinf(v) && v == v : what == 1 ? isinf(v) != 0 : v != v);
}
#endif
