/* Fast element codecs for whole runs of fp32 values, bit-identical to bsmm_elem_encode. */
#ifndef BSMM_QUANTIZE_CODER_H
#define BSMM_QUANTIZE_CODER_H

#include "format/format.h"

/* What happens halfway between two codes. */
typedef enum bsmm_ties {
    BSMM_TIES_EVEN = 0,
    BSMM_TIES_DOWN = 1 /* towards zero: a bound belongs to the value below it; e2m1 only */
} bsmm_ties;

/* The sign of a code whose value or result is zero. */
typedef enum bsmm_zero_sign {
    BSMM_ZERO_KEEPS_SIGN = 0, /* -0 and what rounds to -0 stay negative */
    BSMM_ZERO_PLUS = 1,       /* -0 becomes +0; what rounds to zero keeps its sign (x < 0) */
    BSMM_ZERO_CODE_PLUS = 2,  /* every zero code is +0 */
    BSMM_ZERO_MINUS = 3       /* +0 and -0 become -0; what rounds to zero keeps its sign */
} bsmm_zero_sign;

/* The constants of one element format (all but f32) under one rule. */
typedef struct bsmm_coder {
    uint32_t shift;      /* fp32 mantissa bits that are rounded away */
    uint32_t rebias;     /* exponent offset and rounding half, as fp32 bits */
    uint32_t min_normal; /* as fp32 bits */
    uint32_t magic;      /* fp32 bits of the number whose ulp is the least subnormal */
    uint32_t max_code;   /* of what overflows; without saturation Inf or, e4m3, NaN */
    uint32_t nan_code, nan_sign;
    uint32_t sign_shift;                       /* from bit 31 to the code's sign bit */
    bool down;                                 /* BSMM_TIES_DOWN */
    uint32_t zero_and, zero_or, zero_code_and; /* bsmm_zero_sign as masks */
} bsmm_coder;

bsmm_coder bsmm_coder_make(uint32_t elem, bool saturate, bsmm_ties ties, bsmm_zero_sign zero_sign);

/* Codes of values[0 .. n). */
void bsmm_coder_run(const bsmm_coder *coder, const float *values, int64_t n, uint16_t *codes);

/* e2m1 codes of values / scale under BSMM_TIES_DOWN, but without the division's rounding: values
 * are compared with the bounds times scale, which are exact for scales of up to 20 bits. What has
 * no nearest value (NaN, Inf, any value when scale is 0) gives code 0. */
void bsmm_coder_run_bounds(const bsmm_coder *coder, const float *values, int64_t n, float scale,
                           uint16_t *codes);

static inline uint32_t bsmm_float_bits(float value) {
    union {
        float value;
        uint32_t bits;
    } both = {.value = value};
    return both.bits;
}
static inline float bsmm_bits_float(uint32_t bits) {
    union {
        uint32_t bits;
        float value;
    } both = {.bits = bits};
    return both.value;
}

/* condition ? a : b, but both are computed: a compiler that may not move floating-point operations
 * out of a branch then still makes loops of it into vectors. */
static inline uint32_t bsmm_select(bool condition, uint32_t a, uint32_t b) {
    return b ^ ((a ^ b) & (0u - (uint32_t)condition));
}

static inline float bsmm_select_float(bool condition, float a, float b) {
    return bsmm_bits_float(bsmm_select(condition, bsmm_float_bits(a), bsmm_float_bits(b)));
}

/* Nearest e4m3, ties to even, saturating: the coder for scales. */
static inline uint32_t bsmm_e4m3_code(float value) {
    uint32_t bits = bsmm_float_bits(value), a = bits & 0x7fffffffu, sign = bits >> 24 & 0x80;
    uint32_t normal = (a - (120u << 23) + 0x7ffff + (a >> 20 & 1)) >> 20;
    uint32_t small = bsmm_float_bits(bsmm_bits_float(a) + 0x1p14f) - bsmm_float_bits(0x1p14f);
    uint32_t code = bsmm_select(a < 0x3c800000u, small, normal); /* 2^-6 */
    code = code < 0x7e ? code : 0x7e;
    return bsmm_select(a > 0x7f800000u, 0x7f, code) | sign;
}

static inline float bsmm_e4m3_value(uint32_t code) {
    uint32_t a = code & 0x7f, sign = (code & 0x80) << 24;
    uint32_t small = bsmm_float_bits((float)(int32_t)a * 0x1p-9f);
    uint32_t finite = bsmm_select(a < 8, small, (a << 20) + (120u << 23)) | sign;
    return bsmm_bits_float(bsmm_select(a == 0x7f, 0x7fc00000u, finite));
}

/* Stores a run of codes at element (r, c) of a matrix, along its columns; the padding that
 * completes the last group of 4- or 6-bit elements is written 0. In ORDER_ROW c must start a group;
 * in ORDER_COL the rows of one group must be stored by one thread. */
void bsmm_codes_store(const bsmm_operand *dst, int64_t r, int64_t c, int64_t n,
                      const uint16_t *codes);

/* The codes of such a run, with the same condition on c; 16 bits and fewer. */
void bsmm_codes_load(const bsmm_operand *src, int64_t r, int64_t c, int64_t n, uint16_t *codes);

/* Loads rows [r, r + rows) x columns [c, c + cols) of an unscaled f32, f16 or bf16 matrix, `pitch`
 * floats from row to row. */
void bsmm_values_load(const bsmm_operand *src, int64_t r, int64_t rows, int64_t c, int64_t cols,
                      float *values, int64_t pitch);

/* Values of any matrix: bsmm_operand_decode_row's, but for what NaNs carry. */
void bsmm_values_decode(const bsmm_operand *src, int64_t r, int64_t c, int64_t n, double *to);

#endif
