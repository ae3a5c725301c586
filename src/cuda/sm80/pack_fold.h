/* Items of 16 codes with e8m0 scales that become 8-bit floats, the scales folded in. Eight lanes
 * have a group of 128 codes in each of some rows; what a group needs is found once, by lanes that
 * take a row each, and handed to the others. */
#ifndef BSMM_CUDA_PACK_FOLD_H
#define BSMM_CUDA_PACK_FOLD_H

#include "cuda/sm80/pack_item.h"
#include "cuda/sm80/pack_words.h"

enum { FOLD_LANES = WORD_LANES, FOLD_BLOCK = 32, FOLD_CODES = 16, FOLD_NAN = 15 };

/* Elements of 4 and 6 bits: what the kernel is made for. */
typedef enum fold_kind { FOLD_E2M1, FOLD_E2M3, FOLD_E3M2 } fold_kind;

/* ---- what the lanes of a row find out ---- */

/* 0xff in the bytes of blocks of which either lane has its bit. */
static __device__ __forceinline__ uint32_t block_bytes(uint32_t lanes) {
    uint32_t blocks = (lanes | lanes >> 1) & 0x55;
    return (blocks * 0x00041041u & 0x01010101u) * 0xff;
}

/* bsmm_lane_row_top from the scales of the row's first group, as an e8m0 code. */
static __device__ __forceinline__ int row_top_code(const bsmm_pack_job *job, uint32_t first) {
    return bsmm_lane_row_top(job, (int)(largest_bytes(first & ~nan_bytes(first), 0) >> 16));
}

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

/* How the codes of each block become e4m3, in bytes, from steps of 0 to 14 binades. Of 4 bits: its
 * place in the table of fold_entry. Of 6: the high byte of emit_fold6's factor, a power of two
 * in f16, or NaN. */
static __device__ __forceinline__ uint32_t fold_how(fold_kind kind, uint32_t steps, uint32_t counts,
                                                    uint32_t nans) {
    if (kind == FOLD_E2M1) return ((steps & counts | nans) & 0x0f0f0f0fu) << 4;
    uint32_t exponents = (steps & 0x0f0f0f0fu) + (kind == FOLD_E2M3 ? 12 : 9) * 0x01010101u;
    return exponents << 2 & counts | nans & 0x7e7e7e7eu;
}

/* Elements of 4 and 6 bits; `lanes`: which of the group's have a value other than 0; first: the
 * scales of the row's first group; there: the row is the operand's. The result is fold_how's. */
static __device__ __forceinline__ uint32_t fold_group(const bsmm_pack_job *job, fold_kind kind,
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
    return fold_how(kind, steps, counts, nans);
}

/* 8-bit elements, from the maxima of the group's items; the result is the exponent. */
static __device__ __forceinline__ int fast_group(const bsmm_pack_job *job, uint32_t maxima,
                                                 int row_top, bool there, item_reach *reach,
                                                 float *scale) {
    int top = (int)(maxima >> 16) - BSMM_LANE_BIAS,
        bottom = BSMM_LANE_BIAS - (int)(maxima & 0xffff);
    bsmm_lane_group own = {0, 1, 0, 0, 0, 0};
    bsmm_lane_fast_fit(job, &own, maxima, top, row_top);
    bsmm_lane_group g = group_of(job, own.exponent, false);
    if (there) reach->told.flags |= g.flags | own.flags;
    reach_out(reach, maxima ? top : REACH_NOTHING, maxima ? bottom : -REACH_NOTHING);
    *scale = g.scale;
    return g.exponent;
}

/* Maxima of both halves over eight lanes, of a row in each lane: that of its number. */
static __device__ __forceinline__ uint32_t max_of_rows(int rows, const uint32_t *maxima) {
    uint32_t most[FOLD_LANES], lane = threadIdx.x;
    for (int i = 0; i < rows; i++)
        most[i] = maxima[i];
    for (int apart = rows / 2; apart > 0; apart /= 2)
        for (int i = 0; i < apart; i++) {
            bool upper = lane & apart;
            uint32_t given = upper ? most[i] : most[i + apart];
            uint32_t kept = upper ? most[i + apart] : most[i];
            most[i] = bsmm_max_halves(kept, __shfl_xor_sync(0xffffffffu, given, apart));
        }
    for (int apart = rows; apart < FOLD_LANES; apart *= 2)
        most[0] = bsmm_max_halves(most[0], __shfl_xor_sync(0xffffffffu, most[0], apart));
    return most[0];
}

