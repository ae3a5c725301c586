/* The fast forms of what cuda/pack_lane.h defines, for finite elements: two at a time in 16-bit
 * floats. What is not finite, and groups that need a scale of their own, take the definitions. */
#ifndef BSMM_CUDA_PACK_ITEM_H
#define BSMM_CUDA_PACK_ITEM_H

#include "cuda/ptx/arith.h"
#include "cuda/ptx/convert.h"
#include "cuda/sm80/pack_memory.h"

/* Whether any code of an item is not a zero. */
static __device__ __forceinline__ bool item_any(const bsmm_pack_job *job, int bits, int words,
                                                const uint32_t *codes) {
    uint32_t any = 0;
    for (int i = 0; i < words; i++)
        any |= codes[i];
    return any & (bits == 4 ? 0x77777777u : (job->codec.sign - 1) * 0x01010101u);
}

/* Whether any code is not finite. fnuz: 0x80 is NaN; there bytes that are 0x80 are looked for. */
static __device__ __forceinline__ bool any_special(const bsmm_pack_job *job, int bits, int words,
                                                   const uint32_t *codes) {
    uint32_t found = 0;
    if (bits < 8) return false;
    if (job->codec.lone_nan == 0x80)
        for (int i = 0; i < words; i++) {
            uint32_t zeros = codes[i] ^ 0x80808080u;
            found |= (zeros - 0x01010101u) & ~zeros;
        }
    else
        for (int i = 0; i < words; i++)
            found |= (codes[i] & 0x7f7f7f7fu) + job->pair.special;
    return found & 0x80808080u;
}

/* Two codes, each at the top of a half, to 16-bit floats that still have the element's bias. What
 * is below the codes does not matter. */
static __device__ __forceinline__ uint32_t biased_pair(const bsmm_pack_job *job, uint32_t halves) {
    return (halves >> job->pair.down & job->pair.mask) | (halves & 0x80008000u);
}

/* Codes 2 i and 2 i + 1 of an item, each at the top of a half. */
static __device__ __forceinline__ uint32_t top_pair(int bits, const uint32_t *codes, int i) {
    if (bits == 4) { /* byte j of `even` and `odd` begins with code 2 j and 2 j + 1 */
        uint32_t even = codes[i / 4] << 4, odd = codes[i / 4];
        int j = i % 4;
        return __byte_perm(even, odd, j << 4 | j | (j + 4) << 12 | (j + 4) << 8);
    }
    return __byte_perm(codes[i / 2] << (8 - bits), 0, i % 2 ? 0x3424 : 0x1404);
}

static __device__ __forceinline__ uint32_t mul_bf16x2(uint32_t a, uint32_t b) {
    return bsmm_ptx_fma_bf16x2(a, b, 0x80008000u); /* minus zero keeps every sign */
}

/* ---- to bf16 ---- */

/* A block scale as bf16, in both halves. */
static __device__ __forceinline__ uint32_t factor_bf16x2(uint32_t scale, uint32_t code) {
    uint32_t bits = 0x3f80;
    if (scale == 1) {
        int shift = (int)code - 127;
        bits = shift >= -126  ? (uint32_t)(shift + 127) << 7
               : shift < -133 ? 0
                              : 1u << (shift + 133);
        if (code == 255) bits = 0x7fff;
    }
    if (scale == 2) bits = bsmm_lane_bf16(bsmm_e4m3_scale(code)) >> 16;
    return bits * 0x00010001u;
}

static __device__ __forceinline__ void emit_bf16(const bsmm_pack_job *job, int bits,
                                                 const uint32_t *codes, uint32_t factor,
                                                 uint32_t *to) {
    for (int i = 0; i < 4; i++) {
        uint32_t pair = biased_pair(job, top_pair(bits, codes, i));
        to[i] = mul_bf16x2(mul_bf16x2(pair, job->pair.unbias), factor);
    }
}

/* ---- to 8 bits ---- */

/* 2^shift in two factors of f16, each in both halves; shifts beyond what both hold give 0 for
 * numbers that it makes 0 anyway. */
static __device__ __forceinline__ uint32_t factor_f16x2(int shift) {
    uint32_t bits = shift >= -14  ? (uint32_t)(shift + 15) << 10
                    : shift < -24 ? 0
                                  : 1u << (shift + 24);
    return bits * 0x00010001u;
}

