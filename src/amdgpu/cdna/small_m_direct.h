/* Multiplies elements without decoding them, for the kernels for few rows of A (small_m_body.h).
 * There are two cases:
 *
 * - The FP8 instructions multiply e4m3 operands with fp32 scales or without scales. The
 *   instructions of gfx942 read e4m3 codes as e4m3fnuz, where a code means half of its value in
 *   e4m3. Only the codes of -0 and NaN have other meanings there, so the lanes of gfx942 replace
 *   them.
 * - On gfx950, the scaled instruction, which reads e8m0 scales, multiplies two operands that are
 *   each mxfp8, mxfp6 or mxfp4, or one such operand and an e4m3 operand without scales. */
#ifndef BSMM_AMDGPU_CDNA_SMALL_M_DIRECT_H
#define BSMM_AMDGPU_CDNA_SMALL_M_DIRECT_H

#include "amdgpu/cdna/gemm_layout.h"
#include "amdgpu/cdna/small_m_decode.h"
#include "amdgpu/cdna/small_m_finish.h"

/* Returns true if the FP8 instructions multiply A and B as they are stored. */
BSMM_DEVICE bool small_m_is_fp8(small_m_shape s) {
    const bool has_floats = small_m_has_floats(s.a) && small_m_has_floats(s.b);
    const bool has_none = s.a.scale == BSMM_SCALE_NONE && s.b.scale == BSMM_SCALE_NONE;
    return small_m_bits(s.a) == 8 && (has_floats || has_none);
}

#if defined(__gfx950__)

enum {
    SMALL_M_UNIT_SCALE = 127, /* This is the e8m0 code of a scale of 1. */
    SMALL_M_NAN_SCALE = 255,
};

/* Returns the number by which the scaled instruction encodes the element type. */
BSMM_DEVICE uint32_t small_m_type(small_m_format f) {
    switch (f.elem) {
    case BSMM_ELEM_E2M1:
        return BSMM_F8F6F4_E2M1;
    case BSMM_ELEM_E2M3:
        return BSMM_F8F6F4_E2M3;
    case BSMM_ELEM_E3M2:
        return BSMM_F8F6F4_E3M2;
    case BSMM_ELEM_E5M2:
        return BSMM_F8F6F4_E5M2;
    default:
        return BSMM_F8F6F4_E4M3;
    }
}

BSMM_DEVICE bsmm_i32x8 small_m_operand(small_m_format f, const bsmm_u32x4 words[2]) {
    bsmm_i32x8 to = {(int32_t)words[0][0], (int32_t)words[0][1], (int32_t)words[0][2],
                     (int32_t)words[0][3]};
#    pragma unroll
    for (uint32_t i = 0; i < small_m_bits(f) - 4; i++)
        to[4 + i] = (int32_t)words[1][i];
    return to;
}

/* A step has four blocks (32 elements of K that share a scale) of a row. The lane passes the scale
 * of block lane / 16 to the scaled matrix instruction. Returns 1 if this block has a nonzero
 * element, else 0. If elements have fewer than 8 bits, the lane itself holds the elements of the
 * block. If elements have 8 bits, two other lanes hold 16 elements of the block each, so the lanes
 * exchange flags by ballots. In lanes 0 to 31, words[0] belongs to block 0 and words[1] to block 2.
 * In lanes 32 to 63, words[0] belongs to block 1 and words[1] to block 3. */
BSMM_DEVICE uint32_t small_m_any_of_block(small_m_format f, const bsmm_u32x4 words[2]) {
    if (small_m_bits(f) != 8) return small_m_any_of_lane(f, words);
    const uint64_t low = __builtin_amdgcn_ballot_w64(small_m_any(f, words[0]) != 0);
    const uint64_t high = __builtin_amdgcn_ballot_w64(small_m_any(f, words[1]) != 0);
    const uint32_t lane = bsmm_device_lane();
    const uint32_t even = (uint32_t)(lane & 32 ? high : low);
    const uint32_t odd = (uint32_t)((lane & 32 ? high : low) >> 32);
    return ((lane & 16 ? odd : even) & 0x00010001u << lane % 16) != 0;
}

