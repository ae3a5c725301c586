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

/* Holds the scales and operands that a wave has in registers for one step of the main loop. */
typedef struct gemm_scaled {
    gemm_scales scales;
    gemm_scale_reader reader;
    /* `cols` holds B's operands of the matrix instructions of one step of the main loop. */
    bsmm_i32x8 cols[GEMM_MOST_COL_TILES];
    /* `rows` holds A's operands of the matrix instructions. One operand serves a whole row of 16 x
     * 16 tiles, so it is kept until all matrix instructions of this row of tiles have run. */
    bsmm_i32x8 rows[GEMM_MOST_ROW_TILES];
} gemm_scaled;

BSMM_DEVICE uint32_t gemm_stage_count(gemm_shape s) {
    return BSMM_CDNA_STAGES(gemm_stage_bytes(s), gemm_rows(s, 0) + gemm_rows(s, 1));
}

/* Returns the part of a lane's fragment x that one matrix instruction takes, i.e. its elements of
 * one unit (128 elements of K). A step of 4-bit elements may have two units, whose elements are the
 * two halves of x, and `unit` (0 or 1) selects one. Otherwise a step has one unit, and the function
 * returns x. */
BSMM_DEVICE bsmm_i32x8 gemm_part(gemm_shape s, bsmm_i32x8 x, uint32_t unit) {
    if (gemm_units(s) == 1) return x;
    const bsmm_i32x8 low = {x[0], x[1], x[2], x[3], 0, 0, 0, 0};
    const bsmm_i32x8 high = {x[4], x[5], x[6], x[7], 0, 0, 0, 0};
    return unit ? high : low;
}

/* Multiplies one 16 x 16 tile. The kernel passes B as the instruction's first operand and A as the
 * second, because each lane then holds four neighbouring columns of D. The instruction takes a
 * scale from a byte of a register. */
BSMM_DEVICE bsmm_f32x4 gemm_scaled_tile(gemm_shape s, bsmm_i32x8 row, bsmm_i32x8 col,
                                        const gemm_scales *scales, uint32_t i, uint32_t j,
                                        bsmm_f32x4 sum) {
#if defined(__gfx950__)
    const uint32_t most = BSMM_F8F6F4_E2M1;
    const uint32_t a = s.types[0] < most ? s.types[0] : most;
    const uint32_t b = s.types[1] < most ? s.types[1] : most;
#    pragma unroll
    for (uint32_t u = 0; u < gemm_units(s); u++) {
        const uint32_t r = i * gemm_units(s) + u, c = j * gemm_units(s) + u;
        sum = bsmm_isa_mfma_scale_16(gemm_part(s, col, u), gemm_part(s, row, u), sum, b, a,
                                     (int32_t)scales->sides[1][c / 4], c % 4,
                                     (int32_t)scales->sides[0][r / 4], r % 4);
    }
    return sum;
#else
    (void)s, (void)row, (void)col, (void)scales, (void)i, (void)j;
    return sum;
#endif
}

BSMM_DEVICE bsmm_i32x8 gemm_read_row(const gemm_position *at, gemm_shape s, const gemm_lds *stage,
                                     uint32_t side, uint32_t tile) {
    const uint32_t bytes = BSMM_CDNA_EDGE * gemm_row_bytes(s.types[side]);
    return gemm_read_fragment(stage + at->offsets[side] + tile * bytes, at->readers[side],
                              s.types[side]);
}

/* Returns the offsets and the byte selector with which this lane reads scales from the ring buffer
 * (gemm_read_scales). */
BSMM_DEVICE gemm_scale_reader gemm_scaled_reader(const gemm_position *at, gemm_shape s) {
    const uint32_t rows[2] = {at->first[0] - at->tile[0], at->first[1] - at->tile[1]};
    return gemm_scale_reader_of(s, rows);
}

/* Reads operands of A from LDS for a step of the main loop, which multiplies one stage. A matrix
 * instruction computes a tile of 16 x 16 results. The function reads the operands of A for the
 * first GEMM_LATE_ROWS (two) rows of such tiles. */
BSMM_DEVICE void gemm_scaled_first(gemm_scaled *g, const gemm_position *at, gemm_shape s,
                                   const gemm_lds *stage) {
#pragma unroll
    for (uint32_t i = 0; i < GEMM_LATE_ROWS; i++)
        g->rows[i] = gemm_read_row(at, s, stage, 0, i);
    __builtin_amdgcn_sched_barrier(0);
}

