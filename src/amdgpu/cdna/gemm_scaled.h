/* These functions compute GEMMs on gfx950, in which the matrix instruction itself multiplies by
 * e8m0 scales. An instruction multiplies 128 elements of K. Lane l passes the scale of row l % 16
 * for 32 of these elements, from element 32 * (l / 16) on. For 6- and 4-bit types the same lane
 * holds these elements. For 8-bit types the lane holds other elements of the row, but the
 * assignment of scales is the same. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_SCALED_H
#define BSMM_AMDGPU_CDNA_GEMM_SCALED_H

#include "amdgpu/cdna/gemm_scales.h"

/* GEMM_LATE_ROWS is the number of rows of 16 x 16 tiles whose matrix instructions run after the
 * barrier at the end of a step of the main loop. The matrix core then works while the waves read
 * the first operands of the next step from LDS. */
enum { GEMM_LATE_ROWS = 2 };

enum { GEMM_MOST_UNITS = 2 };

/* Holds the scales and operands that a wave has in registers for one step of the main loop. */
typedef struct gemm_scaled {
    gemm_scales scales[GEMM_MOST_UNITS];
    /* `cols` holds B's operands of the matrix instructions of one step of the main loop. */
    bsmm_i32x8 cols[GEMM_MOST_COL_TILES];
    /* `rows` holds A's operands. An operand is kept until all matrix instructions of its row of
     * tiles have run. */
    bsmm_i32x8 rows[GEMM_MOST_ROW_TILES];
} gemm_scaled;

BSMM_DEVICE uint32_t gemm_stage_count(gemm_shape s) {
    return BSMM_CDNA_STAGES(gemm_stage_bytes(s), gemm_rows(s, 0) + gemm_rows(s, 1),
                            gemm_k(s.types[0]));
}

/* Returns the part of a lane's fragment that one matrix instruction takes. A fragment of 4-bit
 * elements may hold the elements for two instructions (units), 128 elements of K each, and `unit`
 * selects one of them. Otherwise the instruction takes the whole fragment. */
BSMM_DEVICE bsmm_i32x8 gemm_part(gemm_shape s, bsmm_i32x8 x, uint32_t unit) {
    if (gemm_units(s) == 1) return x;
    const bsmm_i32x8 low = {x[0], x[1], x[2], x[3], 0, 0, 0, 0};
    const bsmm_i32x8 high = {x[4], x[5], x[6], x[7], 0, 0, 0, 0};
    return unit ? high : low;
}

/* Multiplies one 16 x 16 tile. The kernel passes B as the instruction's first operand and A as the
 * second, because each lane then holds four neighbouring columns of D. The instruction takes a
 * scale from the lowest byte of a register. */
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

/* Reads this lane's scales for one step of the main loop from LDS. */
BSMM_DEVICE void gemm_read_step_scales(const gemm_place *at, gemm_shape s, const gemm_lds *ring,
                                       uint32_t step, gemm_scales scales[GEMM_MOST_UNITS]) {
    const uint32_t places[2] = {gemm_scale_place(s, 0, at->first[0] - at->tile[0]),
                                gemm_scale_place(s, 1, at->first[1] - at->tile[1])};
#pragma unroll
    for (uint32_t u = 0; u < gemm_units(s); u++)
        scales[u] = gemm_read_scales(s, ring + gemm_slot(s, step * gemm_units(s) + u), places);
}

/* Reads A's operands for the first two rows of 16 x 16 tiles of a step from LDS. A step of the main
 * loop multiplies one stage. */
BSMM_DEVICE void gemm_scaled_first(gemm_scaled *g, const gemm_place *at, gemm_shape s,
                                   const gemm_lds *stage) {
#pragma unroll
    for (uint32_t i = 0; i < GEMM_LATE_ROWS; i++)
        g->rows[i] = gemm_read_row(at, s, stage, 0, i);
    __builtin_amdgcn_sched_barrier(0);
}

