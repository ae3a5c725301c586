/* Loads A and B from memory for the kernels for few rows of A (small_m_body.h).
 *
 * If the elements of an operand have at most 8 bits, lane l of a wave loads exactly the elements
 * that it passes to matrix instructions. In each step (128 elements of K), lane l loads 32 elements
 * of row l % 16 of each tile of 16 rows. Usually these start at element 32 * (l / 16) of the step
 * (an integer division). There is one exception: if elements have 8 bits and the scaled matrix
 * instruction is used, lane l loads 16 elements that start at 16 * (l / 16), and 16 elements that
 * lie 64 elements later.
 *
 * If A is bf16 or f16, the lanes instead load A row by row, so that a load reads few cache lines.
 * They then exchange the elements of A through LDS. */
#ifndef BSMM_AMDGPU_CDNA_SMALL_M_LOAD_H
#define BSMM_AMDGPU_CDNA_SMALL_M_LOAD_H

#include "amdgpu/cdna/small_m_params.h"
#include "amdgpu/isa/memory.h"
#include "amdgpu/isa/mfma.h"

enum {
    SMALL_M_EDGE = BSMM_CDNA_SMALL_M_EDGE,
    SMALL_M_K = BSMM_CDNA_SMALL_M_K,
    /* SMALL_M_LANE_K is the number of elements of a row that a lane loads in a step. */
    SMALL_M_LANE_K = 32,
    SMALL_M_MOST_TILES = 4,
    SMALL_M_LOADS = 4, /* SMALL_M_LOADS is the number of loads of a lane for a step of 16 rows of
                          16-bit elements. */
    SMALL_M_OUTSIDE = (int)0x80000000u, /* Loads at the offset SMALL_M_OUTSIDE return 0. */
};

/* Gives the format of an operand by its element type, a value of the enum bsmm_elem, and its scale
 * type, a value of the enum bsmm_scale. The scale type is BSMM_SCALE_NONE if the operand has no
 * scales, and also if its fp32 scales cover whole rows, because small_m_epilogue_store multiplies
 * by such scales. */
typedef struct small_m_format {
    uint32_t elem, scale;
} small_m_format;

/* Gives the formats of A and B and the size of the part of D that a workgroup computes, in tiles of
 * 16 x 16. b_tiles counts the tiles along the rows of B, and a_tiles counts the tiles along the
 * rows of A. All members are compile-time constants. */
typedef struct small_m_shape {
    small_m_format a, b;
    uint32_t b_tiles, a_tiles;
} small_m_shape;

/* Holds what a lane loads of an operand for one step (128 elements of K). For each tile of 16 rows,
 * the lane loads 32 elements of one row, `words`, and their scales, `scales`. Both are stored as in
 * memory. */
typedef struct small_m_stored {
    bsmm_u32x4 words[SMALL_M_MOST_TILES][2];
    uint32_t scales[SMALL_M_MOST_TILES];
} small_m_stored;

typedef struct small_m_rows {
    /* `pieces` holds elements of A. A piece is eight elements. */
    bsmm_u32x4 pieces[SMALL_M_MOST_TILES * SMALL_M_LOADS];
} small_m_rows;

/* Describes the memory from which a lane loads an operand. `elements` and `scales` are the buffers
 * of the operand's elements and scales. at[i] and scale_at[i] are the offsets in bytes of the
 * lane's loads in step 0, i.e. in the first 128 elements of K. `scale_step` is the distance in
 * bytes from the scales of one step to those of the next. */
typedef struct small_m_source {
    __amdgpu_buffer_rsrc_t elements, scales;
    int32_t at[SMALL_M_MOST_TILES * SMALL_M_LOADS], scale_at[SMALL_M_MOST_TILES];
    int32_t scale_step;
} small_m_source;

BSMM_DEVICE uint32_t small_m_least(uint32_t x, uint32_t y) {
    return x < y ? x : y;
}

/* Returns true if the elements of an operand have 16 bits (bf16 or f16). Lanes then exchange them
 * through LDS. */
BSMM_DEVICE bool small_m_is_wide(small_m_format f) {
    return f.elem == BSMM_ELEM_BF16 || f.elem == BSMM_ELEM_F16;
}

/* Returns true if the kernel multiplies the sum of each step by an fp32 scale of the operand. */
BSMM_DEVICE bool small_m_has_floats(small_m_format f) {
    return f.scale == BSMM_SCALE_F32;
}

/* Returns true if gfx950's matrix instruction with block scales multiplies A and B as they are
 * stored. If A has no scales, the instruction gets a scale of 1 for A. */