/* Reads the first operands of the first stage from LDS, before the main loop begins. */
BSMM_DEVICE void gemm_scaled_begin(gemm_scaled *g, const gemm_position *at, gemm_shape s,
                                   const gemm_lds *stage) {
    gemm_scaled_first(g, at, s, stage);
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++)
        g->cols[j] = gemm_read_row(at, s, stage, 1, j);
}

/* Reads a lane's scales for step `step`. */
BSMM_DEVICE void gemm_scaled_scales(gemm_shape s, const gemm_lds *ring, gemm_scale_reader reader,
                                    uint32_t step, gemm_scales *to) {
    gemm_scale_words words;
#pragma unroll
    for (uint32_t side = 0; side < 2; side++) {
        gemm_read_scales(s, ring, reader, step, side, &words);
        gemm_pick_scales(s, &words, reader.select, side, to);
    }
}

/* The matrix instructions of the last GEMM_LATE_ROWS rows of a step follow each other column by
 * column, so that number 2 j + i belongs to row i and column j. Says after which of these
 * instructions a wave reads operands and scales of the next step: A's operands, the words of the
 * scales of A and of B, and B's first operand. `picks` says after which one it picks the scales of
 * A and of B from the words. */
typedef struct gemm_late_order {
    uint32_t rows, scales[2], col, picks[2];
} gemm_late_order;

/* The other wave of the SIMD reaches this code at about the same time. A group of instructions
 * between two matrix instructions must therefore be short, or the matrix core waits. */
BSMM_DEVICE gemm_late_order gemm_late_order_of(gemm_shape s) {
    if (s.col_tiles == 2) return (gemm_late_order){0, {1, 3}, 1, {2, 3}};
    if (gemm_units(s) == 2) return (gemm_late_order){0, {2, 4}, 1, {6, 6}};
    return (gemm_late_order){1, {3, 4}, 2, {5, 6}};
}

/* Runs the matrix instructions of the last GEMM_LATE_ROWS rows of the wave's 16 x 16 tiles in a
 * step, and meanwhile reads the scales and the first operands of the next step from LDS. The
 * operands of the first two instructions are already in registers, so that the matrix core works at
 * once. Each register of B is overwritten as soon as the last instruction that reads it has
 * started. A word of scales is read some time before its bytes are used, so that no matrix
 * instruction waits for scales. If the wave has no more than GEMM_LATE_ROWS rows of tiles, A's
 * operands are read after all instructions. The function reads the first `cols` operands of B. */
BSMM_DEVICE void gemm_scaled_late_rows(gemm_scaled *g, const gemm_position *at, gemm_shape s,
                                       const gemm_lds *stage, const gemm_lds *ring, uint32_t step,
                                       uint32_t cols, gemm_sums sums) {
    const uint32_t first = s.row_tiles - GEMM_LATE_ROWS;
    const gemm_late_order order = gemm_late_order_of(s);
    const bsmm_i32x8 rows[GEMM_LATE_ROWS] = {g->rows[first], g->rows[first + 1]};
    gemm_scale_words words;
    gemm_scales scales;
#pragma unroll
    for (uint32_t n = 0; n < GEMM_LATE_ROWS * s.col_tiles; n++) {
        const uint32_t i = n % GEMM_LATE_ROWS, j = n / GEMM_LATE_ROWS;
        /* This keeps the second instruction after the barrier. The compiler may move the first one
         * ahead of the barrier. */
        if (n == order.rows && n) bsmm_isa_stay(sums[first + i][j]);
        sums[first + i][j] =
            gemm_scaled_tile(s, rows[i], g->cols[j], &g->scales, first + i, j, sums[first + i][j]);
        /* This makes the compiler compute the addresses of scales from here on, and not ahead of
         * the first instructions. */
        if (n + 1 == order.scales[0] && order.rows) __asm__ volatile("" : "+s"(step));
        __builtin_amdgcn_sched_barrier(0);
        if (n == order.rows && first) gemm_scaled_first(g, at, s, stage);
        for (uint32_t side = 0; side < 2; side++) {
            if (n == order.scales[side]) gemm_read_scales(s, ring, g->reader, step, side, &words);
            if (n == order.picks[side])
                gemm_pick_scales(s, &words, g->reader.select, side, &scales);
        }
        __builtin_amdgcn_sched_barrier(0);
        const uint32_t col = n == order.col ? 0 : n / 2;
        if (n == order.col || (i == 1 && col > 0 && col < cols))
            g->cols[col] = gemm_read_row(at, s, stage, 1, col);
        __builtin_amdgcn_sched_barrier(0);
    }
    if (!first) gemm_scaled_first(g, at, s, stage);
    g->scales = scales;
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
    /* `whole` is the number of steps of the main loop whose elements are loaded directly to LDS. */
    uint32_t whole;
    /* The first `plain` steps load elements directly to LDS. If such a step also loads scales, it
     * loads those of several steps by one wide load. */
    uint32_t plain;
    /* These fields are used in the first `plain` steps of the main loop. These steps load elements
     * directly to LDS without bounds checks. `lds` holds the addresses in LDS of the wave's first
     * direct loads of A and B, and `offsets` holds the offsets of the loaded elements in a row of A
     * and of B. */
    uint32_t lds[2], offsets[2];
    /* `half` and `words` are used in the plain steps of large tiles (gemm_plain_steps). `half` is
     * the number of the stage, 0 or 1, that the step multiplies. `words` holds the step's scales of
     * one row, which this thread reads from the ring buffer to find the smallest scale. */
    uint32_t half;
    /* `loaded` is true if the next step's stage was loaded before this step. The stages of a large
     * tile's first two steps are loaded before the main loop. */
    bool loaded;
    uint32_t words[GEMM_MOST_UNITS];
    /* A wide load loads the scales of four units (128 elements of K each) at once. `group_step` is
     * the number of the step in which this wave issues its next wide load, or GEMM_NEVER if there
     * is no such step. In the step after `group_step`, the scales have arrived in LDS. */
    uint32_t group_step;
    /* `group` is the number of the tile that this workgroup computes. With split-K, the tiles of
     * all parts of K are numbered together. `more` is 1 if the workgroup computes another tile
     * after this one. */
    uint32_t group, more;
    /* `late` tells where the tile's first step stores results of the previous tile. */
    gemm_late late;
} gemm_chores;

