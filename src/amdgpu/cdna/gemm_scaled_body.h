/* These kernels compute block-scaled GEMMs on gfx950: D = A B^T. Each operand is e4m3, e5m2, e2m3,
 * e3m2 or e2m1 with an e8m0 scale for 32 elements of K. The instruction multiplies elements in
 * their stored format. The scales may have any layout.
 *
 * The tile of a workgroup has waves_down * row_tiles * 16 rows and waves_across * col_tiles * 16
 * columns. LDS holds two or three stages of 128 or 256 elements of K (gemm_k, gemm_stage_count),
 * and the scales of 1024 elements of K (gemm_scales.h). After the main loop, the last stage holds
 * 16 rows of sums for each wave. In large tiles, the waves' buffers for scales in LDS (trays) hold
 * 8 rows of sums instead, because the stages then hold elements of the next tile. The registers of
 * a wave hold the sums, B's operands for a step, up to four operands of A, and the scales of a
 * step.
 *
 * A step of the main loop looks as follows, with eight rows of tiles and two stages. "rows" are
 * rows of 16 x 16 tiles, and "A 2" is A's operand for row 2:
 *
 *     matrix core | rows 6, 7 of step t - 1 | rows 0 1 2 3 4 5 of step t |
 *     LDS reads   | A 0, 1; all of B        | A  2 3 4 5 6 7             |
 *     memory      |                         | stage t + 1 to LDS         |
 *                 ^ barrier                                              ^ barrier
 *
 * After the barrier before step t, stage t is complete in LDS, and no wave reads stage t - 1 any
 * more. A wave waits for its own loads before the barrier. With three stages, the wave need not
 * wait for the loads that it has issued in this step.
 *
 * Error bound: 2.1 * (K + 128) * 2^-24 of the sum of the magnitudes of all products. Each product
 * of two elements is exact. An instruction adds 128 products to a sum and may truncate each term 23
 * bits below the largest. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_SCALED_BODY_H
#define BSMM_AMDGPU_CDNA_GEMM_SCALED_BODY_H

#include "amdgpu/cdna/gemm_next.h"

/* Waits until this wave's loads that the next step needs have finished, and then until all waves
 * have reached this point. Loads finish in the order of issue. If the wave issued a prefetch to L2
 * last, this prefetch may be unfinished. If LDS has three stages, the loads to LDS of this step may
 * be unfinished too, because they are for the step after the next one. */
BSMM_DEVICE void gemm_scaled_wait(gemm_shape s, bool direct) {
    if (gemm_stage_count(s) == 3 && direct)
        bsmm_isa_wait_loads(gemm_stage_loads(s) + gemm_scouts(s));
    else
        bsmm_isa_wait_loads(gemm_scouts(s));
    bsmm_isa_barrier();
}

/* Waits like gemm_scaled_wait, at the end of the first step of a tile whose second step was loaded
 * before it (gemm_loads_both). After the loads for the second step, the wave has issued prefetches
 * (gemm_scout_first), stores of the previous tile (gemm_begin_row), and in the first step a load of
 * scales and a prefetch. All of them may be unfinished. */
BSMM_DEVICE void gemm_scaled_wait_first(gemm_shape s) {
    bsmm_isa_wait_loads(gemm_scouted_first(s) + s.row_tiles * s.col_tiles / 2 + 2);
    bsmm_isa_barrier();
}

/* Loads the elements of a workgroup's very first step before the workgroup computes the addresses
 * of scales, if the tile is large (gemm_loads_both) and direct loads can load this step. HBM then
 * works while the waves compute. */
BSMM_DEVICE void gemm_scaled_request_early(const gemm_position *at, gemm_shape s) {
    const uint32_t lds = (uint32_t)(uintptr_t)gemm_stage(s, 0);
    if (!gemm_loads_both(s) || !at->sources[0].whole) return;
    gemm_load_direct(&at->sources[0], s, 0, 0, lds);
    gemm_load_direct(&at->sources[1], s, 1, 0, lds + gemm_side_bytes(s, 0));
}

