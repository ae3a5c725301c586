/* Packs elements of at most 8 bits with e8m0 scales to 8-bit floats without rounding (route FP8 in
 * gpu/pack.h). Each element is multiplied by its block scale divided by its group's scale. An item
 * is 16 elements of one row, which one thread packs, and a group is 128 elements of a row. Eight
 * lanes hold a group in each of several rows. Each of the eight lanes computes the group scale of
 * one row and passes it to the other lanes by a shuffle. A kernel is specialized for one element
 * format, the constant `elem`. */
#ifndef BSMM_CUDA_SM80_PACK_FOLD_H
#define BSMM_CUDA_SM80_PACK_FOLD_H

#include "bsmm.h"
#include "cuda/sm80/pack_item.h"
#include "cuda/sm80/pack_words.h"

enum { FOLD_LANES = WORD_LANES, FOLD_BLOCK = 32, FOLD_CODES = 16, FOLD_NAN = 15 };

/* Returns a mask with one byte for each of the four scale blocks of a group (128 elements of a
 * row). A byte is 0xff if the block has a nonzero element. Bit i of `lanes` is set if lane i has a
 * nonzero element. Two adjacent lanes hold the elements of a block. */
static __device__ __forceinline__ uint32_t block_bytes(uint32_t lanes) {
    uint32_t blocks = (lanes | lanes >> 1) & 0x55;
    return (blocks * 0x00041041u & 0x01010101u) * 0xff;
}

/* A group (128 elements of a row) can use the common scale of its row only if its block scales are
 * not too large. Returns the largest e8m0 code of a block scale with which it can. `first` holds
 * the block scales of the row's first group, from which the common scale follows
 * (bsmm_lane_row_top). */
static __device__ __forceinline__ int row_top_code(const bsmm_pack_job *job, uint32_t first) {
    return bsmm_lane_row_top(job, (int)(largest_bytes(first & ~nan_bytes(first), 0) >> 16));
}

/* Returns the description of a group (128 elements of a row) whose scale is 2^exponent. The
 * function computes this power of two like bsmm_pow2, but without a branch. */
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

/* A group (128 elements of a row) has four scale blocks. Packing multiplies the elements of a block
 * by a power of two: the block's scale divided by the group's scale. Returns one byte for each of
 * the four blocks, which stands for this power. For e2m1 elements, a byte is an offset in the table
 * of fold_entry, which has the products. For 6-bit elements, a byte is the high byte of an f16
 * number, by which emit_fold6 multiplies: the power times 2^6 (e2m3) or 2^4 (e3m2), because the
 * elements that small_e4m3 returns are smaller by this factor. A block with a NaN scale gets a byte
 * that means NaN, and a block of zeros gets 0.
 *
 * The parameters have one byte for each block too:
 * - `steps`: the low four bits are 14 - d if the block's scale lies d binades below the largest
 *   block scale that the group's scale allows.
 * - `counts`: 0xff if the block has a nonzero element and its scale is not NaN.
 * - `nans`: 0xff if the block's scale is NaN. */
static __device__ __forceinline__ uint32_t fold_how(bsmm_elem elem, uint32_t steps, uint32_t counts,
                                                    uint32_t nans) {
    if (elem == BSMM_ELEM_E2M1) return ((steps & counts | nans) & 0x0f0f0f0fu) << 4;
    uint32_t exponents = (steps & 0x0f0f0f0fu) + (elem == BSMM_ELEM_E2M3 ? 12 : 9) * 0x01010101u;
    return exponents << 2 & counts | nans & 0x7e7e7e7eu;
}

/* Chooses the scale with which a group (128 elements of 4 or 6 bits in one row) is packed to 8-bit
 * floats, and writes it to *scale. The four bytes of `codes` are the group's block scales. `first`
 * has the block scales of the row's first group, from which the common scale of the row follows.
 * The group gets the common scale if its block scales allow it, and else a scale of its own. Bit i
 * of `lanes` is set if lane i has a nonzero element. `there` is false for a row past the end of the
 * operand. Returns the four bytes of fold_how, which tell how to convert the elements of each scale
 * block. */
static __device__ __forceinline__ uint32_t fold_group(const bsmm_pack_job *job, bsmm_elem elem,
                                                      uint32_t codes, uint32_t first,
                                                      uint32_t lanes, bool there, item_reach *reach,
                                                      float *scale) {
    uint32_t nans = nan_bytes(codes), counts = block_bytes(lanes) & ~nans;
    uint32_t ends = largest_bytes(codes & counts, ~codes & counts);
    int top = (int)(ends >> 16), bottom = 255 - (int)(ends & 0xffff);
    int even = row_top_code(job, first);
    bool fits = counts ? top <= even && even - bottom <= (int)job->window : even <= 127 + job->fold;
    int alone = counts ? top : 127 + job->fold;
    top = fits ? even : alone;
    bsmm_lane_group g =
        group_of(job, top - 127 - job->fold, counts && top - bottom > (int)job->window);
    if (there) reach->told.flags |= g.flags | (fits ? 0u : BSMM_PACK_UNEVEN);
    reach_out(reach, counts ? top - 127 : REACH_NOTHING, counts ? bottom - 127 : -REACH_NOTHING);
    *scale = g.scale;
    uint32_t steps = (codes & 0x0f0f0f0fu) + (uint32_t)(14 - top & 15) * 0x01010101u;
    return fold_how(elem, steps, counts, nans);
}

