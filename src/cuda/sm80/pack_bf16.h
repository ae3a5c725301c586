/* Packs row-major operands to bf16 or f16 (gpu/pack.h explains packing). A thread packs 8 elements
 * along K in each of eight rows. The kernels are specialized for one type of scale, which is a
 * value of the enum bsmm_scale. Kernels for fp32 scales (3) also pack operands without scales.
 * Neighboring lanes whose elements lie in the same scale blocks share the work of loading and
 * testing scales. Rare values take the slow path in gpu/pack_lane.h.
 *
 * Packing to f16 multiplies all values by 2^fold. If f16 does not hold a product, the packed
 * element is wrong, and the header says so (bsmm_pack_is_half). */
#ifndef BSMM_CUDA_SM80_PACK_BF16_H
#define BSMM_CUDA_SM80_PACK_BF16_H

#include "cuda/sm80/pack_item.h"
#include "cuda/sm80/pack_words.h"

enum { BF16_CODES = 8, BF16_ROWS = WORD_LANES };

/* Returns the number of elements in a scale block: 32 for e8m0 and 16 for e4m3. */
static __device__ __forceinline__ uint32_t bf16_block(uint32_t scale) {
    return scale == 1 ? 32 : 16;
}

static __device__ __forceinline__ uint32_t bf16_scale_of_one(uint32_t scale) {
    return scale == 1 ? 127 : 0x38;
}

/* Loads the scales of four consecutive blocks for one row of this lane, one per byte. The lane's
 * own elements lie in one of these blocks. */
static __device__ __forceinline__ uint32_t bf16_scales(const bsmm_pack_job *job, uint32_t scale,
                                                       const pack_position *p) {
    uint32_t block = bf16_block(scale), row = p->row0 + threadIdx.x % BF16_ROWS * p->row_stride;
    return scale_word(job, block, bf16_scale_of_one(scale), row, p->k & ~(4 * block - 1));
}

/* Returns a selector for __byte_perm, which picks this lane's byte from a word of four block scales
 * and sets the other bytes to 0. Past the end of K the selector sets all bytes to 0. */
static __device__ __forceinline__ uint32_t bf16_byte(uint32_t scale, const pack_position *p) {
    return p->n ? 0x4440 | p->k / bf16_block(scale) % 4 : 0x4444;
}

/* Returns the block scale as bf16 in both 16-bit halves, if the scale is in the range of the fast
 * path. For other scales the result is wrong, and the caller must not use it. */
static __device__ __forceinline__ uint32_t usual_bf16(uint32_t scale, uint32_t code) {
    if (scale == 1) return code * 0x00800080u;
#if __CUDA_ARCH__ >= 890
    uint32_t half = bsmm_ptx_cvt_f16x2_e4m3x2((uint16_t)code);
    uint32_t bits = __float_as_uint(bsmm_ptx_cvt_f32_f16((uint16_t)half));
    return __byte_perm(bits, 0, 0x3232);
#else
    return factor_bf16x2(scale, code);
#endif
}

/* Returns the factor by which packing to f16 multiplies an element, as f16 in both 16-bit halves.
 * It is the block scale times 2^fold, where 2^fold is the same for all values of the operand. An
 * e8m0 scale must be in the range of the fast path. For a scale outside this range, the function
 * returns a wrong but finite factor, which does no harm if all elements of the block are 0. */
static __device__ __forceinline__ uint32_t usual_f16(const bsmm_pack_job *job, uint32_t scale,
                                                     uint32_t code) {
    if (scale == 1) return (uint32_t)min(max((int)code + job->fold - 112, 0), 30) * 0x04000400u;
#if __CUDA_ARCH__ >= 890
    return __byte_perm(bsmm_ptx_cvt_f16x2_e4m3x2((uint16_t)code), 0, 0x1010);
#else
    const float value = bsmm_e4m3_scale(code);
    return bsmm_ptx_cvt_f16x2(value, value);
#endif
}

/* Multiplies two pairs of f16 (if `half` is set) or of bf16. */
static __device__ __forceinline__ uint32_t mul_pairs(bool half, uint32_t a, uint32_t b) {
    return half ? bsmm_ptx_mul_f16x2(a, b) : mul_bf16x2(a, b);
}

