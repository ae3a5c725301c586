/* Finds the tiles of D that a workgroup and its waves compute, and manages a ring buffer of stages
 * in LDS. A stage holds 128 or 256 elements of K (gemm_k) of the tile's rows of A, then of its rows
 * of B. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_STAGE_H
#define BSMM_AMDGPU_CDNA_GEMM_STAGE_H

#include "amdgpu/cdna/gemm_finish.h"
#include "amdgpu/cdna/gemm_fragment.h"
#include "amdgpu/cdna/gemm_load.h"
#include "amdgpu/cdna/gemm_schedule.h"

extern BSMM_IN_LDS uint8_t gemm_stages[];

/* Describes a lane's prefetch from memory to L2 for a later stage. A prefetch is a load whose data
 * nothing uses. The workgroups that run on an XCD (die) at the same time need the same rows, and
 * each of these workgroups prefetches a part of the rows. The four workgroups of a row of tiles
 * prefetch a fourth of A's rows each. The eight workgroups of a column of tiles (gemm_schedule.h)
 * prefetch an eighth of B's rows each. */
typedef struct gemm_scout {
    uint32_t lane_offset;
} gemm_scout;

BSMM_DEVICE gemm_scout gemm_scout_of(const gemm_source sources[2], gemm_tile tile) {
    const uint32_t side = gemm_wave() / 4, parts = side ? BSMM_CDNA_BAND_ROWS : 4;
    const uint32_t part = (side ? tile.row : tile.col) % parts, rows = 256 / parts / 4;
    const uint32_t row = (part * 4 + gemm_wave() % 4) * rows + gemm_thread_of_tile() % rows;
    return (gemm_scout){row * (side ? sources[1].pitch : sources[0].pitch)};
}

typedef struct gemm_position {
    uint32_t tile[2];  /* `tile` holds the first row of A and of B in the workgroup's tile. */
    uint32_t first[2]; /* `first` holds the first row of A and of B that the wave multiplies. */
    /* In a stage of operands in LDS, offsets[0] is the byte offset of the wave's first row of A,
     * and offsets[1] is that of its first row of B. */
    uint32_t offsets[2];
    uint32_t steps; /* `steps` is the number of stages along K of the workgroup's part of K. */
    gemm_source sources[2];
    gemm_reader readers[2];
    gemm_scout scout;
} gemm_position;

/* Loads the parameters that gemm_position_of needs. Because of the empty assembly, the wave issues
 * all of these loads before it waits for one of them. */
BSMM_DEVICE void gemm_fetch_params(const bsmm_cdna_gemm *p) {
    const bsmm_cdna_side *a = &p->sides[0], *b = &p->sides[1];
    __asm__ volatile(""
                     :
                     : "s"(a->o.data), "s"(a->pitch), "s"(a->rows), "s"(a->direct), "s"(b->o.data),
                       "s"(b->pitch), "s"(b->rows), "s"(b->direct), "s"(p->tiles_reciprocal),
                       "s"(p->k), "s"(p->row_tiles), "s"(p->col_tiles), "s"(p->parts),
                       "s"(p->part_k));
}