/* The byte of a group's word that is this thread's block's. */
static __device__ __forceinline__ uint32_t byte_of_block(uint32_t word) {
    return word >> threadIdx.x % FOLD_LANES / 2 * 8 & 0xff;
}

/* ---- elements of 4 and 6 bits ---- */

/* How e2m1 codes with step `i` become e4m3: eight magnitudes and where signs may be. */
static __device__ __forceinline__ uint4 fold_entry(const bsmm_pack_job *job, int i) {
    const uint32_t nan = 0x7f7f7f7fu;
    uint32_t codes[2];
    bsmm_lane_e2m1_codes(i - 14 + job->fold, codes);
    return i == FOLD_NAN ? make_uint4(nan, nan, 0, 0)
                         : make_uint4(codes[0], codes[1], 0x80808080u, 0);
}

/* 16 packed e2m1 codes; bsmm_lane_emit_e2m1's bytes. */
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

/* 16 packed codes of 6 bits, each to a byte of its own, at its lower end or (raised) a bit above.
 * Products move what is masked. */
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

/* Signs from above the magnitudes to bit 7: e4m3 codes of the values times 2^-6 (e2m3), 2^-4 (e3m2,
 * raised, whose mantissa is a bit shorter). */
static __device__ __forceinline__ uint32_t small_e4m3(bool raised, uint32_t bytes) {
    return raised ? bytes + (bytes & 0x40404040u) : bytes + (bytes & 0x20202020u) * 3;
}

#if __CUDA_ARCH__ >= 890
/* Four e4m3 codes times a factor of f16, of which they hold the product. */
static __device__ __forceinline__ uint32_t times_e4m3(uint32_t codes, uint32_t factor) {
    uint16_t low, high;
    bsmm_ptx_mov_halves(codes, &low, &high);
    uint32_t first = bsmm_ptx_mul_f16x2(bsmm_ptx_cvt_f16x2_e4m3x2(low), factor);
    uint32_t second = bsmm_ptx_mul_f16x2(bsmm_ptx_cvt_f16x2_e4m3x2(high), factor);
    return bsmm_ptx_cvt_e4m3x2_f16x2(first) | bsmm_ptx_cvt_e4m3x2_f16x2(second) << 16;
}

/* bytes: as spread_fold6 makes them. */
static __device__ __forceinline__ void emit_fold6(fold_kind kind, uint32_t factor,
                                                  const uint32_t *bytes, uint32_t *to) {
    for (int i = 0; i < 4; i++)
        to[i] = times_e4m3(small_e4m3(kind == FOLD_E3M2, bytes[i]), factor);
}

/* ---- elements of 8 bits ---- */

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

/* What an item tells of itself: as bsmm_lane_look. *rare becomes true for what is not finite, and
 * for elements so small that they may go up by more than the factors of emit_fast hold. */
static __device__ __forceinline__ uint32_t fast_look(const bsmm_pack_job *job, uint32_t code,
                                                     const uint32_t *codes, bool *rare) {
    int exponent = (int)code - 127, room = finite_room(&job->codec, codes);
    bool reaches = code != 255 && bsmm_lane_any(&job->codec, codes, 4);
    *rare |=
        any_special(job, 8, 4, codes) | (reaches & (room > (job->codec.shift == 20 ? 15 : 30)));
    return reaches ? (uint32_t)(BSMM_LANE_BIAS + exponent - room) << 16 |
                         (uint32_t)(BSMM_LANE_BIAS - exponent)
                   : 0;
}

