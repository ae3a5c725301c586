/* Converts elements of at most 8 bits between their codes and fp32, without branches and without
 * lookup tables. A magnitude is a code without its sign bit. */
#ifndef BSMM_GPU_CODEC_H
#define BSMM_GPU_CODEC_H

#include "gpu/scalar.h"

typedef struct bsmm_narrow_codec {
    /* These constants decode a code to fp32. The shifts `up` and `down` move the code's sign,
     * exponent and mantissa to their positions in an fp32 number. One exact multiplication then
     * corrects the exponent bias, also for subnormals. */
    uint32_t up; /* `up` is the left shift that moves a code's sign bit to bit 31. */
    /* `down` is the arithmetic right shift that, after the left shift, moves the code's exponent
     * and mantissa to the position that they have in fp32. */
    uint32_t down;
    uint32_t mask; /* `mask` is the mask of the sign bit and of the magnitude after both shifts. */
    float unbias;  /* `unbias` is 2^(127 - bias), the factor that corrects the exponent bias. */
    uint32_t sign; /* `sign` is the mask of a code's sign bit. */
    /* `special` is the smallest magnitude code that is Inf or NaN, or 0x80 if every magnitude is
     * finite. */
    uint32_t special;
    uint32_t inf; /* `inf` is the magnitude of Inf, or 0xff if the format has no Inf. */
    /* `lone_nan` is 0x80 in the fnuz formats, where this code is the only NaN. In all other formats
     * it is 0x100, which is no code. */
    uint32_t lone_nan;
    /* The magnitude of each nonzero finite value of the format is at least 2^low and less than
     * 2^high. */
    int32_t low, high;
    /* These constants encode fp32 to a code, rounded to the nearest value with ties to even. A
     * carry out of the mantissa correctly increments the exponent. */
    uint32_t shift; /* `shift` is the number of fp32 mantissa bits that rounding removes. */
    /* `rebias` is added to fp32 bits before rounding removes their last bits. It is the difference
     * of the exponent biases of the format and of fp32, plus half a unit in the last place. */
    uint32_t rebias;
    uint32_t min_normal; /* `min_normal` is the smallest normal magnitude, as fp32 bits. */
    /* `magic` holds the fp32 bits of a large number, whose unit in the last place is the format's
     * smallest subnormal. If this number is added to a value below min_normal, the fp32 addition
     * rounds the value to a multiple of the smallest subnormal. */
    uint32_t magic;
    uint32_t max_code; /* `max_code` is the largest finite magnitude, as a code. */
} bsmm_narrow_codec;

/* Returns the value of a finite code. The code is in the low bits of `code`, and the bits above it
 * are ignored. */
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

/* Returns the code of a finite value. A value beyond the format's range saturates to the largest
 * finite code. */
BSMM_SHARED uint32_t bsmm_narrow_code(const bsmm_narrow_codec *k, float value) {
    uint32_t bits = bsmm_float_bits(value), a = bits & 0x7fffffffu;
    uint32_t normal = (a + k->rebias + (a >> k->shift & 1)) >> k->shift;
    uint32_t small = bsmm_float_bits(bsmm_bits_float(a) + bsmm_bits_float(k->magic)) - k->magic;
    uint32_t code = a < k->min_normal ? small : normal;
    code = code < k->max_code ? code : k->max_code;
    return code | (bits & 0x80000000u) >> k->up;
}

/* Returns the value of an e4m3 scale code. */
BSMM_SHARED float bsmm_e4m3_scale(uint32_t code) {
    uint32_t bits = (uint32_t)((int32_t)(code << 24) >> 4) & 0x87f00000u;
    /* The factor 2^120 corrects the exponent bias. */
    float value = bsmm_bits_float(bits) * bsmm_bits_float(247u << 23);
    return (code & 0x7f) == 0x7f ? bsmm_bits_float(0x7fc00000u) : value;
}

BSMM_SHARED void bsmm_spread4(uint32_t nibbles, uint32_t *bytes) {
    uint32_t even = nibbles & 0x0f0f0f0fu, odd = nibbles >> 4 & 0x0f0f0f0fu;
    bytes[0] = bsmm_pick_bytes(even, odd, 0x5140);
    bytes[1] = bsmm_pick_bytes(even, odd, 0x7362);
}

/* Spreads four 6-bit codes, packed in 24 bits, to one code per byte. */
BSMM_SHARED uint32_t bsmm_spread6(uint32_t word) {
    return (word & 0x3f) | (word & 0xfc0) << 2 | (word & 0x3f000) << 4 | (word & 0xfc0000) << 6;
}

#endif