/* Issues the loads with which a tile begins. A stage is a buffer in LDS for the elements of one
 * step. The function loads elements for all stages but one, or for both stages of a large tile
 * (gemm_loads_both), except for those that gemm_scaled_request_early has loaded. It also loads the
 * tile's first scales if one wide load suffices. Before the call, all waves must have finished
 * reading these stages, and each wave must have finished reading its tray, i.e. its buffer for
 * scales in LDS. */
BSMM_DEVICE void gemm_scaled_request(const gemm_position *at, const gemm_carrier *carrier,
                                     gemm_shape s) {
    const uint32_t stages = gemm_stage_count(s);
    for (uint32_t step = gemm_loads_both(s) && at->sources[0].whole;
         step < stages - !gemm_loads_both(s) && step < at->steps; step++)
        gemm_load_stage(at, s, step, gemm_stage(s, step));
    gemm_request_scales(carrier, s, gemm_stage(s, stages));
}

/* Runs step number `step` of the main loop. `plain` is true if the step loads elements directly to
 * LDS and needs no bounds checks. `plain` is a constant in each call. */
BSMM_DEVICE void gemm_scaled_step(gemm_scaled *g, const gemm_position *at, gemm_chores *chores,
                                  gemm_shape s, gemm_stage_pair *pair, uint32_t step, bool plain,
                                  gemm_sums sums) {
    const uint32_t stages = gemm_stage_count(s), early = s.row_tiles - GEMM_LATE_ROWS;
    chores->step = step, chores->loading = step + stages - 1;
    const bool paired = plain && gemm_scouts(s), first = paired && chores->loaded;
    if (plain && !paired) gemm_scaled_aim(chores, at, s);
    if (!plain && chores->loading >= chores->whole && chores->loading < at->steps)
        gemm_load_stage(at, s, chores->loading, chores->stage);
#pragma unroll
    for (uint32_t i = 0; i < early; i++) {
        if (first) gemm_begin_row(chores, s, i, sums);
        if (paired)
            gemm_paired_row(g, at, s, pair, i, chores, sums);
        else
            gemm_scaled_row(g, at, s, pair->now, i, chores, plain, sums);
    }
#pragma unroll
    for (uint32_t i = early; first && i < s.row_tiles; i++)
        gemm_begin_row(chores, s, i, sums);
#pragma unroll
    for (uint32_t n = early * s.col_tiles; !paired && n < gemm_chore_count(s); n++)
        gemm_scaled_chore(chores, at, s, n, plain);
    if (first)
        gemm_scaled_wait_first(s);
    else
        gemm_scaled_wait(s, plain || chores->loading < chores->whole);
    /* At the end of each step, the wave reads the first operands of the next step from LDS. After
     * the tile's last step there is no next one. The wave then reads operands of the last step once
     * more, and nothing uses them. The code thus needs no branch. */
    const bool last = !plain && step + 1 == at->steps;
    gemm_scaled_late_rows(g, at, s, last ? pair->now : pair->next, chores->ring,
                          chores->step + !last, s.col_tiles - paired, sums);
    gemm_lds *free = pair->now;
    pair->now = pair->next, pair->next = stages == 3 ? chores->stage : free;
    chores->stage = free;
}

/* Runs two steps of the main loop of a large tile, `step` and step + 1. Both are plain, i.e. they
 * load elements directly to LDS without bounds checks. `step` is even. `first` is true if these are
 * the tile's first steps, and it is a constant in each call. */
BSMM_DEVICE void gemm_scaled_pair(gemm_scaled *g, const gemm_position *at, gemm_chores *chores,
                                  gemm_shape s, gemm_stage_pair *pair, uint32_t step, bool first,
                                  gemm_sums sums) {
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        *pair = (gemm_stage_pair){gemm_stage(s, half), gemm_stage(s, 1 - half)};
        chores->half = half, chores->loaded = first && !half;
        gemm_scaled_step(g, at, chores, s, pair, step + half, true, sums);
    }
}