BSMM_DEVICE bool small_m_is_scaled(small_m_shape s) {
#if defined(__gfx950__)
    const bool is_bytes = s.a.elem == BSMM_ELEM_E4M3 && s.a.scale == BSMM_SCALE_NONE;
    return (s.a.scale == BSMM_SCALE_E8M0 || is_bytes) && s.b.scale == BSMM_SCALE_E8M0;
#else
    (void)s;
    return false;
#endif
}

BSMM_DEVICE uint32_t small_m_bits(small_m_format f) {
    if (f.elem == BSMM_ELEM_E2M3 || f.elem == BSMM_ELEM_E3M2) return 6;
    return small_m_is_wide(f) ? 16 : f.elem == BSMM_ELEM_E2M1 ? 4 : 8;
}

/* A lane loads 16 bytes of a row and then the rest, which is 8 bytes of 6-bit elements or 16 bytes
 * of 8-bit elements. Returns the distance in bytes from the first load to the second one. */
BSMM_DEVICE uint32_t small_m_gap(small_m_shape s, small_m_format f) {
    return small_m_is_scaled(s) && small_m_bits(f) == 8 ? SMALL_M_K / 2 : SMALL_M_LANE_K / 2;
}

/* A step is SMALL_M_K elements of K. Returns the index in the step of the first element that this
 * lane loads from a row. Lanes with the same lane / 16 load the same elements of different rows. */
BSMM_DEVICE uint32_t small_m_first(small_m_shape s, small_m_format f) {
    return bsmm_device_lane() / 16 *
           (small_m_gap(s, f) == SMALL_M_K / 2 ? SMALL_M_LANE_K / 2 : SMALL_M_LANE_K);
}

BSMM_DEVICE __amdgpu_buffer_rsrc_t small_m_buffer(const void *from, uint32_t bytes) {
    return __builtin_amdgcn_make_buffer_rsrc((void *)from, 0, bytes, 0x00020000);
}

/* Returns the offset in bytes of the scale that this lane loads for row `row` in step 0, i.e. for
 * the first 128 elements of K. */
BSMM_DEVICE uint32_t small_m_scale_at(small_m_format f, const bsmm_cdna_small_m_side *side,
                                      uint32_t row) {
    const uint32_t part = bsmm_device_lane() / 16;
    const uint32_t across = f.scale == BSMM_SCALE_E8M0 ? part : part * 2;
    return (row >> side->scale_shift) * side->scale_pitch + (small_m_has_floats(f) ? 0 : across);
}

/* Returns the offset in bytes of row `row` + `more`, or of the last row if that row is beyond the
 * end of the operand. `more` is a compile-time constant. A product of vector registers takes four
 * times as long as a sum. With many rows, the function therefore adds to the offset of `row`, which
 * the compiler computes once. */
BSMM_DEVICE uint32_t small_m_row_at(small_m_shape s, const bsmm_cdna_small_m_side *side,
                                    uint32_t row, uint32_t more) {
    const uint32_t last = side->rows - 1;
    if (s.a_tiles == 1) return small_m_least(row + more, last) * side->pitch;
    return row + more <= last ? row * side->pitch + more * side->pitch : last * side->pitch;
}

/* Finds the addresses from which a lane loads `tiles` times 16 rows of an operand. For a row beyond
 * the end of the operand, the lane loads the operand's last row instead. The results of such rows
 * are not stored. */
BSMM_DEVICE small_m_source small_m_source_of(small_m_shape s, small_m_format f, uint32_t tiles,
                                             const bsmm_cdna_small_m_side *side,
                                             uint32_t first_row) {
    const uint32_t lane = bsmm_device_lane();
    small_m_source from = {.elements = small_m_buffer(side->data, side->bytes),
                           .scales = small_m_buffer(side->scales, side->scale_bytes),
                           .scale_step = (int32_t)side->scale_step};
    const uint32_t row = first_row + (small_m_is_wide(f) ? lane / 16 : lane % 16);
    if (small_m_is_wide(f)) {
#pragma unroll
        for (uint32_t i = 0; i < tiles * SMALL_M_LOADS; i++)
            from.at[i] = (int32_t)(small_m_row_at(s, side, row, i * 4) + lane % 16 * 16);
        return from;
    }
#pragma unroll
    for (uint32_t i = 0; i < tiles; i++) {
        const uint32_t across = small_m_first(s, f) * small_m_bits(f) / 8;
        from.at[i] = (int32_t)(small_m_row_at(s, side, row, i * SMALL_M_EDGE) + across);
        from.at[SMALL_M_MOST_TILES + i] = from.at[i] + (int32_t)small_m_gap(s, f);
        if (f.scale != BSMM_SCALE_NONE)
            from.scale_at[i] = (int32_t)small_m_scale_at(
                f, side, small_m_least(row + i * SMALL_M_EDGE, side->rows - 1));
    }
    return from;
}

BSMM_DEVICE bool small_m_is_last(uint32_t step, uint32_t end) {
    return (step + 1) * SMALL_M_K > end;
}

