/* Locates the tile of a workgroup and of its waves in D, and manages a ring buffer of two stages in
 * LDS. A stage holds 128 elements of K of the rows of A, then of the rows of B.
 *
 *   time      | load 0 | load 1          | load 2          | ...
 *             |        | multiply 0      | multiply 1      |
 *                      barrier           barrier
 *
 * Before each barrier a wave waits for its own loads. After the barrier the stage that was loaded
 * is complete, and no wave reads the stage that was multiplied before it. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_STAGE_H
#define BSMM_AMDGPU_CDNA_GEMM_STAGE_H

#include "amdgpu/cdna/gemm_finish.h"
#include "amdgpu/cdna/gemm_fragment.h"
#include "amdgpu/cdna/gemm_load.h"
#include "amdgpu/cdna/gemm_schedule.h"

extern BSMM_IN_LDS uint8_t gemm_stages[];

typedef struct gemm_place {
    uint32_t first[2];   /* the first row of A and of B in the wave's tile */
    uint32_t offsets[2]; /* byte offsets of these rows in a stage */
    uint32_t steps;      /* number of stages along K */
    gemm_source sources[2];
    gemm_reader readers[2];
} gemm_place;

BSMM_DEVICE gemm_place gemm_place_of(const bsmm_cdna_gemm *p, gemm_shape s) {
    const uint32_t number = gemm_number(bsmm_group_x(), p->row_tiles * p->col_tiles);
    const gemm_tile tile = gemm_tile_of(number, p->row_tiles, p->col_tiles);
    const uint32_t rows[2] = {tile.row * gemm_rows(s, 0), tile.col * gemm_rows(s, 1)};
    const uint32_t down = gemm_wave() / s.waves_across * s.row_tiles * BSMM_CDNA_EDGE;
    const uint32_t across = gemm_wave() % s.waves_across * s.col_tiles * BSMM_CDNA_EDGE;
    return (gemm_place){
        .first = {rows[0] + down, rows[1] + across},
        .offsets = {down * gemm_row_bytes(s.types[0]),
                    gemm_side_bytes(s, 0) + across * gemm_row_bytes(s.types[1])},
        .steps = (p->k + BSMM_CDNA_K - 1) / BSMM_CDNA_K,
        .sources = {gemm_source_of(p, s, 0, rows[0]), gemm_source_of(p, s, 1, rows[1])},
        .readers = {gemm_reader_of(s.types[0]), gemm_reader_of(s.types[1])},
    };
}

BSMM_DEVICE gemm_lds *gemm_stage(gemm_shape s, uint32_t step) {
    return (gemm_lds *)gemm_stages + step % 2 * gemm_stage_bytes(s);
}

BSMM_DEVICE void gemm_load_stage(const gemm_place *at, gemm_shape s, uint32_t step) {
    gemm_load(&at->sources[0], s, 0, step, gemm_stage(s, step));
    gemm_load(&at->sources[1], s, 1, step, gemm_stage(s, step) + gemm_side_bytes(s, 0));
}

/* Stores the sums after all stages have been multiplied. The strips of sums overwrite the stages in
 * LDS. */
BSMM_DEVICE void gemm_end(const gemm_place *at, gemm_shape s, const gemm_sums sums,
                          bool may_vanish) {
    BSMM_IN_LDS float *strips = (BSMM_IN_LDS float *)gemm_stages;
    bsmm_isa_wait_barrier();
    gemm_finish(s, sums, strips + gemm_wave() * BSMM_CDNA_EDGE * gemm_strip_pitch(s), at->first[0],
                at->first[1], may_vanish);
}

#endif