/* 16 packed e2m1 codes to e4m3 by a table of eight magnitudes; bsmm_lane_emit_e2m1's bytes. */
static __device__ __forceinline__ void emit_fold4(int shift, const uint32_t *codes, uint32_t *to) {
    uint32_t table[2];
    bsmm_lane_e2m1_codes(shift, table);
    for (int i = 0; i < 4; i++) {
        uint32_t four = codes[i / 2] >> 16 * (i % 2); /* selectors are its low 16 bits */
        uint32_t magnitudes = __byte_perm(table[0], table[1], four & 0x7777);
        to[i] = magnitudes | __byte_perm(0x8000, 0, four >> 3 & 0x1111);
    }
}

#if __CUDA_ARCH__ >= 890
static __device__ __forceinline__ void emit_fold6(const bsmm_pack_job *job, int shift,
                                                  const uint32_t *codes, uint32_t *to) {
    uint32_t factor = factor_f16x2(shift);
    for (int i = 0; i < 4; i++) {
        uint32_t pairs[2];
        for (int j = 0; j < 2; j++) {
            uint32_t pair = biased_pair(job, top_pair(6, codes, 2 * i + j));
            pair = bsmm_ptx_mul_f16x2(bsmm_ptx_mul_f16x2(pair, job->pair.unbias), factor);
            pairs[j] = bsmm_ptx_cvt_e4m3x2_f16x2(pair);
        }
        to[i] = __byte_perm(pairs[0], pairs[1], 0x5410);
    }
}

static __device__ __forceinline__ void emit_fast_e4m3(int shift, const uint32_t *codes,
                                                      uint32_t *to) {
    uint32_t factor = factor_f16x2(shift);
    for (int i = 0; i < 4; i++) {
        uint32_t low = bsmm_ptx_cvt_f16x2_e4m3x2((uint16_t)codes[i]);
        uint32_t high = bsmm_ptx_cvt_f16x2_e4m3x2((uint16_t)(codes[i] >> 16));
        low = bsmm_ptx_cvt_e4m3x2_f16x2(bsmm_ptx_mul_f16x2(low, factor));
        high = bsmm_ptx_cvt_e4m3x2_f16x2(bsmm_ptx_mul_f16x2(high, factor));
        to[i] = __byte_perm(low, high, 0x5410);
    }
}

/* e5m2 is the high byte of f16. */
static __device__ __forceinline__ void emit_fast_e5m2(int shift, const uint32_t *codes,
                                                      uint32_t *to) {
    uint32_t first = factor_f16x2(shift / 2), second = factor_f16x2(shift - shift / 2);
    for (int i = 0; i < 4; i++) {
        uint32_t low = __byte_perm(codes[i], 0, 0x1404), high = __byte_perm(codes[i], 0, 0x3424);
        low = bsmm_ptx_mul_f16x2(bsmm_ptx_mul_f16x2(low, first), second);
        high = bsmm_ptx_mul_f16x2(bsmm_ptx_mul_f16x2(high, first), second);
        to[i] =
            __byte_perm(bsmm_ptx_cvt_e5m2x2_f16x2(low), bsmm_ptx_cvt_e5m2x2_f16x2(high), 0x5410);
    }
}
#endif

/* bsmm_lane_room for finite codes: the largest magnitude, two bytes at a time. */
static __device__ __forceinline__ int finite_room(const bsmm_narrow_codec *k,
                                                  const uint32_t *codes) {
    uint32_t even = 0, odd = 0, mantissa = 23 - k->shift;
    for (int i = 0; i < 4; i++) {
        even = __vmaxu2(even, codes[i] & 0x007f007fu);
        odd = __vmaxu2(odd, codes[i] >> 8 & 0x007f007fu);
    }
    even = __vmaxu2(even, odd);
    uint32_t largest = max(max(even & 0xffff, even >> 16), 1);
    int normalized = max(__clz((int)largest) - (31 - (int)mantissa), 0);
    return (int)((k->max_code - (largest << normalized)) >> mantissa) + normalized;
}

/* ---- items: codes and the scale's code -> 16 bytes and the group ---- */

/* Every function here is called by whole warps, whose threads hold whole groups. */

