/* Converts between double and the float formats of at most 16 bits. */
#include "floats.h"

static const ptx_format formats[] = {
    {T_f16, 5, 10, 1, 15, 0x7bff, 0x7c00, 0x7fff, false},
    {T_bf16, 8, 7, 1, 127, 0x7f7f, 0x7f80, 0x7fff, false},
    {T_e4m3, 4, 3, 1, 7, 0x7e, 0, 0x7f, false},
    {T_e5m2, 5, 2, 1, 15, 0x7b, 0x7c, 0x7f, false},
    {T_e3m2, 3, 2, 1, 3, 0x1f, 0, 0x1f, true},
    {T_e2m3, 2, 3, 1, 1, 0x1f, 0, 0x1f, true},
    {T_e2m1, 2, 1, 1, 1, 0x7, 0, 0x7, true},
    {T_ue8m0, 8, 0, 0, 127, 0xfe, 0, 0xff, false},
    {T_ue4m3, 4, 3, 0, 7, 0x7e, 0, 0x7f, false},
};

const ptx_format *ptx_format_of(ptx_type type) {
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
        if (formats[k].type == type) return &formats[k];
    return NULL;
}

ptx_type ptx_element_type(ptx_type type) {
    static const uint8_t pairs[][2] = {{T_f16x2, T_f16},   {T_bf16x2, T_bf16},  {T_f32x2, T_f32},
                                       {T_u16x2, T_u16},   {T_s16x2, T_s16},    {T_e4m3x2, T_e4m3},
                                       {T_e5m2x2, T_e5m2}, {T_e3m2x2, T_e3m2},  {T_e2m3x2, T_e2m3},
                                       {T_e2m1x2, T_e2m1}, {T_ue8m0x2, T_ue8m0}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        if (pairs[k][0] == type) return (ptx_type)pairs[k][1];
    return type;
}

double ptx_decode(const ptx_format *f, uint32_t code) {
    const uint32_t bits = f->exponent + f->mantissa, magnitude = code & ((1u << bits) - 1);
    const double sign = f->has_sign && code >> bits & 1 ? -1 : 1;
    if (f->infinity && magnitude == f->infinity) return sign * INFINITY;
    if (magnitude > f->largest) return NAN;
    if (f->mantissa == 0) return ldexp(1, (int)magnitude - f->bias);
    const int e = (int)(magnitude >> f->mantissa);
    const double m = magnitude & ((1u << f->mantissa) - 1);
    return e ? sign * ldexp(m + (double)(1u << f->mantissa), e - f->bias - f->mantissa)
             : sign * ldexp(m, 1 - f->bias - f->mantissa);
}

static double rounded(double v, int rounding, bool negative) {
    const double down = floor(v);
    if (rounding == RZ || v == down) return down;
    if (rounding == RM) return negative ? down + 1 : down;
    if (rounding == RP) return negative ? down : down + 1;
    if (v - down != 0.5) return v - down > 0.5 ? down + 1 : down;
    return rounding == RNA || fmod(down, 2) != 0 ? down + 1 : down;
}

static bool overflows_to_infinity(int rounding, bool negative) {
    return rounding == RM ? negative : rounding == RP ? !negative : rounding != RZ;
}

uint32_t ptx_encode(const ptx_format *f, double v, int rounding, bool satfinite) {
    const bool negative = signbit(v);
    const uint32_t sign = f->has_sign && negative ? 1u << (f->exponent + f->mantissa) : 0;
    const double a = fabs(v);
    if (v != v) return f->nan;
    if (f->mantissa == 0 && (a == 0 || negative)) return 0;
    const uint32_t above = satfinite || !overflows_to_infinity(rounding, negative) ? f->largest
                           : f->infinity                                           ? f->infinity
                                                                                   : f->nan;
    if (a > 0x1p300) return sign | (isinf(a) && !satfinite && f->infinity ? f->infinity : above);
    const int lowest = f->mantissa ? 1 - f->bias : -f->bias, e = a == 0 ? lowest : ilogb(a),
              scale = e < lowest ? lowest : e;
    const double r = rounded(ldexp(a, f->mantissa - scale), rounding, negative);
    /* A format without mantissa bits, such as e8m0, has only powers of two. If the significand
     * rounds to 2, the exponent is increased by 1. */
    if (f->mantissa == 0)
        return (uint32_t)(scale - lowest) + (r >= 2) > f->largest
                   ? above
                   : (uint32_t)(scale - lowest) + (r >= 2);
    const uint64_t code = ((uint64_t)(scale - lowest) << f->mantissa) + (uint64_t)r;
    return sign | (code > f->largest ? above : (uint32_t)code);
}

float ptx_narrow(double v, int rounding) {
    /* This cast rounds to nearest even. For other rounding modes, the code below then moves the
     * result to the neighboring float. The host's rounding mode stays unchanged. */
    const float near = (float)v;
    if (rounding <= RN || rounding == RNA || v != v || (double)near == v) return near;
    const bool up = rounding == RP || (rounding == RZ && v < 0);
    if (up) return (double)near < v ? nextafterf(near, INFINITY) : near;
    return (double)near > v ? nextafterf(near, -INFINITY) : near;
}

float ptx_odd(double sum, double rest) {
    if (rest != 0 && sum == sum && !isinf(sum) && !(sim_bits64(sum) & 1))
        sum = nextafter(sum, rest > 0 ? INFINITY : -INFINITY);
    if (fabs(sum) > 0x1.fffffep127) return (float)sum;
    const float toward = ptx_narrow(sum, RZ);
    return (double)toward == sum || sim_bits(toward) & 1 ? toward : sim_float(sim_bits(toward) | 1);
}
