/* Element formats: the table, and the scalar codec that every other one is tested against. */
#include "format/format.h"

#include <math.h>
#include <string.h>

typedef struct elem_row {
    bsmm_elem_info info;
    uint32_t max_code; /* magnitude of the largest finite value */
    uint32_t inf_code; /* magnitude of Inf; 0: none */
    uint32_t nan_code; /* canonical NaN, without sign; 0: none */
    bool fnuz;         /* one zero, one NaN (sign bit alone) */
} elem_row;

#define ROW(id, text, b, e, m, bi, mx, mn, ms)                                                     \
    .info = {.struct_size = sizeof(bsmm_elem_info),                                                \
             .elem = id,                                                                           \
             .name = text,                                                                         \
             .bits = b,                                                                            \
             .exponent_bits = e,                                                                   \
             .mantissa_bits = m,                                                                   \
             .bias = bi,                                                                           \
             .max = mx,                                                                            \
             .min_normal = mn,                                                                     \
             .min_subnormal = ms,

/* clang-format off */
static const elem_row rows[] = {
    {ROW(BSMM_ELEM_F32, "f32", 32, 8, 23, 127, 0x1.fffffep127, 0x1p-126, 0x1p-149)
        .nan = "S.11111111.x", .inf = "S.11111111.0", .zeros = "+-0", .used_by = "activations, outputs"},
     .max_code = 0x7f7fffff, .inf_code = 0x7f800000, .nan_code = 0x7fc00000},
    {ROW(BSMM_ELEM_F16, "f16", 16, 5, 10, 15, 65504, 0x1p-14, 0x1p-24)
        .nan = "S.11111.x", .inf = "S.11111.0", .zeros = "+-0", .used_by = "activations, outputs"},
     .max_code = 0x7bff, .inf_code = 0x7c00, .nan_code = 0x7e00},
    {ROW(BSMM_ELEM_BF16, "bf16", 16, 8, 7, 127, 0x1.fep127, 0x1p-126, 0x1p-133)
        .nan = "S.11111111.x", .inf = "S.11111111.0", .zeros = "+-0", .used_by = "activations, outputs"},
     .max_code = 0x7f7f, .inf_code = 0x7f80, .nan_code = 0x7fc0},
    {ROW(BSMM_ELEM_E4M3, "e4m3", 8, 4, 3, 7, 448, 0x1p-6, 0x1p-9)
        .nan = "S.1111.111", .inf = "none", .zeros = "+-0", .used_by = "mxfp8, fp8 groupwise, nvfp4 scales"},
     .max_code = 0x7e, .nan_code = 0x7f},
    {ROW(BSMM_ELEM_E4M3FNUZ, "e4m3fnuz", 8, 4, 3, 8, 240, 0x1p-7, 0x1p-10)
        .nan = "0x80", .inf = "none", .zeros = "+0", .used_by = "fp8 on CDNA3"},
     .max_code = 0x7f, .nan_code = 0x80, .fnuz = true},
    {ROW(BSMM_ELEM_E5M2, "e5m2", 8, 5, 2, 15, 57344, 0x1p-14, 0x1p-16)
        .nan = "S.11111.01,10,11", .inf = "S.11111.00", .zeros = "+-0", .used_by = "mxfp8_e5m2"},
     .max_code = 0x7b, .inf_code = 0x7c, .nan_code = 0x7e},
    {ROW(BSMM_ELEM_E5M2FNUZ, "e5m2fnuz", 8, 5, 2, 16, 57344, 0x1p-15, 0x1p-17)
        .nan = "0x80", .inf = "none", .zeros = "+0", .used_by = "fp8 on CDNA3"},
     .max_code = 0x7f, .nan_code = 0x80, .fnuz = true},
    {ROW(BSMM_ELEM_E3M2, "e3m2", 6, 3, 2, 3, 28, 0x1p-2, 0x1p-4)
        .nan = "none", .inf = "none", .zeros = "+-0", .used_by = "mxfp6_e3m2"},
     .max_code = 0x1f},
    {ROW(BSMM_ELEM_E2M3, "e2m3", 6, 2, 3, 1, 7.5, 1, 0x1p-3)
        .nan = "none", .inf = "none", .zeros = "+-0", .used_by = "mxfp6_e2m3"},
     .max_code = 0x1f},
    {ROW(BSMM_ELEM_E2M1, "e2m1", 4, 2, 1, 1, 6, 1, 0.5)
        .nan = "none", .inf = "none", .zeros = "+-0", .used_by = "mxfp4, nvfp4"},
     .max_code = 0x7},
    {ROW(BSMM_ELEM_E8M0, "e8m0", 8, 8, 0, 127, 0x1p127, 0x1p-127, 0)
        .nan = "0xff", .inf = "none", .zeros = "none", .used_by = "MX block scales"},
     .max_code = 0xfe, .nan_code = 0xff},
};
/* clang-format on */

static const elem_row *find(uint32_t elem) {
    /* The table is in the order of bsmm_elem, which starts at 1. */
    return elem - 1 < BSMM_COUNT(rows) ? &rows[elem - 1] : NULL;
}

const bsmm_elem_info *bsmm_elem_row(uint32_t elem) {
    const elem_row *row = find(elem);
    return row ? &row->info : NULL;
}