/* Reads the first operands of the first stage from LDS, before the main loop begins. */
BSMM_DEVICE void gemm_scaled_begin(gemm_scaled *g, const gemm_place *at, gemm_shape s,
                                   const gemm_lds *stage) {
    gemm_scaled_first(g, at, s, stage);
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++)
        g->cols[j] = gemm_read_row(at, s, stage, 1, j);
}

/* Runs the matrix instructions of the last rows of tiles of a step, and meanwhile reads the scales
 * and the first operands of the next step. The first instruction has all its operands already, so
 * that the matrix core works at once. Each register of B is overwritten as soon as its last
 * instruction has started. If the step has no other rows of tiles, A's operands are read after all
 * instructions. */
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

/* Describes the work of a step besides reading operands and multiplying. The work is divided into
 * small tasks, which the code calls chores. One chore follows each matrix instruction, so that the
 * matrix core never waits for the chores. */
typedef struct gemm_chores {
    gemm_carrier carrier;
    gemm_lds *ring;  /* `ring` points to the ring buffer in LDS that holds the scales. */
    gemm_lds *stage; /* `stage` points to the stage in LDS that loads fill. */
    /* `step` is the number of this step of the main loop, and `loading` is the number of the step
     * whose elements are being loaded. */
    uint32_t step, loading;
    /* `whole` is the number of steps whose elements can be loaded directly to LDS. */
    uint32_t whole;
} gemm_chores;

/* GEMM_SCOUTED is the prefetch distance in steps of the main loop. Cache lines are brought into L2
 * this number of steps before their elements are loaded to LDS. */
enum { GEMM_SCOUTED = 2 };

enum { GEMM_CHORE_STORE, GEMM_CHORE_LOAD, GEMM_CHORE_PARTS };

BSMM_DEVICE uint32_t gemm_chore_count(gemm_shape s) {
    return GEMM_CHORE_PARTS + gemm_stage_loads(s) + gemm_scouts(s);
}

/* Executes chore number `number`. The order of the chores matters, because loads finish in the
 * order in which they were issued. The prefetch to L2 comes last, so that gemm_scaled_wait need not
 * wait for it. With three stages, gemm_scaled_wait need not wait for the direct loads of the stage
 * either. */
BSMM_DEVICE void gemm_chore(gemm_chores *c, const gemm_place *at, gemm_shape s, uint32_t number) {
    /* In large tiles of 8-bit elements, the direct loads come before the work with scales. This
     * order delays the matrix core less: when the work with scales begins, the waves of a SIMD are
     * no longer at the same place of the loop, so one wave multiplies while another does this work.
     * In other kernels this order would need too many registers. */
    const uint32_t loads = gemm_stage_loads(s);
    const bool bytes = gemm_bits(s.types[0]) == 8 && gemm_bits(s.types[1]) == 8;
    if (bytes && gemm_scouts(s) && number < GEMM_CHORE_PARTS + loads)
        number = number < loads ? number + GEMM_CHORE_PARTS : number - loads;
    const uint32_t part = number - GEMM_CHORE_PARTS;
    if (number == GEMM_CHORE_STORE) {
        gemm_store_scales(&c->carrier, s, c->ring);
    } else if (number == GEMM_CHORE_LOAD) {
        gemm_load_scales(&c->carrier, s, gemm_trays(s, c->ring), c->step);
    } else if (part < gemm_stage_loads(s)) {
        /* In large tiles, an empty assembly hides from the compiler that these values are the same
         * for all loads. The compiler then computes the address of a load here. Otherwise it would
         * compute the addresses of all loads ahead of the first one, and the matrix core would wait
         * meanwhile. In small tiles it is faster to compute all addresses ahead of the first
         * load. */
        uint32_t loading = c->loading, stage = (uint32_t)(uintptr_t)c->stage;
        if (gemm_scouts(s)) __asm__ volatile("" : "+s"(loading), "+s"(stage));
        if (__builtin_expect(loading < c->whole, 1)) gemm_load_part(at, s, loading, stage, part);
    } else if (number < gemm_chore_count(s)) {
        gemm_scout_ahead(at, s, c->loading + GEMM_SCOUTED);
    }
}

/* Multiplies row i of the wave's 16 x 16 tiles, and reads A's operand for row i + 2 from LDS. */
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
