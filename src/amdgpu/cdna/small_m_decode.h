/* Decodes weights to bf16 for the kernels for few rows of A (small_m.c). A lane decodes 32
 * consecutive elements of a row of B, which share one e8m0 scale, and multiplies them by the scale.
 * The decoded values are exact if the scale lies between 2^-99 and 2^28 (bsmm_e8m0_most). If a
 * result depends on another scale, the kernels compute the result again in double. */
#ifndef BSMM_AMDGPU_CDNA_SMALL_M_DECODE_H
#define BSMM_AMDGPU_CDNA_SMALL_M_DECODE_H

#include "amdgpu/isa/mfma.h"
#include "gpu/small_m_weights.h"

#if defined(__gfx950__)

/* gfx950 has an instruction that decodes two e2m1 elements and multiplies them by a scale. */
typedef struct small_m_factor {
    float scale;
} small_m_factor;

BSMM_DEVICE small_m_factor small_m_factor_of(uint32_t code) {
    return (small_m_factor){bsmm_bits_float(code << 23)};
}

/* Decodes eight e2m1 elements. They keep their order. */
BSMM_DEVICE bsmm_u32x4 small_m_decode_e2m1(const small_m_factor *f, uint32_t word) {
    typedef __bf16 pair __attribute__((ext_vector_type(2)));
    union {
        pair pairs[4];
        bsmm_u32x4 words;
    } to;
    to.pairs[0] = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(word, f->scale, 0);
    to.pairs[1] = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(word, f->scale, 1);
    to.pairs[2] = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(word, f->scale, 2);
    to.pairs[3] = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(word, f->scale, 3);
    return to.words;
}

#else

/* On gfx942, a lane looks magnitudes up in a table. The table holds the eight magnitudes of e2m1
 * times the scale, as bf16. The instruction v_perm_b32 picks four of eight bytes, so the table has
 * the low bytes and the high bytes in separate words. */
typedef struct small_m_factor {
    uint32_t low[2], high[2];
} small_m_factor;

/* Makes the table of magnitudes for a scale. The magnitudes are 0, 0.5, 1, 1.5, 2, 3, 4 and 6.
 * Their bf16 codes, apart from that of 0, are 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080 and
 * 0x40c0. A scale of 2^(code - 127) adds (code - 127) * 0x80 to each of these codes, and 127 * 0x80
 * is 0x3f80. */
BSMM_DEVICE small_m_factor small_m_factor_of(uint32_t code) {
    const uint32_t one = code << 23 | code << 7; /* the scale as bf16, twice */
    const uint32_t half = (one & 0xffff0000u) - 0x00800000u;
    const uint32_t two = one + 0x00400000u, four = one + 0x00c00080u, six = one + 0x01400100u;
    return (small_m_factor){
        {__builtin_amdgcn_perm(two, half, 0x06040200),
         __builtin_amdgcn_perm(six, four, 0x06040200)},
        {__builtin_amdgcn_perm(two, half, 0x07050301),
         __builtin_amdgcn_perm(six, four, 0x07050301)},
    };
}

/* Decodes four e2m1 codes, one per byte, to two words of bf16. The elements keep their order. The
 * codes are below 16. */
BSMM_DEVICE void small_m_decode_bytes(const small_m_factor *f, uint32_t codes, uint32_t to[2]) {
    const uint32_t at = codes & 0x07070707u;
    const uint32_t low = __builtin_amdgcn_perm(f->low[1], f->low[0], at);
    const uint32_t magnitude = __builtin_amdgcn_perm(f->high[1], f->high[0], at);
    const uint32_t high = (codes << 4 & 0x80808080u) | (magnitude & 0x7f7f7f7fu);
    to[0] = __builtin_amdgcn_perm(high, low, 0x05010400);
    to[1] = __builtin_amdgcn_perm(high, low, 0x07030602);
}

/* Decodes eight e2m1 elements. They keep their order. */
BSMM_DEVICE bsmm_u32x4 small_m_decode_e2m1(const small_m_factor *f, uint32_t word) {
    const uint32_t even = word & 0x0f0f0f0fu, odd = word >> 4 & 0x0f0f0f0fu;
    uint32_t to[4];
    small_m_decode_bytes(f, __builtin_amdgcn_perm(odd, even, 0x05010400), to);
    small_m_decode_bytes(f, __builtin_amdgcn_perm(odd, even, 0x07030602), to + 2);
    return (bsmm_u32x4){to[0], to[1], to[2], to[3]};
}

#endif
#endif
