/* The fast forms of what cuda/pack_lane.h defines, for finite elements: two at a time in 16-bit
 * floats. What is not finite, and groups that need a scale of their own, take the definitions. */
#ifndef BSMM_CUDA_PACK_ITEM_H
#define BSMM_CUDA_PACK_ITEM_H

#include "cuda/ptx/arith.h"
#include "cuda/ptx/convert.h"
#include "cuda/sm80/pack_memory.h"

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

/* Codes i and i + 1 of a word of four, i = 0 or 2, each at the top of a half, to 16-bit floats that
 * still have the element's bias. */
static __device__ __forceinline__ uint32_t biased_pair(const bsmm_pack_job *job, uint32_t top,
                                                       int i) {
    uint32_t halves = __byte_perm(top, 0, i ? 0x3424 : 0x1404);
    return (halves >> job->pair.down & job->pair.mask) | (halves & 0x80008000u);
}

static __device__ __forceinline__ uint32_t mul_bf16x2(uint32_t a, uint32_t b) {
    return bsmm_ptx_fma_bf16x2(a, b, 0x80008000u); /* minus zero keeps every sign */
}

/* ---- to bf16 ---- */

/* A block scale (e8m0: over the group's) as bf16, in both halves. */
static __device__ __forceinline__ uint32_t factor_bf16x2(const bsmm_pack_job *job, uint32_t code,
                                                         int exponent) {
    uint32_t bits = 0x3f80;
    if (job->scale == 1) {
        int shift = (int)code - 127 - exponent;
        bits = shift >= -126  ? (uint32_t)(shift + 127) << 7
               : shift < -133 ? 0
                              : 1u << (shift + 133);
        if (code == 255) bits = 0x7fff;
    }
    if (job->scale == 2) bits = bsmm_lane_bf16(bsmm_e4m3_scale(code)) >> 16;
    return bits * 0x00010001u;
}

static __device__ __forceinline__ void emit_bf16(const bsmm_pack_job *job, int bits,
                                                 const uint32_t *codes, uint32_t factor,
                                                 uint32_t *to) {
    for (int i = 0; i < 4; i++) {
        uint32_t pair = biased_pair(job, codes[i / 2] << (8 - bits), i % 2 * 2);
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

#if __CUDA_ARCH__ >= 890
static __device__ __forceinline__ void emit_fold6(const bsmm_pack_job *job, int shift,
                                                  const uint32_t *codes, uint32_t *to) {
    uint32_t factor = factor_f16x2(shift);
    for (int i = 0; i < 4; i++) {
        uint32_t pairs[2];
        for (int j = 0; j < 2; j++) {
            uint32_t pair = biased_pair(job, codes[i] << 2, 2 * j);
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
    uint32_t maxima = bsmm_lane_look(job, &s, codes, out == 16 ? 2 : 4);
    bsmm_lane_group g = {0, 1, 0, 0, 0, 0};
    if (job->scale == 1) {
        maxima = max_over_lanes(maxima, out == 16 ? 16 : 8);
        g = bsmm_lane_decide(job, &s, maxima);
    }
    bsmm_lane_item(job, &s, &g, codes, bits, out, to);
    return g;
}

static __device__ __forceinline__ bsmm_lane_group item_to_bf16(const bsmm_pack_job *job, int bits,
                                                               uint32_t code, const uint32_t *codes,
                                                               item_reach *reach, uint32_t *to) {
    bsmm_lane_group g = {0, 1, 0, 0, 0, 0};
    bool any = bsmm_lane_any(&job->codec, codes, 2),
         reaches = job->scale == 1 && any && code != 255;
    int exponent = (int)code - 127;
    bool rare = reaches && (exponent < job->fit_low || exponent > job->fit_high);
    if (__any_sync(0xffffffffu, rare || any_special(job, bits, 2, codes))) {
        g = define_item(job, bits, 16, code, codes, to);
        extend(&reach->told, &g);
        return g;
    }
    emit_bf16(job, bits, codes, factor_bf16x2(job, code, 0), to);
    if (reaches) reach_out(reach, exponent, exponent);
    return g;
}

#if __CUDA_ARCH__ >= 890
/* The group's scale, once its exponents are known. */
static __device__ __forceinline__ bsmm_lane_group group_of(const bsmm_pack_job *job, int exponent,
                                                           bool wide) {
    bsmm_lane_group g = {exponent, bsmm_pow2(exponent), exponent ? BSMM_PACK_SCALED : 0u, 0, 0, 0};
    if (wide || (!job->group_scales && exponent)) g.flags |= BSMM_PACK_WIDE;
    return g;
}

static __device__ __forceinline__ bsmm_lane_group item_fold(const bsmm_pack_job *job, int bits,
                                                            uint32_t code, const uint32_t *codes,
                                                            item_reach *reach, uint32_t *to) {
    bool reaches = code != 255 && bsmm_lane_any(&job->codec, codes, 4);
    int exponent = (int)code - 127;
    uint32_t maxima = reaches ? (uint32_t)(1024 + exponent) << 16 | (uint32_t)(1024 - exponent) : 0;
    maxima = max_over_lanes(maxima, 8);
    int top = (int)(maxima >> 16) - 1024, bottom = 1024 - (int)(maxima & 0xffff);
    bsmm_lane_group g =
        group_of(job, maxima ? top - job->fold : 0, maxima && top - bottom > (int)job->window);
    int shift = reaches ? exponent - g.exponent : 0;
    if (bits == 4)
        bsmm_lane_emit_e2m1(shift, codes, code == 255, to);
    else {
        emit_fold6(job, shift, codes, to);
        for (int i = 0; i < 4; i++)
            to[i] = code == 255 ? 0x7f7f7f7fu : to[i];
    }
    reach->told.flags |= g.flags;
    if (maxima) reach_out(reach, top, bottom);
    return g;
}

static __device__ __forceinline__ bsmm_lane_group item_fast(const bsmm_pack_job *job, uint32_t code,
                                                            const uint32_t *codes,
                                                            item_reach *reach, uint32_t *to) {
    if (__any_sync(0xffffffffu, any_special(job, 8, 4, codes))) {
        bsmm_lane_group g = define_item(job, 8, 8, code, codes, to);
        extend(&reach->told, &g);
        return g;
    }
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
    if (maxima) reach_out(reach, top, bottom);
    return g;
}
#endif

static __device__ __forceinline__ bsmm_lane_group item_to_fp8(const bsmm_pack_job *job, int bits,
                                                              uint32_t code, const uint32_t *codes,
                                                              item_reach *reach, uint32_t *to) {
    bsmm_lane_group g = {0, 1, 0, 0, 0, 0};
    if (bits == 8 && job->scale != 1) {
        for (int i = 0; i < 4; i++)
            to[i] = codes[i];
        return g;
    }
#if __CUDA_ARCH__ >= 890
    return bits == 8 ? item_fast(job, code, codes, reach, to)
                     : item_fold(job, bits, code, codes, reach, to);
#else
    g = define_item(job, bits, 8, code, codes, to);
    extend(&reach->told, &g);
    return g;
#endif
}

/* The group of a thread whose item begins it, where the scale is fp32 or no group has one. */
static __device__ __forceinline__ bsmm_lane_group leading_group(const bsmm_pack_job *job,
                                                                uint32_t code) {
    bsmm_lane_scale s = bsmm_lane_scale_of(job->scale, code);
    return bsmm_lane_decide(job, &s, 0);
}

#endif
