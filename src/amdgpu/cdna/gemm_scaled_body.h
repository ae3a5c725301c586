/* Block-scaled products on gfx950: D = A B^T, both of e4m3, e5m2, e2m3, e3m2 or e2m1 with an e8m0
 * scale for 32 of K, as they are stored, scales in any layout.
 *
 *   tile      waves_down * row_tiles * 16 rows, waves_across * col_tiles * 16 columns, stages of
 * 128 of K LDS       two stages: A's rows, then B's (gemm_shape.h); in the end a strip of 16 rows
 * for each wave registers sums; a stage's fragments of B and two of A; the scales of this stage and
 * the next
 *
 *   time      | load 0 | load 1          | load 2          | ...
 *             |        | multiply 0      | multiply 1      |
 *                      barrier           barrier
 *
 * A barrier waits for a wave's own loads first: behind it a stage is whole, and nobody reads the
 * other any more.
 *
 * Bound: products are exact; an instruction adds 128 of them and a sum, each cut off 23 bits below
 * the largest at worst: 2.1 * (K + 128) * 2^-24 of the sum of magnitudes. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_SCALED_BODY_H
#define BSMM_AMDGPU_CDNA_GEMM_SCALED_BODY_H

#include "amdgpu/cdna/gemm_scaled.h"
#include "amdgpu/cdna/gemm_schedule.h"

extern BSMM_IN_LDS uint8_t gemm_stages[];

BSMM_DEVICE void gemm_scaled_run(const bsmm_cdna_gemm *p, gemm_shape s) {
    const uint32_t number = gemm_number(bsmm_group_x(), p->row_tiles * p->col_tiles);
    const gemm_tile tile = gemm_tile_of(number, p->row_tiles, p->col_tiles);
    const uint32_t rows[2] = {tile.row * gemm_rows(s, 0), tile.col * gemm_rows(s, 1)};
    const uint32_t down = gemm_wave() / s.waves_across * s.row_tiles * BSMM_CDNA_EDGE;
    const uint32_t across = gemm_wave() % s.waves_across * s.col_tiles * BSMM_CDNA_EDGE;
    const uint32_t first[2] = {rows[0] + down, rows[1] + across};
    const uint32_t offsets[2] = {down * gemm_row_bytes(s.types[0]),
                                 gemm_side_bytes(s, 0) + across * gemm_row_bytes(s.types[1])};
    const gemm_source sources[2] = {gemm_source_of(p, s, 0, rows[0]),
                                    gemm_source_of(p, s, 1, rows[1])};
    const gemm_reader readers[2] = {gemm_reader_of(s.types[0]), gemm_reader_of(s.types[1])};
    const uint32_t steps = (p->k + BSMM_CDNA_K - 1) / BSMM_CDNA_K;
    gemm_lds *lds = (gemm_lds *)gemm_stages;
    gemm_scaled scaled, next;
    gemm_sums sums = {{{0}}};
    gemm_scaled_begin(&next, p, s, first);
    if (steps) {
        gemm_load(&sources[0], s, 0, 0, lds);
        gemm_load(&sources[1], s, 1, 0, lds + gemm_side_bytes(s, 0));
        gemm_scaled_load(&next, p, s, 0);
    }
    for (uint32_t step = 0; step < steps; step++) {
        gemm_lds *now = lds + step % 2 * gemm_stage_bytes(s);
        gemm_lds *then = lds + (step + 1) % 2 * gemm_stage_bytes(s);
        bsmm_isa_wait_barrier();
        scaled = next;
        if (step + 1 < steps) {
            gemm_load(&sources[0], s, 0, step + 1, then);
            gemm_load(&sources[1], s, 1, step + 1, then + gemm_side_bytes(s, 0));
            gemm_scaled_load(&next, p, s, step + 1);
        }
        gemm_scaled_multiply(&scaled, s, now + offsets[0], now + offsets[1], readers, sums);
        next.low[0] = scaled.low[0], next.low[1] = scaled.low[1];
    }
    bsmm_isa_wait_barrier();
    BSMM_IN_LDS float *strip =
        (BSMM_IN_LDS float *)lds + gemm_wave() * BSMM_CDNA_EDGE * gemm_strip_pitch(s);
    gemm_finish(s, sums, strip, first[0], first[1], gemm_scaled_may_vanish(&next));
}

#endif