/* Runs the plain steps of a large tile, i.e. the steps whose loads have no bounds checks, and
 * returns their number. The steps run in pairs. The loop body has separate code for the first and
 * the second step of a pair. The stage in LDS that a step uses, and the part of a wide load of
 * scales that it issues, are therefore constants in this code. */
BSMM_DEVICE uint32_t gemm_scaled_pairs(gemm_scaled *g, const gemm_position *at, gemm_chores *chores,
                                       gemm_shape s, gemm_stage_pair *pair, gemm_sums sums) {
    /* Both branches read the first operands. If the code read them ahead of the branch, the
     * compiler would spill registers. */
    if (!chores->plain) {
        if (gemm_loads_both(s)) gemm_clear_sums(s, sums), gemm_scaled_begin(g, at, s, pair->now);
        return 0;
    }
    if (gemm_loads_both(s)) {
        gemm_scaled_begin(g, at, s, pair->now);
        chores->late.any = (uint32_t)__builtin_amdgcn_readfirstlane((int32_t)chores->late.any);
        gemm_scaled_pair(g, at, chores, s, pair, 0, true, sums);
    }
#pragma clang loop unroll(disable)
    for (uint32_t step = gemm_loads_both(s) ? 2 : 0; step < chores->plain; step += 2)
        gemm_scaled_pair(g, at, chores, s, pair, step, false, sums);
    *pair = (gemm_stage_pair){gemm_stage(s, 0), gemm_stage(s, 1)};
    chores->stage = pair->next;
    /* The empty assembly hides that this is the stage of the tile's first operands. Otherwise the
     * compiler would keep their address during the main loop, and spill it. */
    gemm_lds *stage = pair->now;
    __asm__ volatile("" : "+s"(stage));
    g->cols[s.col_tiles - 1] = gemm_read_row(at, s, stage, 1, s.col_tiles - 1);
    return chores->plain;
}

/* A large tile begins with its plain steps, whose loads have no bounds checks (gemm_scaled_pairs).
 * This function prepares the scales for the steps after them, the first of which is `step`. One
 * wide load brings the scales of a group of four units (128 elements of K each). From `step` on,
 * every wave issues this load in the first step of a group. In plain steps, some waves issue it a
 * few steps later (gemm_group_delay). If the first step of the current group was plain, and this
 * wave has not issued the load yet, the function issues it. Then it waits for all loads. */
BSMM_DEVICE void gemm_scaled_leave_pairs(gemm_chores *chores, const gemm_position *at, gemm_shape s,
                                         uint32_t step) {
    const uint32_t gone = step % gemm_group_steps(s), unit = gemm_group_unit(s, step);
    if (gone && gone <= gemm_group_delay(at, s) && unit < chores->carrier.wide)
        gemm_load_group(&chores->carrier, s, chores->ring, unit);
    bsmm_isa_wait_loads(0);
    if (step < at->steps) gemm_carrier_refresh(&chores->carrier, s);
}

/* Prepares the scales for the steps after the plain steps of a small tile (gemm_chores). Plain
 * steps load elements directly to LDS without bounds checks. The first step after them is `step`.
 * From `step` on, all waves issue a wide load of scales in the first step of each group of four
 * units (128 elements of K each). In plain steps, some waves delay this load. If the first step of
 * the current group was plain and this wave has not issued the load yet, the function issues it.
 * The function also waits for loads and for prefetches, which may still write to buffers that the
 * following steps use for scales. */
BSMM_DEVICE void gemm_scaled_leave_plain(gemm_chores *chores, gemm_shape s, uint32_t step) {
    gemm_carrier *c = &chores->carrier;
    const uint32_t unit = gemm_group_unit(s, chores->group_step);
    const bool begun = unit - GEMM_GROUP < step * gemm_units(s);
    if (begun && chores->group_step >= step) gemm_load_group(c, s, chores->ring, unit);
    if (begun) bsmm_isa_wait_loads(0);
    if (begun) c->arrived = GEMM_FOUR_UNITS, c->unit = unit;
}

