/* Decodes elements to bf16 on gfx942, which has no instructions for 4-bit and 6-bit elements and
 * for OCP's e4m3 and e5m2.
 *
 * e2m1: a lane looks magnitudes up in a table. The table holds the eight magnitudes of e2m1 times
 * the scale, as bf16. The instruction v_perm_b32 picks four of eight bytes, so the table has the
 * low bytes and the high bytes in separate words.
 *
 * e4m3: an instruction decodes two elements of e4m3fnuz to fp32. The code of an e4m3 number is the
 * e4m3fnuz code of half the number. The code of -0 means NaN in e4m3fnuz, so a lane first replaces
 * -0 by +0. The codes of e4m3's NaN mean numbers in e4m3fnuz, so a lane looks for them. The same
 * holds for e5m2 and e5m2fnuz, and for the codes of e5m2's Inf and NaN.
 *
 * e2m3 and e3m2: a lane moves the 6-bit codes to bytes. With the sign in bit 7, the code of an e2m3
 * number is the e4m3fnuz code of 2^-7 times the number. The code of an e3m2 number is the e5m2fnuz
 * code of 2^-13 times the number. e4m3fnuz has as many mantissa bits as e2m3, e5m2fnuz has as many
 * as e3m2, and both have more exponent bits. -0 becomes +0 here too. */
#ifndef BSMM_AMDGPU_CDNA_SMALL_M_DECODE_GFX942_H
#define BSMM_AMDGPU_CDNA_SMALL_M_DECODE_GFX942_H

#include "amdgpu/cdna/small_m_decode.h"

/* Holds magnitudes of e2m1 times a scale. */
typedef struct small_m_table {
    uint32_t low[2], high[2];
} small_m_table;

/* Holds what a lane needs to decode its 32 elements of one row in a step. For e2m1 elements,
 * `tables` has the products of the eight magnitudes and a scale. An e8m0 scale covers all 32
 * elements, so both tables are the same. An e4m3 scale covers 16 elements, so each half of the
 * elements has its own table. For 8-bit elements, `scale` is the block scale. `nan` is combined by
 * OR with the first two decoded elements. It is 0 if all elements can be decoded exactly. Otherwise
 * it makes one of them NaN, so that the results are computed again in double. */
typedef struct small_m_factor {
    small_m_table tables[2];
    float scale;
    uint32_t nan;
} small_m_factor;

/* Makes the table of words with two magnitudes each: 0 and 0.5, 1 and 1.5, 2 and 3, 4 and 6. */
BSMM_DEVICE small_m_table small_m_table_of(uint32_t half, uint32_t one, uint32_t two,
                                           uint32_t four) {
    return (small_m_table){
        {__builtin_amdgcn_perm(one, half, 0x06040200),
         __builtin_amdgcn_perm(four, two, 0x06040200)},
        {__builtin_amdgcn_perm(one, half, 0x07050301),
         __builtin_amdgcn_perm(four, two, 0x07050301)},
    };
}

/* Makes a table of products in bf16: each magnitude of e2m1 times the e8m0 scale with the given
 * code. The magnitudes are 0.5, 1, 1.5, 2, 3, 4 and 6, whose bf16 codes are 0x3f00, 0x3f80, 0x3fc0,
 * 0x4000, 0x4040, 0x4080 and 0x40c0; the eighth magnitude is 0. The scale is 2^(code - 127), and
 * the exponent of bf16 begins at bit 7. The function therefore multiplies a nonzero magnitude by
 * adding (code - 127) * 0x80, i.e. code * 0x80 - 0x3f80, to its bf16 code. */
BSMM_DEVICE small_m_table small_m_table_of_e8m0(uint32_t code) {
    const uint32_t one = code << 23 | code << 7; /* `one` holds the scale as bf16 in both halves. */
    return small_m_table_of((one & 0xffff0000u) - 0x00800000u, one + 0x00400000u, one + 0x00c00080u,
                            one + 0x01400100u);
}

/* Makes the table of e2m1's magnitudes times an e4m3 scale without a sign. The products have at
 * most six significant bits, so bf16 holds them exactly. */
BSMM_DEVICE small_m_table small_m_table_of_e4m3(uint32_t code) {
    const float one = small_m_e4m3(code), more = one * 1.5f;
    return small_m_table_of(small_m_join(0, one * 0.5f), small_m_join(one, more),
                            small_m_join(one * 2, more * 2), small_m_join(one * 4, more * 4));
}