enum { GEMM_NEVER = 1 << 30 };

/* A wide load fetches 16 scales of each row at once, i.e. the scales of GEMM_GROUP units (128
 * elements of K each). Returns the number of steps of the main loop to which these scales
 * belong. */
BSMM_DEVICE uint32_t gemm_group_steps(gemm_shape s) {
    return GEMM_GROUP / gemm_units(s);
}

/* A wide load fetches the scales of several steps at once: each lane loads 16 bytes, from a cache
 * line that no other lane reads. If all waves issued their wide loads in the same step, L2 could
 * not keep up. Half of the waves therefore issue them later. Returns the number of steps by which
 * this wave delays its wide loads, which is 0 for waves 0 to 3. Waves w and w + 4 run on the same
 * SIMD. Because they load in different steps, one of them multiplies while the other works on its
 * scales. */
BSMM_DEVICE uint32_t gemm_group_delay(const gemm_position *at, gemm_shape s) {
    return at->sources[0].wave / 4 * (gemm_group_steps(s) / 2);
}

/* Returns the first of the four units (128 elements of K each) whose scales a wide load in step
 * `step` loads: the first unit of the next group of four. */
BSMM_DEVICE uint32_t gemm_group_unit(gemm_shape s, uint32_t step) {
    return (step / gemm_group_steps(s) + 1) * GEMM_GROUP;
}

/* Returns `step` if there are scales for a wide load in this step, and otherwise GEMM_NEVER. */
BSMM_DEVICE uint32_t gemm_group_step(const gemm_carrier *c, gemm_shape s, uint32_t step) {
    return gemm_group_unit(s, step) < c->wide ? step : (uint32_t)GEMM_NEVER;
}

/* GEMM_SCOUTED is the number of steps of the main loop by which a prefetch to L2 precedes the load
 * of the same elements to LDS. */
enum { GEMM_SCOUTED = 2 };

enum { GEMM_CHORE_STORE, GEMM_CHORE_LOAD, GEMM_CHORE_PARTS };

BSMM_DEVICE uint32_t gemm_chore_count(gemm_shape s) {
    return GEMM_CHORE_PARTS + gemm_stage_loads(s) + gemm_scouts(s);
}

/* Returns the number of plain steps of a tile. In a plain step, elements are loaded directly to
 * LDS, and scales only by wide loads (gemm_chores). */