/* Converts 8 bf16 numbers to f16, after multiplying them by 2^fold. */
static __device__ __forceinline__ void bf16_to_f16(const bsmm_pack_job *job, uint32_t *to) {
    const float factor = __uint_as_float((uint32_t)(127 + job->fold) << 23);
    for (int i = 0; i < 4; i++) {
        const float low = __uint_as_float(to[i] << 16), high = __uint_as_float(to[i] & 0xffff0000u);
        to[i] = bsmm_ptx_cvt_f16x2(high * factor, low * factor);
    }
}

/* Returns true if one of a thread's 8 elements of a row is nonzero. The elements are packed as in
 * memory. */
static __device__ __forceinline__ bool bf16_any(int bits, const uint32_t *raw) {
    if (bits == 4) return raw[0] & 0x77777777u;
    if (bits == 6) return raw[0] & ~0x20820820u | raw[1] & 0x7df7u;
    return (raw[0] | raw[1]) & 0x7f7f7f7fu;
}

/* Finds Inf and NaN among a thread's 8 elements of 8 bits. Bit 7 of byte i of the result is set if
 * the element in byte i of raw[0] or of raw[1] is Inf or NaN. Other bits are undefined. The format
 * must not be a fnuz format. */
static __device__ __forceinline__ uint32_t bf16_special(const bsmm_pack_job *job,
                                                        const uint32_t *raw) {
    return (raw[0] & 0x7f7f7f7fu) + job->pair.special | (raw[1] & 0x7f7f7f7fu) + job->pair.special;
}

/* Converts a thread's 8 elements of a row to f16 (if `half` is set) or to bf16. bf16 results are
 * bitwise identical to those of emit_bf16. Each element begins in 16 bits: its code is at the top
 * of the low byte, and all bits of the high byte are copies of its sign. A multiplication moves
 * exponent and mantissa to their positions in the 16-bit float, and a mask removes all copies of
 * the sign but one. A second multiplication corrects the exponent's bias. A third multiplies by the
 * block scale (`factor`), except if scales are fp32 (`scale` is 3). */
static __device__ __forceinline__ void bf16_emit(const bsmm_pack_job *job, int bits, bool half,
                                                 uint32_t scale, const uint32_t *raw,
                                                 uint32_t factor, uint32_t *to) {
    uint32_t up = bits != 4 ? job->pair.up : half ? 32 : 4;
    uint32_t mask = bits != 4 ? job->pair.mask : half ? 0x0e000e00u : 0x01c001c0u;
    mask |= 0x80008000u;
    /* Elements of 4 bits are separated into elements 0, 2, 4, ... and elements 1, 3, 5, ... */
    uint32_t codes[2] = {raw[0] << 4, raw[0]};
    if (bits == 6) spread6(8, raw, codes);
    if (bits == 8) codes[1] = raw[1];
    for (int i = 0; i < 4; i++) {
        const uint32_t pick = i | (8 + i) << 4 | (4 + i) << 8 | (12 + i) << 12;
        uint32_t tops = bits == 8 ? raw[i / 2] : codes[i / 2] << 2;
        uint32_t pair = bits == 4 ? bsmm_ptx_prmt(codes[0], codes[1], pick)
                                  : bsmm_ptx_prmt(tops, 0, i % 2 ? 0xb3a2 : 0x9180);
        to[i] = mul_pairs(half, pair * up & mask, job->pair.unbias);
        if (scale != 3) to[i] = mul_pairs(half, to[i], factor);
    }
}

/* A group is 128 elements of a row along K. 16 lanes hold a group, 8 elements each. Returns a mask
 * of 16 bits for the group of this lane's row: bit i is 1 if lane i of these 16 lanes has a nonzero
 * element. */
static __device__ __forceinline__ uint32_t bf16_lanes(int bits, const uint32_t *raw) {
    const int words = bits == 4 ? 1 : 2;
    uint32_t mine = threadIdx.x % BF16_ROWS, lanes = 0;
#pragma unroll
    for (int i = 0; i < BF16_ROWS; i++) {
        uint32_t found = __ballot_sync(0xffffffffu, bf16_any(bits, raw + i * words));
        lanes = mine == (uint32_t)i ? found : lanes;
    }
    return lanes >> (threadIdx.x & 16) & 0xffff;
}

/* Four adjacent lanes hold the elements of a scale block. Bit i of `lanes` is set if lane i has a
 * nonzero element (bf16_lanes). Returns one byte for each of four blocks: 0xff if the block has a
 * nonzero element, else 0. */