BSMM_DEVICE gemm_position gemm_position_of(const bsmm_cdna_gemm *p, gemm_shape s, uint32_t group) {
    gemm_fetch_params(p);
    const uint32_t part = gemm_part_here(p), tiles = p->row_tiles * p->col_tiles;
    const uint32_t number = gemm_number(group, tiles * p->parts) - part * tiles;
    const gemm_tile tile = gemm_tile_of(number, p->row_tiles, p->col_tiles);
    const uint32_t rows[2] = {tile.row * gemm_rows(s, 0), tile.col * gemm_rows(s, 1)};
    const uint32_t down = gemm_wave() / s.waves_across * s.row_tiles * BSMM_CDNA_EDGE;
    const uint32_t across = gemm_wave() % s.waves_across * s.col_tiles * BSMM_CDNA_EDGE;
    gemm_source sources[2] = {gemm_source_of(p, s, 0, rows[0]), gemm_source_of(p, s, 1, rows[1])};
    const uint32_t whole =
        sources[0].whole < sources[1].whole ? sources[0].whole : sources[1].whole;
    sources[0].whole = sources[1].whole = whole;
    sources[1].wave = sources[0].wave;
    const gemm_reader reader = gemm_reader_of(s.types[0]);
    /* gemm_reader_of returns the same for A and B if their rows have the same number of bytes in
     * LDS. The compiler does not know this, so `same` lets it reuse the result for A. */
    const bool same = gemm_scouts(s) && gemm_row_bytes(s.types[0]) == gemm_row_bytes(s.types[1]);
    return (gemm_position){
        .tile = {rows[0], rows[1]},
        .first = {rows[0] + down, rows[1] + across},
        .offsets = {down * gemm_row_bytes(s.types[0]),
                    gemm_side_bytes(s, 0) + across * gemm_row_bytes(s.types[1])},
        .steps = (gemm_part_length(p) + gemm_k(s.types[0]) - 1) / gemm_k(s.types[0]),
        .sources = {sources[0], sources[1]},
        .scout = gemm_scout_of(sources, tile),
        .readers = {reader, same ? reader : gemm_reader_of(s.types[1])},
    };
}

/* Returns the distance, in scales, from the scale of block 0 of a row to the scale of block `block`
 * along K of the same row. */
BSMM_DEVICE uint32_t gemm_scale_offset(const bsmm_cdna_side *o, uint32_t block) {
    return o->scale_at[block % BSMM_CDNA_SCALES] + block / BSMM_CDNA_SCALES * o->scale_period;
}

BSMM_DEVICE gemm_lds *gemm_stage(gemm_shape s, uint32_t number) {
    return (gemm_lds *)gemm_stages + number * gemm_stage_bytes(s);
}

/* Loads the elements of A and B for step `step` of the main loop to a stage in LDS. */
BSMM_DEVICE void gemm_load_stage(const gemm_position *at, gemm_shape s, uint32_t step,
                                 gemm_lds *stage) {
    gemm_load(&at->sources[0], s, 0, step, stage);
    gemm_load(&at->sources[1], s, 1, step, stage + gemm_side_bytes(s, 0));
}

/* Issues direct load number `number` of a stage to LDS. `stage` is the stage's address. */
BSMM_DEVICE void gemm_load_part(const gemm_position *at, gemm_shape s, uint32_t step,
                                uint32_t stage, uint32_t number) {
    const uint32_t side = number >= gemm_rounds(s, 0);
    gemm_load_round(&at->sources[side], s, side, step, number - (side ? gemm_rounds(s, 0) : 0),
                    stage + (side ? gemm_side_bytes(s, 0) : 0));
}

#if defined(__gfx950__)
/* Issues direct load number `number` of a stage to LDS. The loads of A have the lowest numbers, and
 * those of B follow. The function does the same as gemm_load_part, but is faster, because the
 * caller has computed addresses in advance. `lds` and `offsets` have one entry for A and one for B.
 * offsets[i] is the byte offset at which the stage begins in a row of the operand. lds[i] is the
 * LDS address for the wave's first load of the operand. For B, this address does not yet include
 * the size of A's part of the stage, which the function adds. */
BSMM_DEVICE void gemm_load_part_near(const gemm_position *at, gemm_shape s, const uint32_t lds[2],
                                     const uint32_t offsets[2], uint32_t number) {
    const uint32_t side = number >= gemm_rounds(s, 0);
    const gemm_source *from = &at->sources[side];
    const uint32_t round = number - (side ? gemm_rounds(s, 0) : 0);
    const uint32_t type = s.types[side], all = gemm_threads(s) * gemm_load_bytes(type);
    bsmm_isa_load_to_lds_near(from->buffer, lds[side],
                              round * all + (side ? gemm_side_bytes(s, 0) : 0), from->lane_offset,
                              offsets[side], round * (all / gemm_row_bytes(type)) * from->pitch,
                              gemm_load_bytes(type));
}
#endif