/* Multiplies all steps of a tile. The caller has started the loads of the first steps; if `arrived`
 * is true, they have finished. The main loop begins with plain steps, which load elements directly
 * to LDS without bounds checks (gemm_chores). The remaining steps need other code for their loads.
 * Before them, gemm_scaled_leave_pairs (large tiles) or gemm_scaled_leave_plain (small tiles)
 * prepares their scales. */
BSMM_DEVICE void gemm_scaled_multiply(const gemm_position *at, gemm_chores *chores, gemm_shape s,
                                      bool arrived, gemm_sums sums) {
    gemm_stage_pair pair = {gemm_stage(s, 0), gemm_stage(s, 1)};
    gemm_scaled g;
    gemm_carrier *c = &chores->carrier;
    if (!arrived) bsmm_isa_wait_loads(0);
    gemm_begin_scales(c, s, chores->ring);
    bsmm_isa_barrier();
    g.reader = gemm_scaled_reader(at, s);
    gemm_scaled_scales(s, chores->ring, g.reader, 0, &g.scales);
    if (!gemm_loads_both(s)) gemm_scaled_begin(&g, at, s, pair.now);
    uint32_t step = 0;
    if (gemm_scouts(s)) {
        step = gemm_scaled_pairs(&g, at, chores, s, &pair, sums);
        gemm_scaled_leave_pairs(chores, at, s, step);
    } else {
        chores->group_step = gemm_group_step(c, s, gemm_group_delay(at, s));
        for (; step < chores->plain; step++)
            gemm_scaled_step(&g, at, chores, s, &pair, step, true, sums);
        gemm_scaled_leave_plain(chores, s, step);
    }
    for (; step < at->steps; step++)
        gemm_scaled_step(&g, at, chores, s, &pair, step, false, sums);
    bsmm_isa_wait_barrier();
}

/* These two functions check the constants of a tile at compile time. The code calls them only if a
 * constant has a value that gemm_scaled_request_next does not support. If all values are supported,
 * the compiler removes the calls, because they are never executed. If a call remains, the compiler
 * reports the text of the attribute as an error. */
void gemm_needs_two_stages(void)
    __attribute__((error("workgroups that compute several tiles need two stages in LDS")));
void gemm_needs_larger_trays(void)
    __attribute__((error("strips or prefetches to L2 do not fit the trays of a wave")));

/* Issues the first loads of the tile that this workgroup computes next: the loads that
 * gemm_scaled_request issues for a first tile, and prefetches of the following steps to L2. If the
 * workgroup issued these loads after it stores results, the loads would wait for the stores. The
 * elements of the steps before `begin` are loaded already. `wanted` is the number of steps that the
 * wave prefetches of A and of B (gemm_scout_first). */
BSMM_DEVICE void gemm_scaled_request_next(const gemm_position *at, gemm_chores *c, gemm_shape s,
                                          uint32_t begin, const uint32_t wanted[2]) {
    const uint32_t stages = gemm_stage_count(s), loaded = stages - !gemm_loads_both(s);
    const uint32_t tray = GEMM_WAVE * BSMM_CDNA_TRAY;
    if (stages != 2) gemm_needs_two_stages();
    if (gemm_strip_bytes(s) > tray || (2 + gemm_scouted_first(s)) * GEMM_WAVE * 4 > tray)
        gemm_needs_larger_trays();
    if (!c->whole) return;
#pragma unroll
    for (uint32_t step = 0; step < loaded; step++) {
        c->loading = step, c->stage = gemm_stage(s, step);
        gemm_scaled_aim(c, at, s);
#if defined(__gfx950__)
#    pragma unroll
        for (uint32_t i = 0; step >= begin && i < gemm_stage_loads(s); i++)
            gemm_load_part_near(at, s, c->lds, c->offsets, i);
#endif
        if (step == 0) gemm_request_scales(&c->carrier, s, c->ring);
    }
    c->stage = gemm_stage(s, stages - 1);
    /* gemm_store_rows later waits until only the n newest memory operations of the wave are
     * unfinished, and assumes that prefetches are among these n. If there are no prefetches, that
     * wait could end before the loads above have finished, so this function waits for the loads
     * here. */
    if (c->plain)
        gemm_scout_first(at, s, loaded, gemm_scouted_first(s), wanted, gemm_unused(c, at, s, 2));
    else
        bsmm_isa_wait_loads(0);
}