/* Loads the scale or the two scales of a lane's 32 elements. */
BSMM_DEVICE uint32_t small_m_load_scale(small_m_format f, const small_m_source *from,
                                        int32_t lane_offset, int32_t offset) {
    if (small_m_has_floats(f))
        return __builtin_amdgcn_raw_buffer_load_b32(from->scales, lane_offset, offset, 0);
    if (f.scale == BSMM_SCALE_E4M3)
        return __builtin_amdgcn_raw_buffer_load_b16(from->scales, lane_offset, offset, 0);
    return __builtin_amdgcn_raw_buffer_load_b8(from->scales, lane_offset, offset, 0);
}

/* Loads eight bytes. The other words of the result are 0. */
BSMM_DEVICE bsmm_u32x4 small_m_load_eight(const small_m_source *from, int32_t lane_offset,
                                          int32_t offset) {
    typedef uint32_t pair __attribute__((vector_size(8)));
    const pair words = __builtin_amdgcn_raw_buffer_load_b64(from->elements, lane_offset, offset, 0);
    return (bsmm_u32x4){words[0], words[1], 0, 0};
}

/* Makes a lane's loads return 0 for all elements whose index along K is at least `end`, and for
 * their scales. For this purpose the function replaces the offsets of these loads by an offset
 * outside the operand. fp32 scales of whole rows are still loaded, because the lane multiplies all
 * its results by them, and the results include elements before `end`. */
BSMM_DEVICE void small_m_leave(small_m_shape s, small_m_format f, uint32_t tiles,
                               small_m_source *from, uint32_t step, uint32_t end) {
    const uint32_t first = step * SMALL_M_K + small_m_first(s, f);
    const bool low = first >= end, high = first + small_m_gap(s, f) >= end;
    const bool scale = step * SMALL_M_K + bsmm_device_lane() / 16 * SMALL_M_LANE_K >= end;
#pragma unroll
    for (uint32_t i = 0; i < tiles; i++) {
        const uint32_t second = SMALL_M_MOST_TILES + i;
        from->at[i] = low ? SMALL_M_OUTSIDE : from->at[i];
        from->at[second] = high ? SMALL_M_OUTSIDE : from->at[second];
        if (f.scale != BSMM_SCALE_NONE && !small_m_has_floats(f))
            from->scale_at[i] = scale ? SMALL_M_OUTSIDE : from->scale_at[i];
    }
}

/* Loads one step (SMALL_M_K elements of K) of an operand whose elements have at most 8 bits. `end`
 * is the end of the wave's part of K. Elements and scales beyond it become 0. */
BSMM_DEVICE void small_m_load(small_m_shape s, small_m_format f, uint32_t tiles,
                              small_m_source *from, uint32_t step, uint32_t end,
                              small_m_stored *to) {
    const int32_t offset = (int32_t)(step * (SMALL_M_K / 8 * small_m_bits(f)));
    if (small_m_is_last(step, end)) small_m_leave(s, f, tiles, from, step, end);
#pragma unroll
    for (uint32_t i = 0; i < tiles; i++) {
        to->words[i][0] =
            __builtin_amdgcn_raw_buffer_load_b128(from->elements, from->at[i], offset, 0);
        if (small_m_bits(f) == 8)
            to->words[i][1] = __builtin_amdgcn_raw_buffer_load_b128(
                from->elements, from->at[SMALL_M_MOST_TILES + i], offset, 0);
        if (small_m_bits(f) == 6)
            to->words[i][1] = small_m_load_eight(from, from->at[SMALL_M_MOST_TILES + i], offset);
        if (f.scale != BSMM_SCALE_NONE)
            to->scales[i] =
                small_m_load_scale(f, from, from->scale_at[i], (int32_t)step * from->scale_step);
    }
}

/* Loads the 16-bit elements of a lane's rows for one step (128 elements of K). The wave's part of K
 * ends before index `end`, and elements past its end become 0. */
BSMM_DEVICE void small_m_load_rows(uint32_t tiles, small_m_source *from, uint32_t step,
                                   uint32_t end, small_m_rows *to) {
    const bool outside = step * SMALL_M_K + bsmm_device_lane() % 16 * 8 >= end;
    if (small_m_is_last(step, end)) {
#pragma unroll
        for (uint32_t i = 0; i < tiles * SMALL_M_LOADS; i++)
            from->at[i] = outside ? SMALL_M_OUTSIDE : from->at[i];
    }
#pragma unroll
    for (uint32_t i = 0; i < tiles * SMALL_M_LOADS; i++)
        to->pieces[i] = __builtin_amdgcn_raw_buffer_load_b128(from->elements, from->at[i],
                                                              (int32_t)(step * (SMALL_M_K * 2)), 0);
}

#endif