/* The first four waves prefetch A, and the other waves prefetch B. Returns the number of bytes that
 * a step reads of each row of the operand that this wave prefetches. */
BSMM_DEVICE uint32_t gemm_scout_bytes(const gemm_position *at, gemm_shape s) {
    const uint32_t bytes[2] = {gemm_row_bytes(s.types[0]), gemm_row_bytes(s.types[1])};
    return bytes[0] == bytes[1] || at->sources[0].wave / 4 == 0 ? bytes[0] : bytes[1];
}

/* Returns the offset in bytes, from the start of a row, at which the wave prefetches data for step
 * `step` of the main loop. It is the offset of the first byte that the step reads. If direct loads
 * to LDS cannot load this step, the function returns the offset for the last step that they can
 * load. */
BSMM_DEVICE uint32_t gemm_scout_offset(const gemm_position *at, gemm_shape s, uint32_t step) {
    const uint32_t whole = at->sources[0].whole, last = whole ? whole - 1 : 0;
    int32_t offset = __builtin_amdgcn_readfirstlane(
        (int32_t)((step < last ? step : last) * gemm_scout_bytes(at, s)));
    /* A load may use a scalar register only five wait states after v_readfirstlane_b32 has written
     * it. The compiler inserts such wait states, but not ahead of inline assembly, which loads
     * here. s_nop 4 waits for five wait states. */
    __asm__ volatile("s_nop 4" : "+s"(offset));
    return (uint32_t)offset;
}

/* Returns the buffer descriptor of the operand that this wave prefetches. The first four waves
 * prefetch A, and the other waves prefetch B. The selected descriptor would take scalar registers
 * for the whole main loop. The empty assembly hides from the compiler that the wave's number is the
 * same for each prefetch. The compiler therefore selects the descriptor anew each time. */
BSMM_DEVICE bsmm_i32x4 gemm_scout_buffer(const gemm_position *at) {
    uint32_t wave = at->sources[0].wave;
    __asm__ volatile("" : "+s"(wave));
    bsmm_i32x4 buffer = at->sources[0].buffer;
#pragma unroll
    for (uint32_t i = 0; i < 3; i++)
        buffer[i] = wave / 4 ? at->sources[1].buffer[i] : buffer[i];
    return buffer;
}

/* Prefetches this workgroup's part of the cache lines of step `step` to L2. */
BSMM_DEVICE void gemm_scout_ahead(const gemm_position *at, gemm_shape s, uint32_t step) {
    bsmm_isa_touch(gemm_scout_buffer(at), at->scout.lane_offset, gemm_scout_offset(at, s, step),
                   step % 2);
}

/* Prefetches cache lines of the operands to L2. The lines lie `offset` bytes after the start of
 * each row, and several workgroups share the work: each prefetches the lines of some of the rows.
 * The prefetch is a load to LDS: each wave's load writes 256 bytes to LDS at `unused`, which
 * nothing reads. */
BSMM_DEVICE void gemm_scout_to(const gemm_position *at, uint32_t offset, uint32_t unused) {
    bsmm_isa_load_to_lds(gemm_scout_buffer(at), unused, at->scout.lane_offset, offset, 4);
}

/* Prefetches to L2 this workgroup's part of the cache lines that the steps from `first` on read.
 * The waves that prefetch A do so for wanted[0] steps, and those that prefetch B for wanted[1]
 * steps. For each step, each wave loads one word of each of 64 cache lines to LDS, only to bring
 * the lines to L2. Every wave issues `count` loads, so that the number of its loads is a constant.
 * It repeats the last one if fewer are wanted. The words take 256 bytes in LDS for each load,
 * beginning at `unused`, and nothing reads them. */
