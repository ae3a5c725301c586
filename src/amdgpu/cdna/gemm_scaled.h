/* Products on gfx950 whose e8m0 scales the matrix instruction applies. Lane l passes the scale of
 * row l % 16 and of elements 32 * (l / 16) to 32 * (l / 16) + 31 of the instruction's K. For 6- and
 * 4-bit types the same lane holds these elements. For 8-bit types it holds other elements of the
 * row, but the assignment of scales is the same. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_SCALED_H
#define BSMM_AMDGPU_CDNA_GEMM_SCALED_H

#include "amdgpu/cdna/gemm_scales.h"

/* The last rows of tiles of a step. Their instructions run after the barrier that ends the step, so
 * that the matrix core works while the first fragments of the next step are read from LDS. */
enum { GEMM_LATE_ROWS = 2 };

/* The registers of a wave. */
typedef struct gemm_scaled {
    gemm_scales scales;
    bsmm_i32x8 cols[GEMM_MOST_COL_TILES]; /* the fragments of B of a step */
    bsmm_i32x8 rows[GEMM_MOST_ROW_TILES]; /* a row's fragment lives until its instructions */
} gemm_scaled;

BSMM_DEVICE uint32_t gemm_stage_count(gemm_shape s) {
    return BSMM_CDNA_STAGES(gemm_stage_bytes(s), gemm_rows(s, 0) + gemm_rows(s, 1));
}

/* Multiplies one tile. The kernel passes B as the instruction's first operand and A as the second,
 * so that each lane holds four neighbouring columns of D. The instruction uses the lowest byte of a
 * scale operand. */
BSMM_DEVICE bsmm_f32x4 gemm_scaled_tile(gemm_shape s, bsmm_i32x8 row, bsmm_i32x8 col,
                                        const gemm_scales *scales, uint32_t i, uint32_t j,
                                        bsmm_f32x4 sum) {
#if defined(__gfx950__)
    return bsmm_isa_mfma_scale_16(col, row, sum, s.types[1], s.types[0],
                                  (int32_t)(scales->cols >> 8 * j),
                                  (int32_t)(scales->rows[i / 4] >> 8 * (i % 4)));
#else
    (void)s, (void)row, (void)col, (void)scales, (void)i, (void)j;
    return sum;
#endif
}

BSMM_DEVICE bsmm_i32x8 gemm_read_row(const gemm_place *at, gemm_shape s, const gemm_lds *stage,
                                     uint32_t side, uint32_t tile) {
    const uint32_t bytes = BSMM_CDNA_EDGE * gemm_row_bytes(s.types[side]);
    return gemm_read_fragment(stage + at->offsets[side] + tile * bytes, at->readers[side],
                              s.types[side]);
}

/* Reads the first two fragments of A of a step. */
BSMM_DEVICE void gemm_scaled_first(gemm_scaled *g, const gemm_place *at, gemm_shape s,
                                   const gemm_lds *stage) {
#pragma unroll
    for (uint32_t i = 0; i < GEMM_LATE_ROWS; i++)
        g->rows[i] = gemm_read_row(at, s, stage, 0, i);
    __builtin_amdgcn_sched_barrier(0);
}

/* Reads the first fragments of the first step. */
BSMM_DEVICE void gemm_scaled_begin(gemm_scaled *g, const gemm_place *at, gemm_shape s,
                                   const gemm_lds *stage) {
    gemm_scaled_first(g, at, s, stage);
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++)
        g->cols[j] = gemm_read_row(at, s, stage, 1, j);
}

/* Runs the instructions of the last rows in column j. */
BSMM_DEVICE void gemm_scaled_late(const gemm_scaled *g, gemm_shape s,
                                  const bsmm_i32x8 rows[GEMM_LATE_ROWS], uint32_t j,
                                  gemm_sums sums) {
    const uint32_t first = s.row_tiles - GEMM_LATE_ROWS;
#pragma unroll
    for (uint32_t i = 0; i < GEMM_LATE_ROWS; i++)
        sums[first + i][j] =
            gemm_scaled_tile(s, rows[i], g->cols[j], &g->scales, first + i, j, sums[first + i][j]);
}

/* Runs the instructions of the last rows of a step, and reads the first fragments of the next step.
 * Each fragment of B is overwritten as soon as its last instruction has started. If the step has no
 * other rows, the fragments of A must wait too. */
BSMM_DEVICE void gemm_scaled_turn(gemm_scaled *g, const gemm_place *at, gemm_shape s,
                                  const gemm_lds *stage, gemm_sums sums) {
    const uint32_t first = s.row_tiles - GEMM_LATE_ROWS;
    const bsmm_i32x8 rows[GEMM_LATE_ROWS] = {g->rows[first], g->rows[first + 1]};
    if (first) gemm_scaled_first(g, at, s, stage);
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++) {
        gemm_scaled_late(g, s, rows, j, sums);
        __builtin_amdgcn_sched_barrier(0);
        g->cols[j] = gemm_read_row(at, s, stage, 1, j);
        __builtin_amdgcn_sched_barrier(0);
    }
    if (!first) gemm_scaled_first(g, at, s, stage);
}

/* The work of a step beside reading fragments and multiplying. It is divided into chores, and one
 * of them follows each matrix instruction, so that the matrix core never waits for them. */
typedef struct gemm_chores {
    gemm_carrier carrier;
    gemm_lds *ring;         /* the scales in LDS */
    gemm_lds *stage;        /* the stage that is loaded */
    uint32_t step, loading; /* this step, and the step whose elements are loaded */
    bool direct;            /* the elements are loaded directly */
} gemm_chores;

enum { GEMM_CHORE_STORE, GEMM_CHORE_LOAD, GEMM_CHORE_STAGE, GEMM_CHORE_PARTS };

BSMM_DEVICE uint32_t gemm_chore_count(gemm_shape s) {
    return GEMM_CHORE_PARTS + gemm_stage_loads(s);
}

/* Does one chore. The scales are loaded before the stage, because gemm_scaled_wait waits for all
 * loads but those of the stage. */
BSMM_DEVICE void gemm_chore(gemm_chores *c, const gemm_place *at, gemm_shape s, uint32_t number) {
    if (number == GEMM_CHORE_STORE)
        gemm_store_scales(&c->carrier, s, c->ring);
    else if (number == GEMM_CHORE_LOAD)
        gemm_load_scales(&c->carrier, gemm_trays(s, c->ring), c->step);
    else if (number == GEMM_CHORE_STAGE && c->loading < at->steps && !c->direct)
        gemm_load_stage(at, s, c->loading, c->stage);
    else if (number >= GEMM_CHORE_PARTS && number < gemm_chore_count(s) && c->direct)
        gemm_load_part(at, s, c->loading, c->stage, number - GEMM_CHORE_PARTS);
}

/* Multiplies row i of tiles, and reads the fragment of A after the next. */
BSMM_DEVICE void gemm_scaled_row(gemm_scaled *g, const gemm_place *at, gemm_shape s,
                                 const gemm_lds *stage, uint32_t i, gemm_chores *chores,
                                 gemm_sums sums) {
    g->rows[i + 2] = gemm_read_row(at, s, stage, 0, i + 2);
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++) {
        sums[i][j] = gemm_scaled_tile(s, g->rows[i], g->cols[j], &g->scales, i, j, sums[i][j]);
        bsmm_isa_stay(sums[i][j]);
        gemm_chore(chores, at, s, i * s.col_tiles + j);
        __builtin_amdgcn_sched_barrier(0);
    }
}

#endif