BSMM_DEVICE uint32_t gemm_plain_steps(const gemm_position *at, gemm_shape s, bool in_row) {
    const uint32_t ahead = gemm_stage_count(s) - 1, whole = at->sources[0].whole;
    const uint32_t direct = whole > ahead ? whole - ahead : 0;
    /* A wide load brings the scales of GEMM_GROUP units (128 elements of K each). At the end of K,
     * fewer units than that may be left. Their scales are loaded one by one, GEMM_AHEAD steps
     * before they are used. Plain steps (steps that load elements directly to LDS) contain no such
     * single loads, so they must end before the step that issues the first one. */
    const uint32_t wide = whole * gemm_units(s) / GEMM_GROUP * (GEMM_GROUP / gemm_units(s));
    const uint32_t most = wide == at->steps ? wide : wide > GEMM_AHEAD ? wide - GEMM_AHEAD : 0;
    const uint32_t steps = direct < most ? direct : most;
    if (!in_row) return 0;
    if (!gemm_scouts(s)) return steps;
    /* Plain steps (steps that load their elements directly to LDS) run in pairs. The second step of
     * the last pair may be the last step of the tile. It then has no next step whose elements it
     * could load. It loads its own elements again instead, and nothing uses them. */
    return wide == at->steps ? wide : steps / 2 * 2;
}

/* Returns an address in LDS to which the kernel loads bytes that nothing uses. Such a load
 * prefetches a cache line to L2. The address lies in the wave's buffers for scales, which plain
 * steps (steps that load their elements directly to LDS) do not need. A prefetch may be unfinished
 * when the next one is issued, so consecutive prefetches must use different values of `slot`. */
BSMM_DEVICE uint32_t gemm_unused(const gemm_chores *c, const gemm_position *at, gemm_shape s,
                                 uint32_t slot) {
    return (uint32_t)(uintptr_t)c->ring + 2 * gemm_ring_half(s) +
           at->sources[0].wave * (GEMM_WAVE * BSMM_CDNA_TRAY) + slot * GEMM_WAVE * 4;
}

/* Prefetches the cache lines of the step that comes GEMM_SCOUTED steps after the one being loaded,
 * so that L2 has them when they are loaded. If that step is past the end, the function prefetches
 * those of the last step that direct loads can load. */
BSMM_DEVICE void gemm_scout_plain(gemm_chores *c, const gemm_position *at, gemm_shape s) {
    const uint32_t ahead = c->loading + GEMM_SCOUTED, last = c->whole - 1;
    gemm_scout_to(at, (ahead < last ? ahead : last) * gemm_scout_bytes(at, s),
                  gemm_unused(c, at, s, c->half));
}

/* Reads the scales of the thread's row for this step from the ring buffer. */
BSMM_DEVICE void gemm_read_own(gemm_chores *c, gemm_shape s) {
    const BSMM_IN_LDS uint32_t *from =
        (const BSMM_IN_LDS uint32_t *)(c->ring + gemm_slot(s, c->step * gemm_units(s)) +
                                       bsmm_thread() * GEMM_RING_ROW);
#pragma unroll
    for (uint32_t u = 0; u < gemm_units(s); u++)
        c->words[u] = from[u];
}

/* Updates the smallest scale of the thread's row with the scales that gemm_read_own has read. */
BSMM_DEVICE void gemm_lower_own(gemm_chores *c, gemm_shape s) {
#pragma unroll
    for (uint32_t u = 0; u < gemm_units(s); u++)
        gemm_lower(&c->carrier, c->words[u]);
}

/* In a plain step (without bounds checks) of a large tile, a wave does small tasks, called chores,
 * between its matrix instructions, for example a load. Executes chore number `number`. The chores
 * have no branches, because a branch that is taken delays a wave by 32 cycles, and both waves of a
 * SIMD reach it at about the same time. If a step does not load scales, the load runs without
 * active lanes. Each step takes the minimum of its own scales only (gemm_lower), not of all scales
 * that one wide load has brought. */