BSMM_DEVICE void gemm_scout_first(const gemm_position *at, gemm_shape s, uint32_t first,
                                  uint32_t count, const uint32_t wanted[2], uint32_t unused) {
    const bsmm_i32x4 buffer = gemm_scout_buffer(at);
    const uint32_t bytes = gemm_scout_bytes(at, s);
    const uint32_t most = first + (at->sources[0].wave / 4 ? wanted[1] : wanted[0]) - 1;
#pragma unroll
    for (uint32_t i = 0; i < count; i++)
        bsmm_isa_load_to_lds(buffer, unused + i * GEMM_WAVE * 4, at->scout.lane_offset,
                             (first + i < most ? first + i : most) * bytes, 4);
}

/* With split-K, stores the sums of this workgroup's part of K to the workspace. The kernels of
 * gemm_parts.c add the sums of all parts. If `may_vanish` is true, a sum of 0 may have lost
 * products to underflow. The function then stores NaN instead, so that the result is computed again
 * in double. `row` and `col` are the first row and column of the wave's tile in D. */
BSMM_DEVICE void gemm_store_part(const bsmm_cdna_gemm *p, gemm_shape s, const gemm_sums sums,
                                 uint32_t row, uint32_t col, bool may_vanish) {
    const uint32_t pitch = p->col_tiles * gemm_rows(s, 1);
    const uint32_t first = gemm_part_here(p) * p->row_tiles * gemm_rows(s, 0) + row;
    const uint32_t nan = may_vanish ? 0x7fc00000u : 0;
    const uint32_t lane = gemm_thread_of_tile() % GEMM_WAVE;
    BSMM_GLOBAL float *to = (BSMM_GLOBAL float *)p->sums +
                            (uint64_t)(first + lane % BSMM_CDNA_EDGE) * pitch + col +
                            lane / BSMM_CDNA_EDGE * 4 * s.col_tiles;
#pragma unroll
    for (uint32_t i = 0; i < s.row_tiles; i++) {
#pragma unroll
        for (uint32_t j = 0; j < s.col_tiles; j++) {
            bsmm_f32x4 four = sums[i][j];
#pragma unroll
            for (uint32_t e = 0; e < 4; e++)
                four[e] = four[e] == 0 ? bsmm_bits_float(nan) : four[e];
            ((BSMM_GLOBAL bsmm_f32x4 *)to)[j] = four;
        }
        to += (uint64_t)BSMM_CDNA_EDGE * pitch;
    }
}

/* Stores the sums of a wave's tile. The tile begins in row first[0] and column first[1] of D. The
 * function may use LDS from `strips` on, where each wave of the workgroup has a staging buffer
 * (strip) of gemm_strip_bytes bytes. With split-K, it stores the sums of a part of K in the
 * workspace; otherwise it stores results in D. For `keeps` and `late`, see
 * gemm_epilogue_store. */
BSMM_DEVICE void gemm_store_sums(gemm_shape s, gemm_sums sums, const uint32_t first[2],
                                 gemm_lds *strips, gemm_trust trust, bool keeps, gemm_late *late) {
    const bsmm_cdna_gemm *p = gemm_params_here();
    gemm_epilogue_fetch(p);
    if (p->parts > 1)
        gemm_store_part(p, s, sums, first[0], first[1], trust == GEMM_TRUST_LARGE);
    else
        gemm_epilogue_store(p, s, sums,
                            (BSMM_IN_LDS float *)(strips + gemm_wave() * gemm_strip_bytes(s)),
                            first[0], first[1], trust, keeps, late);
}

/* Stores the sums after all stages (ranges of K) of the tile have been multiplied. The buffers for
 * rows of sums overwrite the stages in LDS. */
BSMM_DEVICE void gemm_end(const gemm_position *at, gemm_shape s, gemm_sums sums) {
    bsmm_isa_wait_barrier();
    gemm_store_sums(s, sums, at->first, gemm_stage(s, 0), GEMM_TRUST_ZERO, false, NULL);
}

#endif