static __device__ __forceinline__ uint32_t blocks_of_four(uint32_t lanes) {
    uint32_t pairs = lanes | lanes >> 1, blocks = (pairs | pairs >> 2) & 0x1111;
    blocks = (blocks & 0x0011) | (blocks & 0x1100) << 8;
    return ((blocks | blocks << 4) & 0x01010101u) * 0xff;
}

/* Widens `reach`, the range of the operand's values found so far, by the values of this lane's row
 * in a group of 128 elements. `codes` holds the e8m0 codes of the row's four blocks. Bit i of
 * `lanes` is set if lane i of the group has a nonzero element of the row (bf16_lanes). Returns true
 * if the row needs the slow path. */
static __device__ __forceinline__ bool bf16_reaches(const bsmm_pack_job *job, uint32_t codes,
                                                    uint32_t lanes, item_reach *reach) {
    uint32_t counts = blocks_of_four(lanes), ends = largest_bytes(codes & counts, ~codes & counts);
    int top = (int)(ends >> 16) - 127, bottom = 255 - 127 - (int)(ends & 0xffff);
    reach_out(reach, counts ? top : REACH_NOTHING, counts ? bottom : -REACH_NOTHING);
    bool outside = (top > job->fit_high) | (bottom < job->fit_low);
    return (nan_bytes(codes) != 0) | (outside & (counts != 0));
}

/* Stores the scale of a group (128 elements of a row). For each row, exactly one of the group's
 * lanes calls this function. */
static __device__ __forceinline__ void
bf16_store_scale(const bsmm_pack_job *job, const pack_position *p, uint32_t row, float scale) {
    if (job->group_scales && row < job->rows)
        job->group_scales[p->k / BSMM_PACK_GROUP * job->group_pitch + row] = scale;
}

/* Loads the fp32 scale of this lane's row in the group of 128 elements that contains the lane's
 * elements. The result is not used if the row does not exist or if the operand has no scales. */
static __device__ __forceinline__ uint32_t group_scale_code(const bsmm_pack_job *job,
                                                            const pack_position *p, uint32_t row) {
    if (job->scale != 3 || row >= job->rows) return 0;
    return load_scale(job, false, row, bsmm_axis_at(&job->col_map, min(p->k, job->cols - 1)));
}

/* Chooses and stores the group scale of this lane's row for the group (128 elements of the row)
 * that the lane packs, for operands with fp32 scales or without scales. `code` is the result of
 * group_scale_code. */
static __device__ __forceinline__ void lead_group(const bsmm_pack_job *job, const pack_position *p,
                                                  uint32_t row, uint32_t code, item_reach *reach) {
    if (threadIdx.x % (BSMM_PACK_GROUP / BF16_CODES) >= BF16_ROWS || row >= job->rows) return;
    const bsmm_lane_group g = leading_group(job, code, reach);
    bf16_store_scale(job, p, row, g.scale);
}

/* Packs all elements of a thread by the slow path. The function loads the elements again, one row
 * at a time. The loop is not unrolled, because it rarely runs and its code should stay small. */
static __device__ __forceinline__ void bf16_define(const bsmm_pack_job *job, int bits, bool half,
                                                   uint32_t scale, const pack_position *p,
                                                   item_reach *reach) {
    uint8_t *to = (uint8_t *)job->elements + p->row0 * job->element_pitch + (uint64_t)p->k * 2;
    uint64_t column = bsmm_axis_at(&job->col_map, min(p->k, job->cols - 1));
#pragma unroll 1
    for (int i = 0; i < BF16_ROWS; i++, to += p->row_stride * job->element_pitch) {
        uint32_t row = p->row0 + i * p->row_stride, again[2], code = bf16_scale_of_one(scale),
                 out[4];
        bool there = row < job->rows;
        load_row_again(job, bits, BF16_CODES, i, p, again);
        if (scale != 3 && p->n && there) code = load_scale(job, true, row, column);
        bsmm_lane_group g = define_item(job, bits, 16, code, 0, again, out);
        if (half) bf16_to_f16(job, out);
        if (!there) continue;
        extend(&reach->told, &g);
        *(uint4 *)to = make_uint4(out[0], out[1], out[2], out[3]);
        if (scale != 3 && p->k % BSMM_PACK_GROUP == 0) bf16_store_scale(job, p, row, g.scale);
    }
}

#endif