/* Packing converts an e2m1 element to e4m3 and multiplies it by a power of two that depends on `i`.
 * It does so by a table lookup. Returns entry i of the table, which is for one power of two: the
 * e4m3 codes of the eight multiplied magnitudes, and a mask that selects the sign bits of four e4m3
 * codes. The entry FOLD_NAN gives NaN for every element. */
static __device__ __forceinline__ uint4 fold_entry(const bsmm_pack_job *job, int i) {
    const uint32_t nan = 0x7f7f7f7fu;
    uint32_t codes[2];
    bsmm_lane_e2m1_codes(i - 14 + job->fold, codes);
    return i == FOLD_NAN ? make_uint4(nan, nan, 0, 0)
                         : make_uint4(codes[0], codes[1], 0x80808080u, 0);
}

/* Converts 16 packed e2m1 elements to e4m3 by an entry of a table (fold_entry). The result is
 * bitwise identical to that of the slow path in gpu/pack_lane.h. */
static __device__ __forceinline__ void emit_fold4(uint4 entry, const uint32_t *codes,
                                                  uint32_t *to) {
    for (int i = 0; i < 2; i++) {
        uint32_t magnitudes = codes[i] & 0x77777777u, even = codes[i] << 4;
        to[2 * i] = __byte_perm(entry.x, entry.y, magnitudes) |
                    (__byte_perm(even, codes[i], 0x5140) & entry.z);
        to[2 * i + 1] = __byte_perm(entry.x, entry.y, magnitudes >> 16) |
                        (__byte_perm(even, codes[i], 0x7362) & entry.z);
    }
}

/* Spreads 16 elements of 6 bits, which are packed in 12 bytes, to one element per byte. An element
 * begins at bit 0 of its byte, or at bit 1 if `raised` is set. A multiplication shifts several
 * elements of a word at once, and a mask selects which elements it shifts. Adding three times a
 * masked element to the word shifts this element by 2 bits. */
static __device__ __forceinline__ void spread_fold6(bool raised, const uint32_t *raw,
                                                    uint32_t *bytes) {
    const uint32_t less = raised, low = 0xfffu << less;
    const uint32_t from[] = {raw[0] << less, __funnelshift_r(raw[0], raw[1], 24 - less),
                             __funnelshift_r(raw[1], raw[2], 16 - less), raw[2] >> (8 - less)};
    for (int i = 0; i < 4; i++) {
        uint32_t halves = (from[i] & low) + (from[i] & low << 12) * 16;
        bytes[i] = halves + (halves & 0x0fc00fc0u << less) * 3;
    }
}

/* Converts four elements of 6 bits, one per byte, to e4m3. It moves the sign from the bit above the
 * magnitude to bit 7. The resulting e4m3 numbers are the elements times 2^-6 for e2m3, or times
 * 2^-4 for e3m2. If `raised` is true, the caller has shifted the elements left by one bit. This is
 * necessary for e3m2, whose mantissa is one bit shorter than that of e4m3. */
static __device__ __forceinline__ uint32_t small_e4m3(bool raised, uint32_t bytes) {
    return raised ? bytes + (bytes & 0x40404040u) : bytes + (bytes & 0x20202020u) * 3;
}

#if __CUDA_ARCH__ >= 890
/* Multiplies four e4m3 numbers by an f16 factor and rounds the products to e4m3. e4m3 can hold all
 * products that occur here (route FP8 in gpu/pack.h), so the rounding changes nothing. */
static __device__ __forceinline__ uint32_t times_e4m3(uint32_t codes, uint32_t factor) {
    uint16_t low, high;
    bsmm_ptx_mov_halves(codes, &low, &high);
    uint32_t first = bsmm_ptx_mul_f16x2(bsmm_ptx_cvt_f16x2_e4m3x2(low), factor);
    uint32_t second = bsmm_ptx_mul_f16x2(bsmm_ptx_cvt_f16x2_e4m3x2(high), factor);
    return bsmm_ptx_cvt_e4m3x2_f16x2(first) | bsmm_ptx_cvt_e4m3x2_f16x2(second) << 16;
}

/* Converts 16 elements of 6 bits to e4m3 and multiplies them by `factor`. spread_fold6 has spread
 * the elements to one per byte. */
static __device__ __forceinline__ void emit_fold6(bsmm_elem elem, uint32_t factor,
                                                  const uint32_t *bytes, uint32_t *to) {
    for (int i = 0; i < 4; i++)
        to[i] = times_e4m3(small_e4m3(elem == BSMM_ELEM_E3M2, bytes[i]), factor);
}