/* What a thread's items tell the header. e8m0: the block exponents of what is not empty, the lowest
 * negated, and how far a group spans; the rest, and what the definitions found, in `told`. */
typedef struct item_reach {
    int top, bottom, spread;
    bsmm_lane_group told;
} item_reach;

enum { REACH_NOTHING = -2048 };

static __device__ __forceinline__ item_reach reach_nothing(void) {
    item_reach reach = {REACH_NOTHING, REACH_NOTHING, 0, {0, 0, 0, 0, 0, 0}};
    return reach;
}

static __device__ __forceinline__ void reach_out(item_reach *reach, int top, int bottom) {
    reach->top = max(reach->top, top);
    reach->bottom = max(reach->bottom, -bottom);
    reach->spread = max(reach->spread, top - bottom);
}

/* All of it, as the definitions would have told it. */
static __device__ __forceinline__ bsmm_lane_group reach_told(const bsmm_pack_job *job,
                                                             const item_reach *reach) {
    bsmm_lane_group all = reach->told, g = {0, 0, 0, 0, 0, 0};
    int low = -reach->bottom + job->codec.low, inner = low;
    if (reach->top == REACH_NOTHING) return all;
    if (job->route == BSMM_PACK_FP8) inner = job->fold + job->codec.low - reach->spread;
    if (job->route == BSMM_PACK_FAST) inner = job->codec.low;
    bsmm_lane_extent(&g, reach->top + job->codec.high, low, inner);
    extend(&all, &g);
    return all;
}

/* The definitions. */
static __device__ __forceinline__ bsmm_lane_group define_item(const bsmm_pack_job *job, int bits,
                                                              int out, uint32_t code,
                                                              const uint32_t *codes, uint32_t *to) {
    bsmm_lane_scale s = bsmm_lane_scale_of(job->scale, code);
    bsmm_lane_group g = {0, 1, 0, 0, 0, 0};
    uint32_t bytes[4];
    for (int i = 0; i < (out == 16 ? 2 : 4); i++)
        if (bits != 4)
            bytes[i] = codes[i];
        else if (i % 2 == 0)
            bsmm_spread4(codes[i / 2], bytes + i);
    uint32_t maxima = bsmm_lane_look(job, &s, bytes, out == 16 ? 2 : 4);
    if (job->scale == 1) {
        maxima = max_over_lanes(maxima, out == 16 ? 16 : 8);
        g = bsmm_lane_decide(job, &s, maxima);
    }
    bsmm_lane_item(job, &s, &g, bytes, bits, out, to);
    return g;
}

/* `scale` is job->scale, a constant in kernels that are made for one kind. Fast forms are straight
 * lines, so that a thread's items overlap; items for which is_rare is true are not theirs. */
static __device__ __forceinline__ bool is_rare(const bsmm_pack_job *job, int bits, int out,
                                               uint32_t scale, uint32_t code,
                                               const uint32_t *codes) {
    int exponent = (int)code - 127;
    if (out == 8) return bits == 8 && scale == 1 && any_special(job, 8, 4, codes);
    bool outside = scale == 1 && (exponent < job->fit_low || exponent > job->fit_high);
    return outside | any_special(job, bits, 2, codes);
}

static __device__ __forceinline__ bsmm_lane_group item_to_bf16(const bsmm_pack_job *job, int bits,
                                                               uint32_t scale, uint32_t code,
                                                               const uint32_t *codes,
                                                               item_reach *reach, uint32_t *to) {
    bsmm_lane_group g = {0, 1, 0, 0, 0, 0};
    bool reaches = scale == 1 && code != 255 && item_any(job, bits, bits == 4 ? 1 : 2, codes);
    int exponent = (int)code - 127;
    emit_bf16(job, bits, codes, factor_bf16x2(scale, code), to);
    if (scale == 1)
        reach_out(reach, reaches ? exponent : REACH_NOTHING, reaches ? exponent : -REACH_NOTHING);
    return g;
}