/* e5m2 is the high byte of f16. */
static __device__ __forceinline__ uint32_t fast_e5m2(uint32_t codes, uint32_t first,
                                                     uint32_t second) {
    uint32_t low = __byte_perm(codes, 0, 0x1404), high = __byte_perm(codes, 0, 0x3424);
    low = bsmm_ptx_mul_f16x2(bsmm_ptx_mul_f16x2(low, first), second);
    high = bsmm_ptx_mul_f16x2(bsmm_ptx_mul_f16x2(high, first), second);
    return bsmm_ptx_cvt_e5m2x2_f16x2(low) | bsmm_ptx_cvt_e5m2x2_f16x2(high) << 16;
}

/* 2^shift as f16, in both halves. */
static __device__ __forceinline__ uint32_t factor_f16x2(int shift) {
    uint32_t bits = shift >= -14  ? (uint32_t)(shift + 15) << 10
                    : shift < -24 ? 0
                                  : 1u << (shift + 24);
    return bits * 0x00010001u;
}

static __device__ __forceinline__ void emit_fast(const bsmm_pack_job *job, uint32_t code,
                                                 int exponent, const uint32_t *codes,
                                                 uint32_t *to) {
    int shift = (int)code - 127 - exponent, half = job->codec.shift == 20 ? 0 : shift / 2;
    uint32_t first = factor_f16x2(min(half, 15)), second = factor_f16x2(min(shift - half, 15));
    for (int i = 0; i < 4; i++) {
        to[i] = job->codec.shift == 20 ? times_e4m3(codes[i], second)
                                       : fast_e5m2(codes[i], first, second);
        to[i] = code == 255 ? 0x7f7f7f7fu : to[i];
    }
}

/* ---- a thread's items ---- */

/* Where they go. */
typedef struct fold_target {
    uint8_t *to; /* the next item's bytes */
    uint64_t step;
    uint32_t row, rows_apart, rows;
} fold_target;

static __device__ __forceinline__ fold_target fold_target_of(const bsmm_pack_job *job,
                                                             const pack_place *p) {
    uint8_t *to = (uint8_t *)job->elements + p->row0 * job->element_pitch + p->k;
    fold_target t = {to, p->rows_apart * job->element_pitch, p->row0, p->rows_apart, job->rows};
    return t;
}

static __device__ __forceinline__ void store_next(fold_target *t, const uint32_t *out) {
    if (t->row < t->rows) *(uint4 *)t->to = make_uint4(out[0], out[1], out[2], out[3]);
    t->to += t->step;
    t->row += t->rows_apart;
}

/* The group's scale, by the lane of its row. */
static __device__ __forceinline__ void
store_group(const bsmm_pack_job *job, const pack_place *place, int items, float scale) {
    uint32_t lane = threadIdx.x % FOLD_LANES, row = place->row0 + lane * place->rows_apart;
    if (job->group_scales && lane < (uint32_t)items && row < job->rows)
        job->group_scales[place->k / BSMM_PACK_GROUP * job->group_pitch + row] = scale;
}

/* Whether any code of an item is not a zero. packed: of 6 bits, as they are in memory. */
static __device__ __forceinline__ bool fold_any(const bsmm_pack_job *job, fold_kind kind,
                                                bool packed, const uint32_t *codes) {
    if (kind == FOLD_E2M1) return item_any(job, 4, 2, codes);
    if (!packed) return item_any(job, 6, 4, codes);
    return codes[0] & ~0x20820820u | codes[1] & ~0x08208208u | codes[2] & ~0x82082082u;
}

/* Items with codes of 4 and 6 bits (packed, or one in each byte); group, first: the block scales of
 * this lane's row, of this group and the row's first, in bytes; table: fold_entry's, of 4 bits. */