/* Returns the code of the scale that a lane passes to the scaled instruction, or that of NaN if the
 * scale lies outside the kernel's range. If the operand has no scales, the scale is 1. */
BSMM_DEVICE int32_t small_m_code(small_m_shape s, small_m_format f, const small_m_stored *from,
                                 uint32_t tile) {
    if (f.scale == BSMM_SCALE_NONE) return SMALL_M_UNIT_SCALE;
    const uint32_t code = from->scales[tile];
    const uint32_t any = small_m_any_of_block(f, from->words[tile]);
    return (int32_t)(small_m_is_beyond(s, code, any) ? SMALL_M_NAN_SCALE : code);
}

BSMM_DEVICE void small_m_multiply_scaled(small_m_shape s, const small_m_stored *a,
                                         const small_m_stored *b, small_m_sums sums) {
    int32_t codes[SMALL_M_MOST_TILES];
#    pragma unroll
    for (uint32_t j = 0; j < s.a_tiles; j++)
        codes[j] = small_m_code(s, s.a, a, j);
#    pragma unroll
    for (uint32_t i = 0; i < s.b_tiles; i++) {
        const int32_t code = small_m_code(s, s.b, b, i);
#    pragma unroll
        for (uint32_t j = 0; j < s.a_tiles; j++)
            sums[i][j] = bsmm_isa_mfma_scale_16(
                small_m_operand(s.b, b->words[i]), small_m_operand(s.a, a->words[j]), sums[i][j],
                small_m_type(s.b), small_m_type(s.a), code, 0, codes[j], 0);
    }
}

/* Returns eight of the elements that a lane holds, from element 8 * quarter on, in the form in
 * which the FP8 instructions read them. */
BSMM_DEVICE int64_t small_m_eight(const bsmm_u32x4 words[2], uint32_t quarter) {
    const bsmm_u32x4 from = words[quarter / 2];
    return (int64_t)(from[quarter % 2 * 2] | (uint64_t)from[quarter % 2 * 2 + 1] << 32);
}

#else

BSMM_DEVICE void small_m_multiply_scaled(small_m_shape s, const small_m_stored *a,
                                         const small_m_stored *b, small_m_sums sums) {
    (void)s, (void)a, (void)b, (void)sums;
}

/* Returns elements [8 * quarter, 8 * quarter + 8) of a lane as e4m3fnuz, the format that the FP8
 * instructions of gfx942 multiply. If any of the lane's 32 elements is NaN, four elements of
 * quarter 0 become NaN, so that the results are NaN. */
BSMM_DEVICE int64_t small_m_eight(const bsmm_u32x4 words[2], uint32_t quarter) {
    const bsmm_u32x4 from = words[quarter / 2];
    uint32_t low = small_m_fnuz(from[quarter % 2 * 2]);
    const uint32_t high = small_m_fnuz(from[quarter % 2 * 2 + 1]);
    const small_m_format e4m3 = {BSMM_ELEM_E4M3, BSMM_SCALE_NONE};
    if (quarter == 0) low = small_m_has_nan(e4m3, words) ? 0x80808080u : low;
    return (int64_t)(low | (uint64_t)high << 32);
}

#endif

BSMM_DEVICE void small_m_multiply_fp8(small_m_shape s, const small_m_stored *a,
                                      const small_m_stored *b, small_m_sums sums) {
#pragma unroll
    for (uint32_t q = 0; q < 4; q++) {
        int64_t rows[SMALL_M_MOST_TILES];
#pragma unroll
        for (uint32_t j = 0; j < s.a_tiles; j++)
            rows[j] = small_m_eight(a->words[j], q);
#pragma unroll
        for (uint32_t i = 0; i < s.b_tiles; i++) {
            const int64_t weights = small_m_eight(b->words[i], q);
#pragma unroll
            for (uint32_t j = 0; j < s.a_tiles; j++)
                sums[i][j] = bsmm_isa_mfma_fp8_16(weights, rows[j], sums[i][j]);
        }
    }
}

#endif
