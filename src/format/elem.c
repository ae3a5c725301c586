/* This file has the table of element formats, and the scalar functions that encode and decode one
 * element. Tests compare all other encoders and decoders with these functions. */
#include "format/format.h"

#include <math.h>

/* Tells which codes of a format are Inf, NaN or zero. SIGNED formats have a sign bit, and codes
 * above max_code are Inf or NaN. FNUZ formats have one zero, and one NaN, the code with only the
 * sign bit set. POWERS is e8m0, whose codes are powers of two without a sign. */
typedef enum elem_kind { SIGNED, FNUZ, POWERS } elem_kind;

typedef struct elem_row {
    bsmm_elem_info info;
    elem_kind kind;
    /* `max_code`, `inf_code` and `nan_code` are codes without their sign bit: the largest finite
     * value, Inf and NaN. 0 means that there is none. For the kinds FNUZ and POWERS, nan_code is
     * the whole code with its top bit. */
    uint32_t max_code, inf_code, nan_code;
} elem_row;

static const elem_row rows[] = {
#define ELEM(id, text, form, width, e, m, b, mx, mn, ms, maxc, infc, nanc, nans, infs, zs, by)     \
    {.info = {.struct_size = sizeof(bsmm_elem_info),                                               \
              .elem = BSMM_ELEM_##id,                                                              \
              .name = text,                                                                        \
              .bits = width,                                                                       \
              .exponent_bits = e,                                                                  \
              .mantissa_bits = m,                                                                  \
              .bias = b,                                                                           \
              .max = mx,                                                                           \
              .min_normal = mn,                                                                    \
              .min_subnormal = ms,                                                                 \
              .nan = nans,                                                                         \
              .inf = infs,                                                                         \
              .zeros = zs,                                                                         \
              .used_by = by},                                                                      \
     .kind = form,                                                                                 \
     .max_code = maxc,                                                                             \
     .inf_code = infc,                                                                             \
     .nan_code = nanc},
#include "format/elem.def"
#undef ELEM
};

/* These macros compute the traits of a format from its entry in elem.def. FITS compares the
 * mantissa bits, smallest subnormals and maxima of two formats, and tells whether every value of
 * the first format is also a value of the second. F16_CODE shifts a code left, so that its lowest
 * mantissa bit moves to the place where an f16 code would have this bit. If the shifted largest
 * finite code is at most 0x7bff, f16's largest finite code, all codes of the format can be shifted
 * to f16. */
#define FITS(m, least, most, to_m, to_least, to_most)                                              \
    ((m) <= (to_m) && (least) >= (to_least) && (most) <= (to_most))
#define F16_CODE(code, m) ((uint64_t)(code) << ((m) <= 10 ? 10 - (m) : 63))
const bsmm_elem_traits bsmm_elem_traits_of[] = {
#define ELEM(id, text, form, width, e, m, b, mx, mn, ms, maxc, infc, ...)                          \
    [BSMM_ELEM_##id] = {.in_matrices = (form) != POWERS,                                           \
                        .wide = (width) > 8,                                                       \
                        .narrow = (width) <= 8 && (form) != POWERS,                                \
                        .small_integer = (width) <= 6 && (mx) <= 63 * (ms),                        \
                        .exact_in_bf16 = FITS(m, ms, mx, 7, 0x1p-133, 0x1.fep127),                 \
                        .exact_in_f16 = FITS(m, ms, mx, 10, 0x1p-24, 65504),                       \
                        .shifts_to_f16 = (m) <= 10 && F16_CODE(maxc, m) <= 0x7bff,                 \
                        .has_inf = (infc) != 0,                                                    \
                        .lone_nan = (form) == FNUZ},
#include "format/elem.def"
#undef ELEM
};