/* Returns 1 if any of a lane's 32 elements of e4m3 or e5m2 is Inf or NaN, else 0. */
BSMM_DEVICE uint32_t small_m_has_nan(small_m_format f, const bsmm_u32x4 words[2]) {
    uint32_t nans = 0;
#pragma unroll
    for (uint32_t i = 0; i < 8; i++)
        nans |= f.elem == BSMM_ELEM_E5M2 ? (words[i / 4][i % 4] & 0x7f7f7f7fu) + 0x04040404u
                                         : bsmm_e4m3_nans(words[i / 4][i % 4]);
    return (nans & 0x80808080u) != 0;
}

/* The conversion instructions of gfx942 read every 8-bit code as e4m3fnuz or e5m2fnuz. A code of
 * another format then gets a value that is too small by a power of two. Returns the log2 of this
 * factor for the format. */
BSMM_DEVICE uint32_t small_m_lost(small_m_format f) {
    return f.elem == BSMM_ELEM_E2M3 ? 7 : f.elem == BSMM_ELEM_E3M2 ? 13 : 1;
}

BSMM_DEVICE small_m_factor small_m_factor_of(small_m_shape s, small_m_format f, uint32_t codes,
                                             const bsmm_u32x4 words[2]) {
    small_m_factor factor = {.scale = 1};
    uint32_t is_nan = small_m_bits(f) == 8 ? small_m_has_nan(f, words) : 0;
    if (f.scale == BSMM_SCALE_E4M3) {
        factor.tables[0] = small_m_table_of_e4m3(codes & 0xff);
        factor.tables[1] = small_m_table_of_e4m3(codes >> 8);
        is_nan = small_m_has_odd_scale(codes);
    } else if (f.scale == BSMM_SCALE_E8M0) {
        if (f.elem == BSMM_ELEM_E2M1)
            factor.tables[0] = factor.tables[1] = small_m_table_of_e8m0(codes);
        factor.scale = bsmm_bits_float((codes + small_m_lost(f)) << 23);
        is_nan |= small_m_is_beyond(s, codes, small_m_any_of_lane(f, words));
    }
    factor.nan = small_m_nan_bits(is_nan);
    return factor;
}

/* Decodes four e2m1 codes, one per byte, to two words of bf16. The elements keep their order. The
 * codes are below 16. */
BSMM_DEVICE void small_m_decode_e2m1(const small_m_table *t, uint32_t codes, uint32_t to[2]) {
    const uint32_t at = codes & 0x07070707u;
    const uint32_t low = __builtin_amdgcn_perm(t->low[1], t->low[0], at);
    const uint32_t magnitude = __builtin_amdgcn_perm(t->high[1], t->high[0], at);
    const uint32_t high = (codes << 4 & 0x80808080u) | (magnitude & 0x7f7f7f7fu);
    to[0] = __builtin_amdgcn_perm(high, low, 0x05010400);
    to[1] = __builtin_amdgcn_perm(high, low, 0x07030602);
}

/* Prepares four e4m3 or e5m2 codes for gfx942, which multiplies e4m3fnuz and e5m2fnuz. In these
 * formats the code of a number means half the value that it means in e4m3 or e5m2, and the code of
 * -0 means NaN. The function replaces -0 by +0 and changes no other code. In the variable
 * `nonzero`, bit 7 of a byte is set if the element is not 0. */
BSMM_DEVICE uint32_t small_m_fnuz(uint32_t word) {
    const uint32_t low = word & 0x7f7f7f7fu, nonzero = low + 0x7f7f7f7fu;
    return (word & nonzero & 0x80808080u) | low;
}

/* Unpacks four 6-bit elements of a lane, number 4 * i to 4 * i + 3, to the four bytes of a word. In
 * a byte of the result, bit 7 is the sign of the element, bits 0 to 4 are its magnitude, and bits 5
 * and 6 are 0. The packed elements are the 24 bits of `words` that begin at bit 24 * i. The
 * function first moves two elements to each 16-bit half of a word (`halves`), and then one element
 * to each byte (`bytes`). In these two variables, the bits above the elements of a half or byte are
 * arbitrary. */