BSMM_DEVICE void gemm_paired_chore(gemm_chores *c, const gemm_position *at, gemm_shape s,
                                   uint32_t number) {
#if defined(__gfx950__)
    const uint32_t loads = gemm_stage_loads(s), part = number - GEMM_CHORE_PARTS;
    if (number == GEMM_CHORE_PARTS + loads + 2) {
        gemm_read_own(c, s);
    } else if (number == GEMM_CHORE_PARTS + loads + 5) {
        gemm_lower_own(c, s);
    } else if (number == GEMM_CHORE_LOAD) {
        /* If a step has one unit (128 elements of K), the waves load scales only in even steps: one
         * wave of a SIMD does so two steps after the other one. Odd steps therefore load no
         * scales. */
        if (gemm_units(s) == 1 && c->half) return;
        gemm_load_group_unless((c->step ^ gemm_group_delay(at, s)) % gemm_group_steps(s),
                               &c->carrier, s, c->ring, at->sources[0].wave,
                               gemm_group_unit(s, c->step));
    } else if (part < loads) {
        if (!c->loaded) gemm_load_part_near(at, s, c->lds, c->offsets, part);
    } else if (part == loads) {
        gemm_scout_plain(c, at, s);
    }
#else
    (void)c, (void)at, (void)s, (void)number;
#endif
}

/* In a plain step of a small tile, a wave does small tasks (chores) such as loads between its
 * matrix instructions. Executes chore number `number`. A plain step has few instructions and
 * branches, so that the two waves of a SIMD keep the matrix core busy. */
BSMM_DEVICE void gemm_plain_chore(gemm_chores *c, const gemm_position *at, gemm_shape s,
                                  uint32_t number) {
#if defined(__gfx950__)
    const uint32_t part = number - GEMM_CHORE_PARTS;
    const uint32_t unit = gemm_group_unit(s, c->group_step);
    if (number == GEMM_CHORE_STORE) {
        if (__builtin_expect(c->step != c->group_step + 1, 1)) return;
        gemm_lower_group(&c->carrier, s, c->ring, unit);
        c->group_step = gemm_group_step(&c->carrier, s, c->group_step + gemm_group_steps(s));
    } else if (number == GEMM_CHORE_LOAD) {
        if (__builtin_expect(c->step == c->group_step, 0))
            gemm_load_group(&c->carrier, s, c->ring, unit);
    } else if (part < gemm_stage_loads(s)) {
        gemm_load_part_near(at, s, c->lds, c->offsets, part);
    }
#else
    (void)c, (void)at, (void)s, (void)number;
#endif
}

/* Executes task number `number` of any step. A task ("chore") is a load or a store that the wave
 * issues between two matrix instructions. The order of the tasks matters, because loads finish in
 * the order in which they were issued. The prefetch to L2 comes last, so that gemm_scaled_wait need
 * not wait for it. If LDS has room for three stages, gemm_scaled_wait need not wait for the direct
 * loads of the stage either. */
BSMM_DEVICE void gemm_chore(gemm_chores *c, const gemm_position *at, gemm_shape s,
                            uint32_t number) {
    const uint32_t part = number - GEMM_CHORE_PARTS;
    if (number == GEMM_CHORE_STORE) {
        gemm_store_scales(&c->carrier, s, c->ring);
        if (gemm_scouts(s)) gemm_read_own(c, s), gemm_lower_own(c, s);
    } else if (number == GEMM_CHORE_LOAD) {
        gemm_load_scales(&c->carrier, s, c->ring, c->step);
    } else if (part < gemm_stage_loads(s)) {
        if (c->loading < c->whole)
            gemm_load_part(at, s, c->loading, (uint32_t)(uintptr_t)c->stage, part);
    } else if (number < gemm_chore_count(s)) {
        const uint32_t ahead = c->loading + GEMM_SCOUTED;
        /* With one unit in a step, scales take only the first half of the wave's trays. The data of
         * prefetches go to the other half. Otherwise they go to registers. */
        if (gemm_units(s) == 1)
            gemm_scout_to(at, gemm_scout_offset(at, s, ahead),
                          gemm_unused(c, at, s, GEMM_UNIT_BLOCKS + ahead % 2));
        else
            gemm_scout_ahead(at, s, ahead);
    }
}

BSMM_DEVICE void gemm_scaled_chore(gemm_chores *c, const gemm_position *at, gemm_shape s,
                                   uint32_t number, bool plain) {
    if (plain)
        gemm_plain_chore(c, at, s, number);
    else
        gemm_chore(c, at, s, number);
}

/* Computes the LDS addresses and the memory offsets for the loads from memory to LDS that one step
 * of the main loop issues. The function is for steps whose loads need no bounds checks. */
BSMM_DEVICE void gemm_scaled_aim(gemm_chores *c, const gemm_position *at, gemm_shape s) {
    const uint32_t last = c->whole - 1;
    const uint32_t step = gemm_scouts(s) && c->loading > last ? last : c->loading;
#pragma unroll
    for (uint32_t side = 0; side < 2; side++) {
        c->lds[side] = (uint32_t)(uintptr_t)c->stage +
                       at->sources[side].wave * GEMM_WAVE * gemm_load_bytes(s.types[side]);
        c->offsets[side] = step * gemm_row_bytes(s.types[side]);
    }
}