static __device__ __forceinline__ void fold_items(const bsmm_pack_job *job, fold_kind kind,
                                                  bool packed, int items, const uint4 *table,
                                                  uint32_t group, uint32_t first,
                                                  const uint32_t *codes, const pack_place *place,
                                                  item_reach *reach) {
    const int words = kind == FOLD_E2M1 ? 2 : packed ? 3 : 4;
    uint32_t mine = threadIdx.x % FOLD_LANES & (items - 1), lanes = 0;
    float scale;
#    pragma unroll
    for (int i = 0; i < items; i++) {
        uint32_t found = __ballot_sync(0xffffffffu, fold_any(job, kind, packed, codes + i * words));
        lanes = mine == (uint32_t)i ? found : lanes;
    }
    bool there = place->row0 + mine * place->rows_apart < job->rows;
    lanes = lanes >> (threadIdx.x % PACK_WARP & ~(FOLD_LANES - 1u)) & 0xff;
    uint32_t how = fold_group(job, kind, group, first, lanes, there, reach, &scale);
    store_group(job, place, items, scale);
    fold_target target = fold_target_of(job, place);
    /* This lane's block's byte, of 4 bits alone, of 6 in both halves; behind K 0. */
    uint32_t block = threadIdx.x % FOLD_LANES / 2;
    uint32_t byte = place->n == 0       ? 0x4444
                    : kind == FOLD_E2M1 ? 0x4440 | block
                                        : block * 0x1010 | 0x0404;
    uint32_t hows[FOLD_LANES];
#    pragma unroll
    for (int i = 0; i < items; i++)
        hows[i] = __byte_perm(from_row(how, i), 0, byte);
#    pragma unroll
    for (int i = 0; i < items; i++) {
        uint32_t out[4];
        if (kind == FOLD_E2M1) {
            uint4 entry = *(const uint4 *)((const uint8_t *)table + hows[i]);
            emit_fold4(entry, codes + i * words, out);
        } else {
            uint32_t bytes[4];
            if (packed) spread_fold6(kind == FOLD_E3M2, codes + i * words, bytes);
            for (int j = 0; j < 4 && !packed; j++)
                bytes[j] = codes[i * words + j] << (kind == FOLD_E3M2);
            emit_fold6(kind, hows[i], bytes, out);
        }
        store_next(&target, out);
    }
}

/* The same with codes of 8 bits; row_top: of this lane's row. False: an item of the warp is rare,
 * and nothing has been done. */
static __device__ __forceinline__ bool fast_items(const bsmm_pack_job *job, int items,
                                                  uint32_t group, int row_top,
                                                  const uint32_t *codes, const pack_place *place,
                                                  item_reach *reach) {
    uint32_t maxima[FOLD_LANES], code[FOLD_LANES];
    bool rare = false;
    float scale;
#    pragma unroll
    for (int i = 0; i < items; i++) {
        code[i] = byte_of_block(from_row(group, i));
        code[i] = place->n ? code[i] : 127;
        maxima[i] = fast_look(job, code[i], codes + 4 * i, &rare);
    }
    if (__any_sync(0xffffffffu, rare)) return false;
    uint32_t mine = threadIdx.x % FOLD_LANES & (items - 1);
    bool there = place->row0 + mine * place->rows_apart < job->rows;
    int exponent = fast_group(job, max_of_rows(items, maxima), row_top, there, reach, &scale);
    store_group(job, place, items, scale);
    fold_target target = fold_target_of(job, place);
#    pragma unroll
    for (int i = 0; i < items; i++) {
        uint32_t out[4];
        emit_fast(job, code[i], (int)from_row((uint32_t)exponent, i), codes + 4 * i, out);
        store_next(&target, out);
    }
    return true;
}

/* Item i by the definitions. */
static __device__ __forceinline__ void define_fold(const bsmm_pack_job *job, int bits, int i,
                                                   uint32_t group, int row_top,
                                                   const uint32_t *codes, const pack_place *place,
                                                   item_reach *reach) {
    uint32_t code = byte_of_block(from_row(group, i)), row = place->row0 + i * place->rows_apart;
    uint32_t out[4];
    row_top = (int)from_row((uint32_t)row_top, i);
    bsmm_lane_group g = define_item(job, bits, 8, place->n ? code : 127, row_top, codes, out);
    fold_target target = fold_target_of(job, place);
    target.to += i * target.step;
    target.row = row;
    store_next(&target, out);
    if (row >= job->rows) return;
    extend(&reach->told, &g);
    if (job->group_scales && place->k % BSMM_PACK_GROUP == 0)
        job->group_scales[place->k / BSMM_PACK_GROUP * job->group_pitch + row] = g.scale;
}
#endif

#endif