BSMM_DEVICE uint32_t small_m_spread_six(const bsmm_u32x4 words[2], uint32_t i) {
    const uint32_t first = 24 * i / 32, second = first + (24 * i % 32 > 8);
    const uint32_t bits = __builtin_amdgcn_alignbit(words[second / 4][second % 4],
                                                    words[first / 4][first % 4], 24 * i % 32);
    const uint32_t halves = (bits & 0xfffu) | (bits << 4 & ~0xfffu);
    const uint32_t bytes = (halves & 0x003f003fu) | (halves << 2 & ~0x003f003fu);
    return (bytes << 2 & 0x80808080u) | (bytes & 0x1f1f1f1fu);
}

/* Decodes four codes to two words of bf16. They are codes of e4m3 or e5m2, or 6-bit codes that
 * small_m_spread_six moved to bytes. If `is_scaled`, the elements are multiplied by the scale.
 * Otherwise an e4m3 or e5m2 element is decoded to half of its value, because gfx942 reads its code
 * as e4m3fnuz or e5m2fnuz. The kernel corrects the sums later (small_m_correction). */
BSMM_DEVICE void small_m_decode_eight(small_m_format f, const small_m_factor *factor,
                                      bool is_scaled, uint32_t word, uint32_t to[2]) {
    const int32_t code = (int32_t)small_m_fnuz(word);
    const bool e5m2 = f.elem == BSMM_ELEM_E5M2 || f.elem == BSMM_ELEM_E3M2;
    small_m_pair first = e5m2 ? __builtin_amdgcn_cvt_pk_f32_bf8(code, false)
                              : __builtin_amdgcn_cvt_pk_f32_fp8(code, false);
    small_m_pair second = e5m2 ? __builtin_amdgcn_cvt_pk_f32_bf8(code, true)
                               : __builtin_amdgcn_cvt_pk_f32_fp8(code, true);
    const small_m_pair scale = {factor->scale, factor->scale};
    if (is_scaled) first *= scale, second *= scale;
    to[0] = small_m_join(first[0], first[1]);
    to[1] = small_m_join(second[0], second[1]);
}

/* Decodes elements [8 * quarter, 8 * quarter + 8) of a lane. The decoded elements keep their
 * order. */
BSMM_DEVICE bsmm_u32x4 small_m_decode(small_m_format f, const small_m_factor *factor,
                                      const bsmm_u32x4 words[2], uint32_t quarter) {
    uint32_t to[4];
    if (f.elem == BSMM_ELEM_E2M1) {
        const uint32_t word = words[0][quarter];
        const uint32_t even = word & 0x0f0f0f0fu, odd = word >> 4 & 0x0f0f0f0fu;
        const small_m_table *table = &factor->tables[quarter / 2];
        small_m_decode_e2m1(table, __builtin_amdgcn_perm(odd, even, 0x05010400), to);
        small_m_decode_e2m1(table, __builtin_amdgcn_perm(odd, even, 0x07030602), to + 2);
    } else if (small_m_bits(f) == 6) {
        const uint32_t low = small_m_spread_six(words, 2 * quarter);
        const uint32_t high = small_m_spread_six(words, 2 * quarter + 1);
        small_m_decode_eight(f, factor, true, low, to);
        small_m_decode_eight(f, factor, true, high, to + 2);
    } else {
        const bool is_scaled = f.scale == BSMM_SCALE_E8M0;
        small_m_decode_eight(f, factor, is_scaled, words[quarter / 2][quarter % 2 * 2], to);
        small_m_decode_eight(f, factor, is_scaled, words[quarter / 2][quarter % 2 * 2 + 1], to + 2);
    }
    if (quarter == 0) to[0] |= factor->nan;
    return (bsmm_u32x4){to[0], to[1], to[2], to[3]};
}

/* The kernel decodes e4m3 elements without scales or with fp32 scales to half of their values.
 * Returns the factor that corrects this for an operand of format f: 2, or 1 for all other formats.
 * The kernel multiplies sums of products by it, or the fp32 scales by which it multiplies the sums.
 */
BSMM_DEVICE float small_m_correction(small_m_format f) {
    const bool decoded_to_half = f.scale == BSMM_SCALE_F32 || f.scale == BSMM_SCALE_NONE;
    return small_m_bits(f) == 8 && decoded_to_half ? 2 : 1;
}

#endif