#define ELEM(id, text, form, width, e, m, ...)                                                     \
    _Static_assert((int)BSMM_ELEM_##id == (int)BSMM_ELEM_ROW_##id + 1,                             \
                   #id " is not in the order of bsmm_elem");                                       \
    _Static_assert((e) + (m) + ((form) != POWERS) == (width),                                      \
                   #id ": sign, exponent and mantissa are not its bits");
#include "format/elem.def"
#undef ELEM

/* Only f32, f16 and bf16 may have more than 8 bits, because many loads and stores of 16-bit and
 * 32-bit elements name these three formats. A new wide format would need changes in
 * format/decode.c, quantize/memory.c, the vector loops of cpu/ and quantize/, gpu/operand.h and
 * gpu/epilogue.h. */
enum {
    WIDE_ROWS = 0
#define ELEM(id, text, form, width, ...) +((width) > 8)
#include "format/elem.def"
#undef ELEM
    ,
    POWERS_ROWS = 0
#define ELEM(id, text, form, ...) +((form) == POWERS)
#include "format/elem.def"
#undef ELEM
};
_Static_assert(WIDE_ROWS == 3, "an element of more than 8 bits needs loads and stores of its own");
_Static_assert(POWERS_ROWS == 1, "the encoder and decoder of powers of two know only e8m0");

static const elem_row *find(uint32_t elem) {
    /* The table is in the order of bsmm_elem, whose first format is number 1. For 0 (NONE) the
     * subtraction wraps around, so 0 is not found. */
    return elem - 1 < BSMM_COUNT(rows) ? &rows[elem - 1] : NULL;
}

const bsmm_elem_info *bsmm_elem_row(uint32_t elem) {
    const elem_row *row = find(elem);
    return row ? &row->info : NULL;
}

double bsmm_elem_decode(uint32_t elem, uint32_t code) {
    const elem_row *row = find(elem);
    const bsmm_elem_info *info = &row->info;
    if (row->kind == POWERS)
        return (code & 0xff) == 0xff ? NAN : bsmm_double_pow2((int)(code & 0xff) - 127);
    uint32_t sign_bit = 1u << (info->bits - 1);
    uint32_t magnitude = code & (sign_bit - 1);
    bool negative = code & sign_bit;
    if (row->kind == FNUZ ? (negative && !magnitude) : magnitude > row->max_code)
        return row->inf_code && magnitude == row->inf_code ? (negative ? -INFINITY : INFINITY)
                                                           : NAN;
    uint32_t exponent = magnitude >> info->mantissa_bits;
    uint32_t mantissa = magnitude & ((1u << info->mantissa_bits) - 1);
    if (exponent) mantissa |= 1u << info->mantissa_bits;
    int scale = (int)(exponent ? exponent : 1) - info->bias - (int)info->mantissa_bits;
    double value = mantissa * bsmm_double_pow2(scale);
    return negative ? -value : value;
}

/* Rounds q to the nearest integer, ties to even. q must be at least 0 and less than 2^32. Unlike
 * rint, the function does not depend on the processor's current rounding mode. */
static uint32_t round_even(double q) {
    uint32_t whole = (uint32_t)q;
    double rest = q - whole;
    return whole + (rest > 0.5 || (rest == 0.5 && (whole & 1)));
}

/* Encodes a value as the nearest power of two. A value halfway between two powers gives the larger
 * one. bsmm.h describes the special cases (bsmm_encode_elem). */
static uint32_t encode_e8m0(double value, bool saturate) {
    if (isnan(value)) return 0xff;
    if (value <= 0) return saturate ? 0 : 0xff;
    if (value <= 0x1p-127) return 0;
    /* The value lies between 2^-127 (code 0) and 2^-126 (code 1). All such values give code 1, as
     * in ml_dtypes and torch, which round subnormal fp32 values up, even those that are nearer to
     * 2^-127. */
    if (value < 0x1p-126) return 1;
    int exponent = isinf(value) ? 1024 : ilogb(value);
    if (!isinf(value) && value * bsmm_double_pow2(-exponent) >= 1.5) exponent++;
    if (exponent > 127) return saturate ? 0xfe : 0xff;
    return (uint32_t)(exponent + 127);
}

static uint32_t overflow_code(const elem_row *row, bool saturate) {
    if (saturate || (!row->inf_code && !row->nan_code)) return row->max_code;
    return row->inf_code ? row->inf_code : row->nan_code;
}

/* Rounds a magnitude to the code of the nearest value, ties to even. The code has no sign bit. A
 * magnitude that overflows gives a code above max_code. */
static uint32_t round_magnitude(const bsmm_elem_info *info, double magnitude) {
    int lowest = 1 - info->bias;
    int exponent = magnitude < 0x1p-1022 ? lowest : ilogb(magnitude);
    if (exponent < lowest) exponent = lowest;
    if (exponent > (1 << info->exponent_bits) - info->bias) return UINT32_MAX;
    int shift = (int)info->mantissa_bits - exponent;
    /* The scaling multiplies by two powers of two, because 2^shift alone may be too large or too
     * small for a double. */
    double q = magnitude * bsmm_double_pow2(shift / 2) * bsmm_double_pow2(shift - shift / 2);
    return ((uint32_t)(exponent - lowest) << info->mantissa_bits) + round_even(q);
}

uint32_t bsmm_elem_encode(uint32_t elem, double value, bool saturate) {
    const elem_row *row = find(elem);
    if (row->kind == POWERS) return encode_e8m0(value, saturate);
    uint32_t sign = signbit(value) ? 1u << (row->info.bits - 1) : 0;
    if (isnan(value))
        return row->kind == FNUZ ? row->nan_code : row->nan_code ? row->nan_code | sign : 0;
    double magnitude = fabs(value);
    uint32_t code = isinf(value) ? UINT32_MAX : round_magnitude(&row->info, magnitude);
    if (code > row->max_code) {
        code = overflow_code(row, saturate);
        if (row->kind == FNUZ && code == row->nan_code) return code;
    }
    if (row->kind == FNUZ && code == 0) return 0;
    return code | sign;
}

bsmm_status bsmm_elem_at(uint32_t index, bsmm_elem_info *info) {
    if (index >= BSMM_COUNT(rows))
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %u; there are %zu element formats",
                         index, BSMM_COUNT(rows));
    return bsmm_give_struct(info, &rows[index].info, sizeof rows[index].info, "info");
}

/* The switch below lists all formats of elem.def. With -Wswitch as an error, the code does not
 * compile if a value of the enum bsmm_elem has no entry in elem.def. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
static bool has_row(bsmm_elem elem) {
    switch (elem) {
    case BSMM_ELEM_NONE:
        return false;
#define ELEM(id, ...) case BSMM_ELEM_##id:
#include "format/elem.def"
#undef ELEM
        return true;
    }
    return false;
}
#pragma GCC diagnostic pop

static const elem_row *find_public(uint32_t elem) {
    return has_row((bsmm_elem)elem) ? find(elem) : NULL;
}

static bsmm_status fail_elem(uint32_t elem) {
    return bsmm_fail(BSMM_E_INVALID, "elem: value is %u; must be a bsmm_elem from 1 to %zu", elem,
                     BSMM_COUNT(rows));
}

bsmm_status bsmm_encode_elem(uint32_t elem, float value, int saturate, uint32_t *code) {
    if (!find_public(elem)) return fail_elem(elem);
    if (!code) return bsmm_fail(BSMM_E_INVALID, "code: value is NULL; must point to the result");
    *code = bsmm_elem_encode(elem, (double)value, saturate != 0);
    return BSMM_OK;
}

bsmm_status bsmm_decode_elem(uint32_t elem, uint32_t code, double *value) {
    const elem_row *row = find_public(elem);
    if (!row) return fail_elem(elem);
    if (!value) return bsmm_fail(BSMM_E_INVALID, "value: value is NULL; must point to the result");
    if (row->info.bits < 32 && code >> row->info.bits)
        return bsmm_fail(BSMM_E_INVALID, "code: value is 0x%x; %s has %u bits", code,
                         row->info.name, row->info.bits);
    *value = bsmm_elem_decode(elem, code);
    return BSMM_OK;
}