#if __CUDA_ARCH__ >= 890
/* The group's scale, once its exponents are known: bsmm_pow2 without a branch. */
static __device__ __forceinline__ bsmm_lane_group group_of(const bsmm_pack_job *job, int exponent,
                                                           bool wide) {
    uint32_t normal = (uint32_t)(exponent + 127) << 23;
    uint32_t subnormal = 0x00400000u >> min((uint32_t)(-127 - exponent), 31u);
    bool scaled = exponent != 0, told_wide = wide | (scaled & (job->group_scales == NULL));
    uint32_t flags = (scaled ? BSMM_PACK_SCALED : 0u) | (told_wide ? BSMM_PACK_WIDE : 0u);
    bsmm_lane_group g = {
        exponent, __uint_as_float(exponent >= -126 ? normal : subnormal), flags, 0, 0, 0};
    return g;
}

static __device__ __forceinline__ bsmm_lane_group item_fold(const bsmm_pack_job *job, int bits,
                                                            uint32_t code, const uint32_t *codes,
                                                            item_reach *reach, uint32_t *to) {
    bool reaches = code != 255 && item_any(job, bits, bits == 4 ? 2 : 4, codes);
    int exponent = (int)code - 127;
    uint32_t maxima = reaches ? (uint32_t)(1024 + exponent) << 16 | (uint32_t)(1024 - exponent) : 0;
    maxima = max_over_lanes(maxima, 8);
    int top = (int)(maxima >> 16) - 1024, bottom = 1024 - (int)(maxima & 0xffff);
    bsmm_lane_group g =
        group_of(job, maxima ? top - job->fold : 0, maxima && top - bottom > (int)job->window);
    int shift = reaches ? exponent - g.exponent : 0;
    if (bits == 4)
        emit_fold4(shift, codes, to);
    else
        emit_fold6(job, shift, codes, to);
    for (int i = 0; i < 4; i++)
        to[i] = code == 255 ? 0x7f7f7f7fu : to[i];
    reach->told.flags |= g.flags;
    reach_out(reach, maxima ? top : REACH_NOTHING, maxima ? bottom : -REACH_NOTHING);
    return g;
}

static __device__ __forceinline__ bsmm_lane_group item_fast(const bsmm_pack_job *job, uint32_t code,
                                                            const uint32_t *codes,
                                                            item_reach *reach, uint32_t *to) {
    bool reaches = code != 255 && bsmm_lane_any(&job->codec, codes, 4);
    int exponent = (int)code - 127, room = finite_room(&job->codec, codes);
    uint32_t maxima =
        reaches ? (uint32_t)(1024 + exponent - room) << 16 | (uint32_t)(1024 - exponent) : 0;
    maxima = max_over_lanes(maxima, 8);
    int top = (int)(maxima >> 16) - 1024, bottom = 1024 - (int)(maxima & 0xffff);
    bsmm_lane_group g = group_of(job, maxima ? max(top, -149) : 0, false);
    int shift = reaches ? exponent - g.exponent : 0;
    if (job->codec.shift == 20)
        emit_fast_e4m3(shift, codes, to);
    else
        emit_fast_e5m2(shift, codes, to);
    for (int i = 0; i < 4; i++)
        to[i] = code == 255 ? 0x7f7f7f7fu : to[i];
    reach->told.flags |= g.flags;
    reach_out(reach, maxima ? top : REACH_NOTHING, maxima ? bottom : -REACH_NOTHING);
    return g;
}
#endif

static __device__ __forceinline__ bsmm_lane_group item_to_fp8(const bsmm_pack_job *job, int bits,
                                                              uint32_t scale, uint32_t code,
                                                              const uint32_t *codes,
                                                              item_reach *reach, uint32_t *to) {
    bsmm_lane_group g = {0, 1, 0, 0, 0, 0};
    if (scale != 1) {
        for (int i = 0; i < 4; i++)
            to[i] = codes[i];
        return g;
    }
#if __CUDA_ARCH__ >= 890
    return bits == 8 ? item_fast(job, code, codes, reach, to)
                     : item_fold(job, bits, code, codes, reach, to);
#else
    return g; /* not reached: 8-bit floats are for sm_90 */
#endif
}

/* The group of a thread whose item begins it, where the scale is fp32 or no group has one. */
static __device__ __forceinline__ bsmm_lane_group leading_group(const bsmm_pack_job *job,
                                                                uint32_t code, item_reach *reach) {
    bsmm_lane_scale s = bsmm_lane_scale_of(job->scale, code);
    bsmm_lane_group g = bsmm_lane_decide(job, &s, 0);
    extend(&reach->told, &g);
    return g;
}

#endif
