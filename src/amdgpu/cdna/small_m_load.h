/* Loads A and B from memory for the kernels for few rows of A (small_m.c).
 *
 * Lane l of a wave loads the weights that it passes to matrix instructions. In each step, these are
 * 32 elements of row l % 16 of each 16 rows of B, from element 32 * (l / 16) of the step on. Lanes
 * load A row by row instead, so that a load reads few cache lines. The lanes then exchange the
 * elements of A through LDS. */
#ifndef BSMM_AMDGPU_CDNA_SMALL_M_LOAD_H
#define BSMM_AMDGPU_CDNA_SMALL_M_LOAD_H

#include "amdgpu/cdna/small_m_params.h"
#include "amdgpu/isa/memory.h"
#include "amdgpu/isa/mfma.h"

enum {
    SMALL_M_EDGE = BSMM_CDNA_SMALL_M_EDGE,
    SMALL_M_K = BSMM_CDNA_SMALL_M_K,
    SMALL_M_MOST_TILES = 4,
    SMALL_M_LOADS = 4,                  /* the loads of a lane for a step of 16 rows of A */
    SMALL_M_OUTSIDE = (int)0x80000000u, /* an offset at which loads return 0 */
};

/* Gives the size of the part of D that a workgroup computes, in tiles of 16 x 16. b_tiles counts
 * the tiles along the rows of B, and a_tiles those along the rows of A. */
typedef struct small_m_shape {
    uint32_t b_tiles, a_tiles;
} small_m_shape;

/* Holds a lane's weights for a step, as they are stored. */
typedef struct small_m_weights {
    bsmm_u32x4 words[SMALL_M_MOST_TILES];
    uint32_t scales[SMALL_M_MOST_TILES];
} small_m_weights;

typedef struct small_m_rows {
    bsmm_u32x4 pieces[SMALL_M_MOST_TILES * SMALL_M_LOADS]; /* a piece is eight elements of A */
} small_m_rows;

/* Describes the memory from which a lane loads A, B and the scales of B. The offsets are those of
 * step 0. `end` is the end of the wave's part of K. */
typedef struct small_m_source {
    __amdgpu_buffer_rsrc_t a, b, scales;
    int32_t a_at[SMALL_M_MOST_TILES * SMALL_M_LOADS];
    int32_t b_at[SMALL_M_MOST_TILES], scale_at[SMALL_M_MOST_TILES];
    uint32_t end;
} small_m_source;

BSMM_DEVICE uint32_t small_m_least(uint32_t x, uint32_t y) {
    return x < y ? x : y;
}

BSMM_DEVICE __amdgpu_buffer_rsrc_t small_m_buffer(const void *from, uint32_t bytes) {
    return __builtin_amdgcn_make_buffer_rsrc((void *)from, 0, bytes, 0x00020000);
}

/* Finds the addresses from which a lane loads. For a row beyond the end of an operand, the lane
 * loads the operand's last row instead. The results of such rows are not stored. */
BSMM_DEVICE small_m_source small_m_source_of(small_m_shape s, const bsmm_cdna_small_m *p,
                                             uint32_t first_row, uint32_t end) {
    const uint32_t lane = bsmm_device_lane();
    small_m_source from = {.a = small_m_buffer(p->a_data, p->a_bytes),
                           .b = small_m_buffer(p->b_data, p->b_bytes),
                           .scales = small_m_buffer(p->scales, p->scale_bytes),
                           .end = end};
#pragma unroll
    for (uint32_t i = 0; i < s.b_tiles; i++) {
        const uint32_t row = small_m_least(first_row + i * SMALL_M_EDGE + lane % 16, p->n - 1);
        from.b_at[i] = (int32_t)(row * p->b_pitch + lane / 16 * 16);
        from.scale_at[i] = (int32_t)(row * p->scale_pitch + lane / 16);
    }
#pragma unroll
    for (uint32_t i = 0; i < s.a_tiles * SMALL_M_LOADS; i++) {
        const uint32_t row = small_m_least(i * 4 + lane / 16, p->m - 1);
        from.a_at[i] = (int32_t)(row * p->a_pitch + lane % 16 * 16);
    }
    return from;
}

BSMM_DEVICE bool small_m_is_last(const small_m_source *from, uint32_t step) {
    return (step + 1) * SMALL_M_K > from->end;
}

/* Loads the weights of a step. From the end of the wave's part of K on, weights and scales are
 * 0. */
BSMM_DEVICE void small_m_load_b(small_m_shape s, small_m_source *from, uint32_t step,
                                small_m_weights *to) {
    const bool outside = step * SMALL_M_K + bsmm_device_lane() / 16 * 32 >= from->end;
    if (small_m_is_last(from, step)) {
#pragma unroll
        for (uint32_t i = 0; i < s.b_tiles; i++) {
            from->b_at[i] = outside ? SMALL_M_OUTSIDE : from->b_at[i];
            from->scale_at[i] = outside ? SMALL_M_OUTSIDE : from->scale_at[i];
        }
    }
#pragma unroll
    for (uint32_t i = 0; i < s.b_tiles; i++) {
        to->words[i] = __builtin_amdgcn_raw_buffer_load_b128(from->b, from->b_at[i],
                                                             (int32_t)(step * (SMALL_M_K / 2)), 0);
        to->scales[i] = __builtin_amdgcn_raw_buffer_load_b8(from->scales, from->scale_at[i],
                                                            (int32_t)(step * (SMALL_M_K / 32)), 0);
    }
}

/* Loads a step of A. From the end of the wave's part of K on, elements are 0. */
BSMM_DEVICE void small_m_load_a(small_m_shape s, small_m_source *from, uint32_t step,
                                small_m_rows *to) {
    const bool outside = step * SMALL_M_K + bsmm_device_lane() % 16 * 8 >= from->end;
    if (small_m_is_last(from, step)) {
#pragma unroll
        for (uint32_t i = 0; i < s.a_tiles * SMALL_M_LOADS; i++)
            from->a_at[i] = outside ? SMALL_M_OUTSIDE : from->a_at[i];
    }
#pragma unroll
    for (uint32_t i = 0; i < s.a_tiles * SMALL_M_LOADS; i++)
        to->pieces[i] = __builtin_amdgcn_raw_buffer_load_b128(from->a, from->a_at[i],
                                                              (int32_t)(step * (SMALL_M_K * 2)), 0);
}

#endif