/* Holds the addresses of the stages in LDS: `now` is multiplied, `next` is multiplied after it. */
typedef struct gemm_stage_pair {
    gemm_lds *now, *next;
} gemm_stage_pair;

/* Prepares the addresses of a plain step of a large tile. The empty assembly hides the stage and
 * the number of the pair of steps from the compiler. The compiler therefore computes all addresses
 * of the step after this call, i.e. after the step's first matrix instruction. */
BSMM_DEVICE void gemm_paired_begin(gemm_chores *c, gemm_shape s, gemm_stage_pair *pair) {
    const int32_t bytes = (int32_t)gemm_stage_bytes(s);
    uint32_t number = c->step / 2;
    __asm__ volatile("" : "+s"(pair->now), "+s"(number));
    pair->next = pair->now + (c->half ? -bytes : bytes);
    c->step = number * 2 + c->half, c->loading = c->step + 1;
    c->stage = pair->next;
}

/* Begins row i of the wave's 16 x 16 tiles in a tile's first step: stores the results of the
 * previous tile that this row still holds, and sets the row's sums to 0. The compiler knows these
 * zeros, so that the first matrix instructions take 0 instead of registers that hold 0. */
BSMM_DEVICE void gemm_begin_row(gemm_chores *c, gemm_shape s, uint32_t i, gemm_sums sums) {
#if defined(__gfx950__)
    bsmm_isa_store_if(c->late.any, c->late.target.to, (bsmm_i32x4)sums[i][0],
                      (bsmm_i32x4)sums[i][1]);
    c->late.target.to += c->late.target.step;
#    pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++)
        sums[i][j] = (bsmm_f32x4){0};
#else
    (void)c, (void)s, (void)i, (void)sums;
#endif
}

/* Multiplies row i of the wave's 16 x 16 tiles in a plain step of a large tile. (A plain step loads
 * elements directly to LDS.) Meanwhile, it reads A's operand for row i + 2 from LDS.
 *
 * Both waves of a SIMD begin a step at about the same time. If they began with other work, the
 * matrix core would wait. All other work of the step therefore comes after its first matrix
 * instruction. Row 0 also reads B's last operand from LDS. The previous step could not do so,
 * because its last instruction still needs the old value of the same register. */
BSMM_DEVICE void gemm_paired_row(gemm_scaled *g, const gemm_position *at, gemm_shape s,
                                 gemm_stage_pair *pair, uint32_t i, gemm_chores *chores,
                                 gemm_sums sums) {
    const uint32_t last = s.col_tiles - 1;
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++) {
        sums[i][j] = gemm_scaled_tile(s, g->rows[i], g->cols[j], &g->scales, i, j, sums[i][j]);
        bsmm_isa_stay(sums[i][j]);
        if (i == 0 && j == 0) gemm_paired_begin(chores, s, pair);
        __builtin_amdgcn_sched_barrier(0);
        if (i == 0 && j == 0) g->cols[last] = gemm_read_row(at, s, pair->now, 1, last);
        if (j == (i == 0 ? 2 : 0)) g->rows[i + 2] = gemm_read_row(at, s, pair->now, 0, i + 2);
        if (i == 0 && j == 2 && !chores->loaded) gemm_scaled_aim(chores, at, s);
        gemm_paired_chore(chores, at, s, i * s.col_tiles + j);
        __builtin_amdgcn_sched_barrier(0);
    }
}

/* Multiplies row i of the wave's 16 x 16 tiles, and reads A's operand for row i + 2 from LDS. */
BSMM_DEVICE void gemm_scaled_row(gemm_scaled *g, const gemm_position *at, gemm_shape s,
                                 const gemm_lds *stage, uint32_t i, gemm_chores *chores, bool plain,
                                 gemm_sums sums) {
    g->rows[i + 2] = gemm_read_row(at, s, stage, 0, i + 2);
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++) {
        sums[i][j] = gemm_scaled_tile(s, g->rows[i], g->cols[j], &g->scales, i, j, sums[i][j]);
        bsmm_isa_stay(sums[i][j]);
        gemm_scaled_chore(chores, at, s, i * s.col_tiles + j, plain);
        __builtin_amdgcn_sched_barrier(0);
    }
}

#endif
