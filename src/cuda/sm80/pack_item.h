/* These are the fast paths of the packing kernels. An item is the 8 or 16 elements along K that one
 * thread packs at once. A fast path converts two elements at a time, as a pair of 16-bit floats,
 * and gives the same results as the slow path in gpu/pack_lane.h. The slow path packs an item if an
 * element is not finite, or if the item's group (128 elements of a row) needs a scale other than 1.
 */
#ifndef BSMM_CUDA_SM80_PACK_ITEM_H
#define BSMM_CUDA_SM80_PACK_ITEM_H

#include "cuda/ptx/arith.h"
#include "cuda/ptx/convert.h"
#include "cuda/sm80/pack_load.h"

/* Returns true if one of a thread's 8 or 16 elements of a row is nonzero. Elements of 4 bits are
 * packed. Elements of 6 and 8 bits take one byte each. */
static __device__ __forceinline__ bool item_any(const bsmm_pack_job *job, int bits, int words,
                                                const uint32_t *codes) {
    uint32_t any = 0;
    for (int i = 0; i < words; i++)
        any |= codes[i];
    return any & (bits == 4 ? 0x77777777u : (job->codec.sign - 1) * 0x01010101u);
}

/* Returns true if one of a thread's elements of a row is Inf or NaN. In the fnuz formats only the
 * code 0x80 is NaN, so for them the function looks for bytes that equal 0x80. */
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

/* `halves` has an element at the top of each of its 16-bit halves. Converts both elements to 16-bit
 * floats, which still have the exponent bias of the element format. The bits below the elements are
 * ignored. */
static __device__ __forceinline__ uint32_t biased_pair(const bsmm_pack_job *job, uint32_t halves) {
    return (halves >> job->pair.down & job->pair.mask) | (halves & 0x80008000u);
}

/* An item is the 8 or 16 elements along K that a thread packs. Returns elements 2 i and 2 i + 1 of
 * the item. Element 2 i is in the upper bits of the low 16-bit half of the result, and element 2 i
 * + 1 in the upper bits of the high half. The lower bits of both halves are undefined. */
static __device__ __forceinline__ uint32_t top_pair(int bits, const uint32_t *codes, int i) {
    /* Each byte of a word holds two elements of 4 bits. In byte j of `even`, the upper four bits
     * are element 2 j. In byte j of `odd`, they are element 2 j + 1. */
    if (bits == 4) {
        uint32_t even = codes[i / 4] << 4, odd = codes[i / 4];
        int j = i % 4;
        return __byte_perm(even, odd, j << 4 | j | (j + 4) << 12 | (j + 4) << 8);
    }
    return __byte_perm(codes[i / 2] << (8 - bits), 0, i % 2 ? 0x3424 : 0x1404);
}

static __device__ __forceinline__ uint32_t mul_bf16x2(uint32_t a, uint32_t b) {
    return bsmm_ptx_fma_bf16x2(a, b, 0x80008000u); /* Adding -0 keeps the sign of zeros. */
}

/* Returns a block scale as bf16 in both halves of a word. `scale` is the type of the scale: 1 is
 * e8m0 and 2 is e4m3. For every other type the result is 1. */
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

/* The functions below exchange values between threads by shuffles. All threads of a warp must
 * therefore call each of them together. No group (128 consecutive elements of a row along K) is
 * divided between two warps. */

/* Holds the range of the values that a thread has packed, which becomes a part of the packed
 * operand's header. For blocks with e8m0 scales, the fast path records only the scales' exponents:
 * `top` is the largest exponent of the scales of blocks with nonzero elements, and `bottom` is the
 * negated smallest exponent. `spread` is the largest difference of two such exponents within a
 * group (128 elements of a row). `told` is the range of all other values, including those that the
 * slow path has packed. */
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

/* Returns the range of all values that a thread has packed, as its contribution to the header of
 * the packed operand. The slow path in gpu/pack_lane.h would return the same range. */
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

/* Packs one thread's item, i.e. consecutive elements of one row, by the slow path in
 * gpu/pack_lane.h. The item belongs to a group of 128 elements of the row. The group can use the
 * common scale of the row if no block scale of the group has an exponent above `row_top`. */
static __device__ __forceinline__ bsmm_lane_group define_item(const bsmm_pack_job *job, int bits,
                                                              int out, uint32_t code, int row_top,
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
        g = bsmm_lane_decide(job, &s, maxima, row_top);
        if (out == 8) g.flags |= bsmm_lane_fast_flags(job, &s, bytes);
    }
    bsmm_lane_item(job, &s, &g, bytes, bits, out, to);
    return g;
}

/* A thread packs an item (8 or 16 elements) of each of several rows. Returns true if the item of
 * one row must take the slow path, because an element is Inf or NaN, or because its block scale is
 * outside the range of the fast path. `scale` is the type of the block scales (job->scale), which
 * kernels for a single type pass as a constant. The function has no branches, so that the loads and
 * computations of a thread's rows overlap. */
static __device__ __forceinline__ bool is_rare(const bsmm_pack_job *job, int bits, int out,
                                               uint32_t scale, uint32_t code,
                                               const uint32_t *codes) {
    int exponent = (int)code - 127;
    if (out == 8) return false;
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

/* Chooses the scale of a group (128 elements of a row) for operands with fp32 scales, and for
 * operands whose groups all have the scale 1. Only the thread that has the group's first elements
 * calls this function. */
static __device__ __forceinline__ bsmm_lane_group leading_group(const bsmm_pack_job *job,
                                                                uint32_t code, item_reach *reach) {
    bsmm_lane_scale s = bsmm_lane_scale_of(job->scale, code);
    bsmm_lane_group g = bsmm_lane_decide(job, &s, 0, 0);
    extend(&reach->told, &g);
    return g;
}

#endif