/* 2^exponent for a normal double. */
static double power_of_two(int exponent) {
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double bsmm_elem_decode(uint32_t elem, uint32_t code) {
    const elem_row *row = find(elem);
    const bsmm_elem_info *info = &row->info;
    if (elem == BSMM_ELEM_E8M0)
        return (code & 0xff) == 0xff ? NAN : power_of_two((int)(code & 0xff) - 127);
    uint32_t sign_bit = 1u << (info->bits - 1);
    uint32_t magnitude = code & (sign_bit - 1);
    bool negative = code & sign_bit;
    if (row->fnuz ? (negative && !magnitude) : magnitude > row->max_code)
        return row->inf_code && magnitude == row->inf_code ? (negative ? -INFINITY : INFINITY)
                                                           : NAN;
    uint32_t exponent = magnitude >> info->mantissa_bits;
    uint32_t mantissa = magnitude & ((1u << info->mantissa_bits) - 1);
    if (exponent) mantissa |= 1u << info->mantissa_bits;
    int scale = (int)(exponent ? exponent : 1) - info->bias - (int)info->mantissa_bits;
    double value = mantissa * power_of_two(scale);
    return negative ? -value : value;
}

/* Nearest integer, ties to even, of 0 <= q < 2^32, whatever the rounding mode is. */
static uint32_t round_even(double q) {
    uint32_t whole = (uint32_t)q;
    double rest = q - whole;
    return whole + (rest > 0.5 || (rest == 0.5 && (whole & 1)));
}

/* Nearest power of two, ties up; see bsmm_encode_elem. */
static uint32_t encode_e8m0(double value, bool saturate) {
    if (isnan(value)) return 0xff;
    if (value <= 0) return saturate ? 0 : 0xff;
    if (value <= 0x1p-127) return 0;
    /* An f32 subnormal: ml_dtypes and torch round all of these up, not only from 1.5 * 2^-127. */
    if (value < 0x1p-126) return 1;
    int exponent = isinf(value) ? 1024 : ilogb(value);
    if (!isinf(value) && value * power_of_two(-exponent) >= 1.5) exponent++;
    if (exponent > 127) return saturate ? 0xfe : 0xff;
    return (uint32_t)(exponent + 127);
}

static uint32_t overflow_code(const elem_row *row, bool saturate) {
    if (saturate || (!row->inf_code && !row->nan_code)) return row->max_code;
    return row->inf_code ? row->inf_code : row->nan_code;
}

/* Code of |value|; ties to even; above max_code when it overflows. */
static uint32_t round_magnitude(const bsmm_elem_info *info, double magnitude) {
    int lowest = 1 - info->bias;
    int exponent = magnitude < 0x1p-1022 ? lowest : ilogb(magnitude);
    if (exponent < lowest) exponent = lowest;
    if (exponent > (1 << info->exponent_bits) - info->bias) return UINT32_MAX;
    int shift = (int)info->mantissa_bits - exponent;
    /* Two factors, for 2^shift alone may leave the doubles' range. */
    double q = magnitude * power_of_two(shift / 2) * power_of_two(shift - shift / 2);
    return ((uint32_t)(exponent - lowest) << info->mantissa_bits) + round_even(q);
}

uint32_t bsmm_elem_encode(uint32_t elem, double value, bool saturate) {
    if (elem == BSMM_ELEM_E8M0) return encode_e8m0(value, saturate);
    const elem_row *row = find(elem);
    uint32_t sign = signbit(value) ? 1u << (row->info.bits - 1) : 0;
    if (isnan(value)) return row->fnuz ? row->nan_code : row->nan_code ? row->nan_code | sign : 0;
    double magnitude = fabs(value);
    uint32_t code = isinf(value) ? UINT32_MAX : round_magnitude(&row->info, magnitude);
    if (code > row->max_code) {
        code = overflow_code(row, saturate);
        if (row->fnuz && code == row->nan_code) return code;
    }
    if (row->fnuz && code == 0) return 0;
    return code | sign;
}

/* ---- public ---- */

bsmm_status bsmm_elem_at(uint32_t index, bsmm_elem_info *info) {
    if (index >= BSMM_COUNT(rows))
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %u; there are %zu element formats",
                         index, BSMM_COUNT(rows));
    return bsmm_give_struct(info, &rows[index].info, sizeof rows[index].info, "info");
}

static bsmm_status find_public(uint32_t elem, const elem_row **row) {
    *row = find(elem);
    if (*row) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "elem: value is %u; must be a bsmm_elem from 1 to %zu", elem,
                     BSMM_COUNT(rows));
}

bsmm_status bsmm_encode_elem(uint32_t elem, float value, int saturate, uint32_t *code) {
    const elem_row *row;
    BSMM_TRY(find_public(elem, &row));
    if (!code) return bsmm_fail(BSMM_E_INVALID, "code: value is NULL; must point to the result");
    *code = bsmm_elem_encode(elem, (double)value, saturate != 0);
    return BSMM_OK;
}

bsmm_status bsmm_decode_elem(uint32_t elem, uint32_t code, double *value) {
    const elem_row *row;
    BSMM_TRY(find_public(elem, &row));
    if (!value) return bsmm_fail(BSMM_E_INVALID, "value: value is NULL; must point to the result");
    if (row->info.bits < 32 && code >> row->info.bits)
        return bsmm_fail(BSMM_E_INVALID, "code: value is 0x%x; %s has %u bits", code,
                         row->info.name, row->info.bits);
    *value = bsmm_elem_decode(elem, code);
    return BSMM_OK;
}