/* Describes where in the packed operand a thread stores the next 16 bytes that it packs. */
typedef struct fold_target {
    uint8_t *to; /* `to` is the address to which the thread stores the next 16 bytes. */
    uint64_t step;
    uint32_t row, row_stride, rows;
} fold_target;

static __device__ __forceinline__ fold_target fold_target_of(const bsmm_pack_job *job,
                                                             const pack_position *p) {
    uint8_t *to = (uint8_t *)job->elements + p->row0 * job->element_pitch + p->k;
    fold_target t = {to, p->row_stride * job->element_pitch, p->row0, p->row_stride, job->rows};
    return t;
}

static __device__ __forceinline__ void store_next(fold_target *t, const uint32_t *out) {
    if (t->row < t->rows) *(uint4 *)t->to = make_uint4(out[0], out[1], out[2], out[3]);
    t->to += t->step;
    t->row += t->row_stride;
}

/* Stores the scale of a group (128 elements of a row) for this thread's row number `mine`. `stores`
 * is true in exactly one lane of the group, which stores the scale. */
static __device__ __forceinline__ void store_group(const bsmm_pack_job *job,
                                                   const pack_position *position, uint32_t mine,
                                                   bool stores, float scale) {
    uint32_t row = position->row0 + mine * position->row_stride;
    if (job->group_scales && stores && row < job->rows)
        job->group_scales[position->k / BSMM_PACK_GROUP * job->group_pitch + row] = scale;
}

/* Returns true if one of a thread's 16 elements of a row is nonzero. If `packed` is set, the
 * elements have 6 bits and are packed as in memory. */
static __device__ __forceinline__ bool fold_any(const bsmm_pack_job *job, bsmm_elem elem,
                                                bool packed, const uint32_t *codes) {
    if (elem == BSMM_ELEM_E2M1) return item_any(job, 4, 2, codes);
    if (!packed) return item_any(job, 6, 4, codes);
    return codes[0] & ~0x20820820u | codes[1] & ~0x08208208u | codes[2] & ~0x82082082u;
}

/* Packs a thread's 16 elements of 4 or 6 bits in each of `items` rows. Elements of 6 bits are
 * packed as in memory if `packed` is set, and otherwise one per byte. `group` holds the four block
 * scales of this lane's row for the group of 128 elements, one per byte. `first` holds the block
 * scales of the row's first 128 elements. `table` holds the results of fold_entry, which only
 * elements of 4 bits need. */
static __device__ __forceinline__ void
fold_items(const bsmm_pack_job *job, bsmm_elem elem, bool packed, int items, const uint4 *table,
           uint32_t group, uint32_t first, const uint32_t *codes, const pack_position *position,
           item_reach *reach) {
    const int words = elem == BSMM_ELEM_E2M1 ? 2 : packed ? 3 : 4;
    uint32_t mine = threadIdx.x % FOLD_LANES & (items - 1), lanes = 0;
    float scale;
#    pragma unroll
    for (int i = 0; i < items; i++) {
        uint32_t found = __ballot_sync(0xffffffffu, fold_any(job, elem, packed, codes + i * words));
        lanes = mine == (uint32_t)i ? found : lanes;
    }
    bool there = position->row0 + mine * position->row_stride < job->rows;
    lanes = lanes >> (threadIdx.x % PACK_WARP & ~(FOLD_LANES - 1u)) & 0xff;
    uint32_t how = fold_group(job, elem, group, first, lanes, there, reach, &scale);
    store_group(job, position, mine, threadIdx.x % FOLD_LANES < (uint32_t)items, scale);
    fold_target target = fold_target_of(job, position);
    /* `how` has one byte for each scale block of the group. This byte tells how to convert the
     * block's elements. `byte` is a selector for __byte_perm, which picks the byte of this lane's
     * scale block (number `block`). For elements of 4 bits, the picked byte becomes the lowest byte
     * of the result. For elements of 6 bits, it becomes the upper byte of both 16-bit halves. Past
     * the end of K the selector gives 0. */
    uint32_t block = threadIdx.x % FOLD_LANES / 2;
    uint32_t byte = position->n == 0         ? 0x4444
                    : elem == BSMM_ELEM_E2M1 ? 0x4440 | block
                                             : block * 0x1010 | 0x0404;
    uint32_t hows[FOLD_LANES];
#    pragma unroll
    for (int i = 0; i < items; i++)
        hows[i] = __byte_perm(from_row(how, i), 0, byte);
#    pragma unroll
    for (int i = 0; i < items; i++) {
        uint32_t out[4];
        if (elem == BSMM_ELEM_E2M1) {
            uint4 entry = *(const uint4 *)((const uint8_t *)table + hows[i]);
            emit_fold4(entry, codes + i * words, out);
        } else {
            uint32_t bytes[4];
            if (packed) spread_fold6(elem == BSMM_ELEM_E3M2, codes + i * words, bytes);
            for (int j = 0; j < 4 && !packed; j++)
                bytes[j] = codes[i * words + j] << (elem == BSMM_ELEM_E3M2);
            emit_fold6(elem, hows[i], bytes, out);
        }
        store_next(&target, out);
    }
}

#endif

#endif
