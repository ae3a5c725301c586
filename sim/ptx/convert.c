/* Executes cvt, which converts between integer and float types. Every rounding mode and packed
 * small floats are supported. */
#include "lane_types.h"

#define Q(name, tokens, D, S, value) LANES_FUNCTION(lanes_##name, D, S, none, none, value)
#include "convert.def"
#undef Q

typedef struct {
    bool integer;
    ptx_s128 whole;
    double real;
} value;

static double load_float(ptx_type type, uint64_t bits) {
    const ptx_format *f = ptx_format_of(type);
    if (type == T_f64) return sim_double(bits);
    return f ? ptx_decode(f, (uint32_t)bits) : (double)sim_float((uint32_t)bits);
}

static double flushed(double v, bool ftz) {
    return ftz && fabs(v) < 0x1p-126 ? copysign(0, v) : v;
}

static value load(const ptx_inst *i, ptx_type type, uint64_t bits) {
    const uint32_t size = ptx_types[type].bits, kind = ptx_types[type].kind;
    value v = {.integer = kind == SIGNED || kind == UNSIGNED || kind == BITS};
    if (!v.integer) {
        v.real = flushed(load_float(type, bits), i->opcode->ftz && type == T_f32);
        return v;
    }
    const uint64_t field = size == 64 ? bits : bits & ((1ull << size) - 1);
    v.whole = (ptx_s128)field;
    if (kind == SIGNED && field >> (size - 1)) v.whole -= (ptx_s128)1 << size;
    return v;
}

static double to_integral(double v, int rounding) {
    return rounding == RM   ? floor(v)
           : rounding == RP ? ceil(v)
           : rounding == RZ ? trunc(v)
                            : nearbyint(v);
}

/* Converts a float to an integer. Values outside the integer's range become its nearest end. NaN
 * becomes 0, or the number with only the top bit set if either type has 64 bits. */
static uint64_t float_to_integer(const ptx_inst *i, double v, ptx_type from, ptx_type to) {
    const uint32_t size = ptx_types[to].bits;
    const bool sign = ptx_types[to].kind == SIGNED;
    if (v != v) return from == T_f64 || size == 64 ? 1ull << (size - 1) : 0;
    const double top = ldexp(1, (int)size - sign), low = sign ? -top : 0;
    v = to_integral(v, i->opcode->rounding);
    if (v >= top) return sign ? (1ull << (size - 1)) - 1 : ~0ull >> (64 - size);
    if (v <= low) return sign ? 1ull << (size - 1) : 0;
    return v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
}

static uint64_t saturated_integer(ptx_s128 v, ptx_type to) {
    const uint32_t size = ptx_types[to].bits;
    const bool sign = ptx_types[to].kind == SIGNED;
    const ptx_s128 top = ((ptx_s128)1 << (size - sign)) - 1, low = sign ? -top - 1 : 0;
    return (uint64_t)(v > top ? top : v < low ? low : v);
}

/* Converts a 64-bit integer to double with rounding to odd: an inexact result gets an odd last bit.
 * Rounding the double to f32 later then gives the same result as rounding the integer to f32
 * directly. */
static double odd_double(ptx_s128 v) {
    const double near = (double)v;
    const ptx_s128 back = (ptx_s128)near;
    if (back == v || sim_bits64(near) & 1) return near;
    return nextafter(near, back < v ? INFINITY : -INFINITY);
}

static double integer_to_double(ptx_s128 v, int rounding) {
    const double near = (double)v;
    const ptx_s128 back = (ptx_s128)near;
    if (rounding <= RN || back == v) return near;
    const bool up = rounding == RP || (rounding == RZ && v < 0);
    return (back < v) == up ? (up ? nextafter(near, INFINITY) : nextafter(near, -INFINITY)) : near;
}

static double rounded_to_integral(const ptx_inst *i, double v) {
    static const char integral[] = "rni|rzi|rmi|rpi|";
    return ptx_which(i->opcode, integral) >= 0 ? copysign(to_integral(v, i->opcode->rounding), v)
                                               : v;
}

static uint64_t to_tf32(double v, int rounding) {
    const uint32_t x = sim_bits((float)v), low = x & 0x1fff;
    if (v != v) return 0x7fffffff;
    if ((x & 0x7f800000) == 0x7f800000) return x;
    const uint32_t up = rounding == RZ    ? 0
                        : rounding == RNA ? low >= 0x1000
                                          : low + (x >> 13 & 1) > 0x1000;
    return (x & ~0x1fffu) + (up << 13);
}

static uint64_t to_float(const ptx_inst *i, double v, ptx_type to) {
    const ptx_format *f = ptx_format_of(to);
    const int rounding = i->opcode->rounding;
    if (i->opcode->sat) v = v > 0 ? v < 1 ? v : 1 : 0;
    if (i->opcode->relu) v = v > 0 || v != v ? v : 0;
    if (f) return ptx_encode(f, v, rounding, i->opcode->satfinite);
    if (to == T_tf32) return to_tf32(v, rounding);
    if (to == T_f64) return sim_bits64(v);
    if (v != v) return 0x7fffffff;
    return sim_bits((float)flushed((double)ptx_narrow(v, rounding), i->opcode->ftz));
}

static uint64_t convert(const ptx_inst *i, ptx_type to, ptx_type from, uint64_t bits) {
    const value v = load(i, from, bits);
    const bool to_integer = ptx_types[to].kind == SIGNED || ptx_types[to].kind == UNSIGNED;
    if (to_integer) {
        if (!v.integer) return float_to_integer(i, v.real, from, to);
        return i->opcode->sat ? saturated_integer(v.whole, to) : (uint64_t)v.whole;
    }
    if (v.integer)
        return to_float(
            i, to == T_f64 ? integer_to_double(v.whole, i->opcode->rounding) : odd_double(v.whole),
            to);
    return to_float(i, rounded_to_integral(i, v.real), to);
}

