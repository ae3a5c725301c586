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

enum { GEMM_MOST_UNITS = 2 };

/* The registers of a wave. */
typedef struct gemm_scaled {
    gemm_scales scales[GEMM_MOST_UNITS];
    bsmm_i32x8 cols[GEMM_MOST_COL_TILES]; /* the fragments of B of a step */
    bsmm_i32x8 rows[GEMM_MOST_ROW_TILES]; /* a row's fragment lives until its instructions */
} gemm_scaled;

BSMM_DEVICE uint32_t gemm_stage_count(gemm_shape s) {
    return BSMM_CDNA_STAGES(gemm_stage_bytes(s), gemm_rows(s, 0) + gemm_rows(s, 1),
                            gemm_k(s.types[0]));
}

/* Returns the part of a fragment that an instruction takes: one of the two units of a fragment of
 * 4-bit elements, or the whole fragment. */
BSMM_DEVICE bsmm_i32x8 gemm_part(gemm_shape s, bsmm_i32x8 x, uint32_t unit) {
    if (gemm_units(s) == 1) return x;
    const bsmm_i32x8 low = {x[0], x[1], x[2], x[3], 0, 0, 0, 0};
    const bsmm_i32x8 high = {x[4], x[5], x[6], x[7], 0, 0, 0, 0};
    return unit ? high : low;
}

/* Multiplies one tile. The kernel passes B as the instruction's first operand and A as the second,
 * so that each lane holds four neighbouring columns of D. The instruction uses the lowest byte of a
 * scale operand. */
BSMM_DEVICE bsmm_f32x4 gemm_scaled_tile(gemm_shape s, bsmm_i32x8 row, bsmm_i32x8 col,
                                        const gemm_scales *scales, uint32_t i, uint32_t j,
                                        bsmm_f32x4 sum) {
#if defined(__gfx950__)
    const uint32_t most = BSMM_F8F6F4_E2M1;
    const uint32_t a = s.types[0] < most ? s.types[0] : most;
    const uint32_t b = s.types[1] < most ? s.types[1] : most;
#    pragma unroll
    for (uint32_t u = 0; u < gemm_units(s); u++)
        sum = bsmm_isa_mfma_scale_16(gemm_part(s, col, u), gemm_part(s, row, u), sum, b, a,
                                     (int32_t)(scales[u].cols >> 8 * j),
                                     (int32_t)(scales[u].rows[i / 4] >> 8 * (i % 4)));
    return sum;
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

/* Reads this lane's scales of a step. */
BSMM_DEVICE void gemm_read_step_scales(const gemm_place *at, gemm_shape s, const gemm_lds *ring,
                                       uint32_t step, gemm_scales scales[GEMM_MOST_UNITS]) {
    const uint32_t places[2] = {gemm_scale_place(s, 0, at->first[0] - at->tile[0]),
                                gemm_scale_place(s, 1, at->first[1] - at->tile[1])};
#pragma unroll
    for (uint32_t u = 0; u < gemm_units(s); u++)
        scales[u] = gemm_read_scales(s, ring + gemm_slot(s, step * gemm_units(s) + u), places);
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

/* Runs the instructions of the last rows of a step, and reads the scales and the first fragments of
 * the next step. The first instruction has all its operands, so that the matrix core works at once.
 * Each fragment of B is overwritten as soon as its last instruction has started. If the step has no
 * other rows, the fragments of A must wait too. */
BSMM_DEVICE void gemm_scaled_turn(gemm_scaled *g, const gemm_place *at, gemm_shape s,
                                  const gemm_lds *stage, gemm_scales scales[GEMM_MOST_UNITS],
                                  const gemm_lds *ring, uint32_t step, gemm_sums sums) {
    const uint32_t first = s.row_tiles - GEMM_LATE_ROWS;
    const bsmm_i32x8 rows[GEMM_LATE_ROWS] = {g->rows[first], g->rows[first + 1]};
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++) {
#pragma unroll
        for (uint32_t i = 0; i < GEMM_LATE_ROWS; i++) {
            sums[first + i][j] = gemm_scaled_tile(s, rows[i], g->cols[j], g->scales, first + i, j,
                                                  sums[first + i][j]);
            __builtin_amdgcn_sched_barrier(0);
            if (i == 0 && j == 0) gemm_read_step_scales(at, s, ring, step, scales);
            if (i == 0 && j == 0 && first) gemm_scaled_first(g, at, s, stage);
        }
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
    uint32_t whole;         /* the steps whose elements are loaded directly */
} gemm_chores;

/* The steps from the one that is loaded to the one whose lines are brought into L2. */
enum { GEMM_SCOUTED = 2 };

enum { GEMM_CHORE_STORE, GEMM_CHORE_LOAD, GEMM_CHORE_STAGE, GEMM_CHORE_PARTS };

BSMM_DEVICE uint32_t gemm_chore_count(gemm_shape s) {
    return GEMM_CHORE_PARTS + gemm_stage_loads(s) + gemm_scouts(s);
}

/* Does one chore. The loads have this order because loads finish in order: gemm_scaled_wait may
 * leave the scout's load under way, and with three stages also those of the stage. */
BSMM_DEVICE void gemm_chore(gemm_chores *c, const gemm_place *at, gemm_shape s, uint32_t number) {
    const uint32_t part = number - GEMM_CHORE_PARTS;
    if (number == GEMM_CHORE_STORE) {
        gemm_store_scales(&c->carrier, s, c->ring);
    } else if (number == GEMM_CHORE_LOAD) {
        gemm_load_scales(&c->carrier, s, gemm_trays(s, c->ring), c->step);
    } else if (number == GEMM_CHORE_STAGE) {
        if (__builtin_expect(c->loading >= c->whole && c->loading < at->steps, 0))
            gemm_load_stage(at, s, c->loading, c->stage);
    } else if (part < gemm_stage_loads(s)) {
        if (__builtin_expect(c->loading < c->whole, 1))
            gemm_load_part(at, s, c->loading, c->stage, part);
    } else if (number < gemm_chore_count(s)) {
        gemm_scout_ahead(at, s, c->loading + GEMM_SCOUTED);
    }
}

/* Multiplies row i of tiles, and reads the fragment of A after the next. */
BSMM_DEVICE void gemm_scaled_row(gemm_scaled *g, const gemm_place *at, gemm_shape s,
                                 const gemm_lds *stage, uint32_t i, gemm_chores *chores,
                                 gemm_sums sums) {
    g->rows[i + 2] = gemm_read_row(at, s, stage, 0, i + 2);
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++) {
        sums[i][j] = gemm_scaled_tile(s, g->rows[i], g->cols[j], g->scales, i, j, sums[i][j]);
        bsmm_isa_stay(sums[i][j]);
        gemm_chore(chores, at, s, i * s.col_tiles + j);
        __builtin_amdgcn_sched_barrier(0);
    }
}

#endif
