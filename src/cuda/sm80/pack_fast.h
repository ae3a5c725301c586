/* Packs 8-bit elements with e8m0 scales to 8-bit floats, with rounding (route FAST in gpu/pack.h).
 * An item is 16 elements of one row, which one thread packs, and a group is 128 elements of a row.
 * As in pack_fold.h, eight lanes hold a group in each of several rows, and each lane computes the
 * group scale of one row. fast_row says which row a lane has. */
#ifndef BSMM_CUDA_SM80_PACK_FAST_H
#define BSMM_CUDA_SM80_PACK_FAST_H

#include "cuda/sm80/pack_fold.h"

/* Eight neighboring lanes together have the groups (128 elements) of `items` rows (eight or four).
 * Each of these lanes computes the group scale of one of the rows. fast_row returns the index of
 * the row whose scale this lane computes. fast_lane returns the number of the lane, among the
 * eight, that computes the scale of row i. With four rows, two lanes compute the same scale. */
static __device__ __forceinline__ uint32_t fast_row(int items) {
    uint32_t lane = threadIdx.x % FOLD_LANES;
    return lane / 2 + (items == 8 ? lane % 2 * 4 : 0);
}

static __device__ __forceinline__ uint32_t fast_lane(int items, int i) {
    return (uint32_t)(items == 8 ? i % 4 * 2 + i / 4 : i * 2);
}

/* A thread has 16 codes of 8 bits of a row, in four words. Returns two largest magnitudes: the one
 * of all bytes 0 and 1 of the words, and the one of all bytes 2 and 3. The first is the high byte
 * of the lower 16 bits of the result, the second is the high byte of the upper 16 bits. The other
 * two bytes may hold anything. They do not matter, because the caller compares the 16-bit halves as
 * integers and their high bytes decide. */
static __device__ __forceinline__ uint32_t item_most(const uint32_t *codes) {
    uint32_t most = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t magnitudes = codes[i] & 0x7f7f7f7fu;
        most = __vmaxu2(most, __vmaxu2(magnitudes, magnitudes << 8));
    }
    return most;
}

/* Returns the largest magnitude in each of the four scale blocks of this lane's row. Each byte of
 * the result belongs to one block. */
static __device__ __forceinline__ uint32_t blocks_most(int items, const uint32_t *codes) {
    /* Each word of `rows` holds the largest magnitude in one scale block of each of two rows. */
    uint32_t rows[4], quarter = items / 4;
    for (int i = 0; i < items / 2; i++) {
        uint32_t a = item_most(codes + 8 * i), b = item_most(codes + 8 * i + 4);
        rows[i] = __vmaxu2(__byte_perm(a, b, 0x5410), __byte_perm(a, b, 0x7632));
    }
    for (uint32_t i = 0; i < 2; i++) {
        bool upper = threadIdx.x % 2 && quarter == 2;
        uint32_t given = quarter == 2 && !upper ? rows[i + 2] : rows[i];
        uint32_t kept = upper ? rows[i + 2] : rows[i];
        rows[i] = __vmaxu2(kept, __shfl_xor_sync(0xffffffffu, given, 1));
    }
    return transposed_bytes(__byte_perm(rows[0], rows[1], 0x7531), 2);
}

/* To choose the scale of a group (128 elements of this lane's row), the packer needs two numbers of
 * its four scale blocks (bsmm_lane_look): the exponent of the smallest scale under which no element
 * overflows, and the exponent of the smallest block scale, negated. Returns both, plus
 * BSMM_LANE_BIAS, in the high and the low half of the result. `codes` holds the scale codes of the
 * four blocks, and `most` the largest magnitude in each of them (blocks_most). Sets *rare to true
 * if an element is not finite, or if elements are so small that an f16 factor cannot scale them
 * up. */
static __device__ __forceinline__ uint32_t fast_look(bsmm_elem elem, uint32_t codes, uint32_t most,
                                                     bool *rare) {
    const bool e4m3 = elem == BSMM_ELEM_E4M3;
    const uint32_t mantissa = e4m3 ? 3 : 2, max_code = e4m3 ? 0x7e : 0x7b;
    uint32_t maxima = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t code = codes >> 8 * i & 0xff, largest = most >> 8 * i & 0xff;
        int exponent = (int)code - 127;
        int normalized = max(__clz((int)max(largest, 1)) - (31 - (int)mantissa), 0);
        int room = (int)((max_code - (largest << normalized)) >> mantissa) + normalized;
        bool reaches = code != 255 && largest != 0;
        uint32_t found = (uint32_t)(BSMM_LANE_BIAS + exponent - room) << 16 |
                         (uint32_t)(BSMM_LANE_BIAS - exponent);
        *rare |= (largest > max_code) | (reaches & (room > (e4m3 ? 15 : 30)));
        maxima = __vmaxu2(maxima, reaches ? found : 0);
    }
    return maxima;
}

/* Chooses the scale of a group (128 elements of a row) and returns its exponent. `maxima` is the
 * result of fast_look. `there` is false for a row past the end of the operand. */
static __device__ __forceinline__ int fast_group(const bsmm_pack_job *job, uint32_t maxima,
                                                 int row_top, bool there, item_reach *reach,
                                                 float *scale) {
    int top = (int)(maxima >> 16) - BSMM_LANE_BIAS,
        bottom = BSMM_LANE_BIAS - (int)(maxima & 0xffff);
    bsmm_lane_group own = {0, 1, 0, 0, 0, 0};
    bsmm_lane_fast_fit(job, &own, maxima, top, bottom, row_top);
    bsmm_lane_group g = group_of(job, own.exponent, false);
    if (there) reach->told.flags |= g.flags | own.flags;
    reach_out(reach, maxima ? top : REACH_NOTHING, maxima ? bottom : -REACH_NOTHING);
    *scale = g.scale;
    return g.exponent;
}