/* Returns the chores of a workgroup's first tile, except for the field `carrier`. */
BSMM_DEVICE gemm_chores gemm_chores_of(const bsmm_cdna_gemm *p, const gemm_position *at,
                                       gemm_shape s) {
    gemm_lds *ring = gemm_stage(s, gemm_stage_count(s));
    return (gemm_chores){
        .ring = ring,
        .stage = gemm_stage(s, gemm_stage_count(s) - 1),
        .whole = at->sources[0].whole,
        .group = bsmm_group_x(),
        .plain = gemm_plain_steps(at, s, p->sides[0].scales_in_row & p->sides[1].scales_in_row)};
}

/* Computes the tiles of a workgroup, one after another. A workgroup issues the first loads of the
 * next tile before it stores the results of a tile, so that the loads overlap with the stores. Only
 * workgroups with large tiles compute several tiles. */
BSMM_DEVICE void gemm_scaled_run(const bsmm_cdna_gemm *p, gemm_shape s) {
    gemm_position at = gemm_position_of(p, s, bsmm_group_x());
    gemm_chores chores = gemm_chores_of(p, &at, s);
    gemm_scaled_request_early(&at, s);
    chores.carrier = gemm_carrier_of(p, s, at.tile);
    gemm_lds *strips = gemm_scouts(s) ? chores.ring + 2 * gemm_ring_half(s)
                                      : gemm_stage(s, gemm_stage_count(s) - 1);
    bool arrived = false;
    gemm_sums sums;
    if (gemm_loads_both(s) && chores.plain) {
        const uint32_t wanted[2] = {1, 1};
        gemm_scaled_request_next(&at, &chores, s, 1, wanted);
        bsmm_isa_wait_loads(gemm_stage_loads(s) + gemm_scouted_first(s));
        arrived = true;
    }
    do {
        if (!gemm_loads_both(s)) gemm_clear_sums(s, sums);
        if (!arrived) gemm_scaled_request(&at, &chores.carrier, s);
        gemm_scaled_multiply(&at, &chores, s, arrived, sums);
        p = gemm_params_here();
        const uint32_t first[2] = {at.first[0], at.first[1]}, low = chores.carrier.low;
        if (!gemm_scouts(s)) {
            gemm_store_sums(s, sums, first, strips, gemm_trust_of(low, s, chores.ring), false,
                            NULL);
            return;
        }
        const gemm_next next = gemm_next_of(p, s);
        chores.group += next.groups;
        chores.more = gemm_next_exists(&next, chores.group);
        if (chores.more) {
            const uint32_t row = at.tile[0], most = gemm_scouted_first(s);
            gemm_next_tile(&next, &at, &chores, s);
            /* If the rows of A are the same as before, the Infinity Cache holds them. It delivers
             * them in time even while the stores of results occupy HBM. */
            const uint32_t wanted[2] = {at.tile[0] == row ? 2 : most, most};
            gemm_scaled_request_next(&at, &chores, s, 0, wanted);
        }
        const gemm_kept kept = gemm_keep(&at, &chores);
        const bool keeps = gemm_loads_both(s) && chores.more && chores.plain;
        const gemm_trust trust = gemm_trust_of(low, s, chores.ring);
        chores.late = (gemm_late){.any = 0};
        gemm_store_sums(s, sums, first, strips, trust, keeps, &chores.late);
        gemm_take_kept(&at, &chores, kept);
        arrived = chores.whole;
    } while (chores.more);
}

#endif
