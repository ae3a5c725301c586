/* Elements of 8 bits and fewer: from codes to fp32 and back, without branches and tables. */
#ifndef BSMM_GPU_CODEC_H
#define BSMM_GPU_CODEC_H

#include "gpu/scalar.h"

typedef struct bsmm_narrow_codec {
    /* code -> fp32: the code's bits move to fp32's place, exponent and mantissa side by side, and
     * one exact product corrects the bias, of subnormals too. */
    uint32_t up;       /* from the code to bit 31 */
    uint32_t down;     /* from there, arithmetically, to fp32's place */
    uint32_t mask;     /* sign and magnitude there */
    float unbias;      /* 2^(127 - bias) */
    uint32_t sign;     /* a code's sign bit */
    uint32_t special;  /* magnitudes from here on are not finite; 0x80: none */
    uint32_t inf;      /* the magnitude that is Inf; 0xff: none */
    uint32_t lone_nan; /* the code that is NaN by itself (0x80 of fnuz); 0x100: none */
    int32_t low, high; /* nonzero finite values are at least 2^low, and less than 2^high */
    /* fp32 -> code, nearest even: the rounding carry runs into the exponent. */
    uint32_t shift;      /* fp32 mantissa bits that are rounded away */
    uint32_t rebias;     /* exponent offset and rounding half, as fp32 bits */
    uint32_t min_normal; /* as fp32 bits */
    uint32_t magic;      /* fp32 bits of the number whose ulp is the least subnormal */
    uint32_t max_code;   /* the largest finite magnitude */
} bsmm_narrow_codec;

/* The finite value of a code, the low 8 bits of `code`; what is above them is ignored. */
BSMM_SHARED float bsmm_narrow_finite(const bsmm_narrow_codec *k, uint32_t code) {
    uint32_t bits = (uint32_t)((int32_t)(code << k->up) >> k->down) & k->mask;
    return bsmm_bits_float(bits) * k->unbias;
}

BSMM_SHARED float bsmm_narrow_value(const bsmm_narrow_codec *k, uint32_t code) {
    uint32_t magnitude = code & (k->sign - 1), sign = (code & k->sign) << k->up;
    float value = bsmm_narrow_finite(k, code);
    if (magnitude >= k->special)
        value = bsmm_bits_float(magnitude == k->inf ? 0x7f800000u | sign : 0x7fc00000u);
    return code == k->lone_nan ? bsmm_bits_float(0x7fc00000u) : value;
}

/* The code of a finite value, saturating. */
BSMM_SHARED uint32_t bsmm_narrow_code(const bsmm_narrow_codec *k, float value) {
    uint32_t bits = bsmm_float_bits(value), a = bits & 0x7fffffffu;
    uint32_t normal = (a + k->rebias + (a >> k->shift & 1)) >> k->shift;
    uint32_t small = bsmm_float_bits(bsmm_bits_float(a) + bsmm_bits_float(k->magic)) - k->magic;
    uint32_t code = a < k->min_normal ? small : normal;
    code = code < k->max_code ? code : k->max_code;
    return code | (bits & 0x80000000u) >> k->up;
}

/* e4m3, for scales. */
BSMM_SHARED float bsmm_e4m3_scale(uint32_t code) {
    uint32_t bits = (uint32_t)((int32_t)(code << 24) >> 4) & 0x87f00000u;
    float value = bsmm_bits_float(bits) * bsmm_bits_float(247u << 23); /* 2^120 */
    return (code & 0x7f) == 0x7f ? bsmm_bits_float(0x7fc00000u) : value;
}

/* ---- packed codes, spread to one per byte ---- */

BSMM_SHARED void bsmm_spread4(uint32_t nibbles, uint32_t *bytes) {
    uint32_t even = nibbles & 0x0f0f0f0fu, odd = nibbles >> 4 & 0x0f0f0f0fu;
    bytes[0] = bsmm_pick_bytes(even, odd, 0x5140);
    bytes[1] = bsmm_pick_bytes(even, odd, 0x7362);
}

/* Four codes from 24 bits. */
BSMM_SHARED uint32_t bsmm_spread6(uint32_t word) {
    return (word & 0x3f) | (word & 0xfc0) << 2 | (word & 0x3f000) << 4 | (word & 0xfc0000) << 6;
}

#endif