/* Returns 2^shift as f16, or NaN if the e8m0 scale `code` is NaN. */
static __device__ __forceinline__ uint32_t factor_f16(int shift, uint32_t code) {
    uint32_t bits = shift >= -14  ? (uint32_t)(shift + 15) << 10
                    : shift < -24 ? 0
                                  : 1u << (shift + 24);
    return code == 255 ? 0x7e00 : bits;
}

/* Computes the factors of the four scale blocks of a group (128 elements of a row) as f16, in two
 * words. The range of e5m2 is so large that its elements need two multiplications. For e5m2, two
 * more words hold the factors of the first multiplication. */
static __device__ __forceinline__ void fast_factors(bsmm_elem elem, uint32_t codes, int exponent,
                                                    uint32_t *factors) {
    for (int i = 0; i < 4; i++) {
        uint32_t code = codes >> 8 * i & 0xff;
        int shift = (int)code - 127 - exponent, half = elem == BSMM_ELEM_E4M3 ? 0 : shift / 2;
        uint32_t last = factor_f16(min(shift - half, 15), code) << 16 * (i % 2);
        uint32_t first = factor_f16(min(half, 15), 0) << 16 * (i % 2);
        factors[i / 2] = i % 2 ? factors[i / 2] | last : last;
        if (elem == BSMM_ELEM_E5M2) factors[2 + i / 2] = i % 2 ? factors[2 + i / 2] | first : first;
    }
}

#if __CUDA_ARCH__ >= 890
/* Multiplies four e5m2 elements by two f16 factors, one after the other. An e5m2 element is the
 * high byte of an f16 number. */
static __device__ __forceinline__ uint32_t fast_e5m2(uint32_t codes, uint32_t first,
                                                     uint32_t second) {
    uint32_t low = __byte_perm(codes, 0, 0x1404), high = __byte_perm(codes, 0, 0x3424);
    low = bsmm_ptx_mul_f16x2(bsmm_ptx_mul_f16x2(low, first), second);
    high = bsmm_ptx_mul_f16x2(bsmm_ptx_mul_f16x2(high, first), second);
    return bsmm_ptx_cvt_e5m2x2_f16x2(low) | bsmm_ptx_cvt_e5m2x2_f16x2(high) << 16;
}

/* Packs a thread's 16 elements of row i. n is the number of these elements before the end of K. */
static __device__ __forceinline__ void emit_fast(bsmm_elem elem, int items, int i, uint32_t n,
                                                 const uint32_t *factors, const uint32_t *codes,
                                                 uint32_t *to) {
    const uint32_t lane = fast_lane(items, i);
    const uint32_t half = 0x1010 + 0x2222 * (threadIdx.x % FOLD_LANES / 2);
    uint32_t last = __byte_perm(from_row(factors[0], lane), from_row(factors[1], lane), half);
    uint32_t first = 0;
    if (elem == BSMM_ELEM_E5M2)
        first = __byte_perm(from_row(factors[2], lane), from_row(factors[3], lane), half);
    last = n ? last : 0;
    for (int j = 0; j < 4; j++)
        to[j] =
            elem == BSMM_ELEM_E4M3 ? times_e4m3(codes[j], last) : fast_e5m2(codes[j], first, last);
}

/* Packs a thread's 16 elements in each of `items` rows by the fast path. row_top is the largest
 * exponent of a block scale with which a group can use the common scale of this lane's row
 * (bsmm_lane_row_top). If any row of the warp needs the slow path, the function packs nothing and
 * returns false. */
static __device__ __forceinline__ bool
fast_items(const bsmm_pack_job *job, bsmm_elem elem, int items, uint32_t group, int row_top,
           const uint32_t *codes, const pack_position *position, item_reach *reach) {
    const uint32_t mine = fast_row(items);
    uint32_t factors[4];
    bool rare = false, there = position->row0 + mine * position->row_stride < job->rows;
    float scale;
    uint32_t maxima = fast_look(elem, group, blocks_most(items, codes), &rare);
    if (__any_sync(0xffffffffu, rare)) return false;
    int exponent = fast_group(job, maxima, row_top, there, reach, &scale);
    store_group(job, position, mine, items == 8 || threadIdx.x % 2 == 0, scale);
    fast_factors(elem, group, exponent, factors);
    fold_target target = fold_target_of(job, position);
#    pragma unroll
    for (int i = 0; i < items; i++) {
        uint32_t out[4];
        emit_fast(elem, items, i, position->n, factors, codes + 4 * i, out);
        store_next(&target, out);
    }
    return true;
}

/* Packs a thread's 16 elements of row i by the slow path in gpu/pack_lane.h. */
static __device__ __forceinline__ void
define_fast(const bsmm_pack_job *job, int items, int i, uint32_t group, int row_top,
            const uint32_t *codes, const pack_position *position, item_reach *reach) {
    uint32_t lane = fast_lane(items, i), row = position->row0 + i * position->row_stride, out[4];
    uint32_t code = from_row(group, lane) >> threadIdx.x % FOLD_LANES / 2 * 8 & 0xff;
    row_top = (int)from_row((uint32_t)row_top, lane);
    bsmm_lane_group g = define_item(job, 8, 8, position->n ? code : 127, row_top, codes, out);
    fold_target target = fold_target_of(job, position);
    target.to += i * target.step;
    target.row = row;
    store_next(&target, out);
    if (row >= job->rows) return;
    extend(&reach->told, &g);
    if (job->group_scales && position->k % BSMM_PACK_GROUP == 0)
        job->group_scales[position->k / BSMM_PACK_GROUP * job->group_pitch + row] = g.scale;
}
#endif

#endif