/* Returns an integer result as the bits of a register of `width` bytes. If the register is wider
 * than the integer type `type`, the sign bit is repeated. */
static uint64_t widened(uint64_t bits, ptx_type type, uint32_t width) {
    const uint32_t size = ptx_types[type].bits;
    if (size < 64) bits &= (1ull << size) - 1;
    if (ptx_types[type].kind == SIGNED && size < 64 && bits >> (size - 1)) bits |= ~0ull << size;
    return width >= 8 ? bits : bits & (~0u >> (32 - 8 * width));
}

static void execute_scalar(ptx_warp *w, const ptx_inst *i) {
    const ptx_type to = (ptx_type)i->opcode->types[0], from = (ptx_type)i->opcode->types[1];
    uint32_t narrow[LANES];
    uint64_t wide[LANES];
    if (w->mode) ptx_set_mode(w, 0);
    for (uint32_t l = 0; l < LANES; l++) {
        if (!(w->mask >> l & 1)) continue;
        const uint64_t r =
            widened(convert(i, to, from, ptx_lane(w, &i->op[1], l)), to, i->op[0].width);
        narrow[l] = (uint32_t)r, wide[l] = r;
    }
    ptx_commit(w, &i->op[0], i->op[0].width == 8 ? (void *)wide : (void *)narrow);
}

/* Executes a conversion (cvt). If the registers are exactly as wide as the types, a vectorized loop
 * of convert.def converts the values of all lanes. Otherwise the function converts them lane by
 * lane. */
static void execute_quick(ptx_warp *w, const ptx_inst *i) {
    const uint32_t to = ptx_types[i->opcode->types[0]].bits,
                   from = ptx_types[i->opcode->types[1]].bits;
    if (to <= 8u * i->op[0].width && (to > 16 ? to == 8u * i->op[0].width : i->op[0].width == 2) &&
        (from == 64) == (i->op[1].width == 8))
        ptx_execute_lanes(w, i);
    else
        execute_scalar(w, i);
}

static uint32_t code_bits(ptx_type packed) {
    return ptx_types[packed].bits / 2u;
}

/* Executes a cvt whose result is a pair of small floats, such as f16x2 or e4m3x2. The source is two
 * f32 registers, or one register with a pair of floats. If there are two source registers, the
 * first becomes the high half of the result. */
static void execute_pair(ptx_warp *w, const ptx_inst *i) {
    const ptx_type to = ptx_element_type((ptx_type)i->opcode->types[0]),
                   from = ptx_element_type((ptx_type)i->opcode->types[1]);
    const bool two = i->op[2].place != NOWHERE;
    const uint32_t size = code_bits((ptx_type)i->opcode->types[0]),
                   each = two ? 0 : code_bits((ptx_type)i->opcode->types[1]);
    uint32_t result[LANES];
    if (w->mode) ptx_set_mode(w, 0);
    for (uint32_t l = 0; l < LANES; l++) {
        result[l] = 0;
        for (uint32_t h = 0; h < 2 && w->mask >> l & 1; h++) {
            const uint64_t bits = two ? ptx_lane(w, &i->op[h ? 1 : 2], l)
                                      : ptx_lane(w, &i->op[1], l) >> each * h & ((1u << each) - 1);
            result[l] |= (uint32_t)convert(i, to, from, bits) << size * h;
        }
    }
    ptx_commit(w, &i->op[0], result);
}

LANES_FUNCTION(lanes_bf16x2, u32, f32, f32, none, ptx_f32_to_bf16(a) << 16 | ptx_f32_to_bf16(b))
LANES_FUNCTION(lanes_f16x2, u32, f32, f32, none, ptx_f32_to_f16(a) << 16 | ptx_f32_to_f16(b))

#define Q(name, tokens, D, S, value)                                                               \
    {"cvt." tokens #D "." #S, "cC", execute_quick, lanes_##name, T_##D, T_##S, T_none, T_none, 0},
#define ROUND    "{rn|rz|rm|rp|rni|rzi|rmi|rpi|rna}.{relu}.{ftz}.{satfinite}.{relu}.{sat}."
#define INTEGERS "u8|u16|u32|u64|s8|s16|s32|s64"
#define SMALL    "e4m3x2|e5m2x2|e2m1x2|e2m3x2|e3m2x2|ue8m0x2"
static const ptx_row rows[] = {
#include "convert.def"
    {"cvt.rn.bf16x2.f32", NULL, ptx_execute_lanes, lanes_bf16x2, T_b32, T_f32, T_f32, T_none, 0},
    {"cvt.rn.f16x2.f32", NULL, ptx_execute_lanes, lanes_f16x2, T_b32, T_f32, T_f32, T_none, 0},
    {"cvt." ROUND INTEGERS "|f16|bf16|f32|f64|tf32." INTEGERS "|f16|bf16|f32|f64", "cC",
     execute_scalar, NULL, 0, 0, 0, 0, 0},
    {"cvt." ROUND "f16x2|bf16x2|" SMALL ".f32", "cSS", execute_pair, NULL, 0, 0, 0, 0, 0},
    {"cvt." ROUND "f16x2|bf16x2." SMALL, "tSR?", execute_pair, NULL, 0, 0, 0, 0, 1},
    {"cvt." ROUND SMALL ".f16x2|bf16x2", "cSR?", execute_pair, NULL, 0, 0, 0, 0, 1},
};
const ptx_table ptx_convert_table = {rows, sizeof rows / sizeof *rows};
