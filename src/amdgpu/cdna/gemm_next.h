/* Moves a workgroup to the next of the tiles of D that it computes (gemm_scaled_run). The workgroup
 * computes the next tile's addresses once, before it stores the results of a tile. The code need
 * not consider split-K (K divided into parts), because a workgroup computes several tiles only if
 * there are many tiles, and K is then not divided. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_NEXT_H
#define BSMM_AMDGPU_CDNA_GEMM_NEXT_H

#include "amdgpu/cdna/gemm_scaled.h"

/* Holds the parameters from which a workgroup finds its next tile. Vector registers and LDS hold
 * everything else that the workgroup needs for this. */
typedef struct gemm_next {
    const uint8_t *data[2];
    uint32_t rows[2], k, row_tiles, col_tiles, groups;
    /* `carrier_rows` is the number of rows of the operand whose scales the wave moves. `digits` is
     * the number of digits of the map from its rows to the offsets of their scales (bsmm_axis_at).
     * If it is 1, the offset is the row times `stride`. */
    uint32_t carrier_rows, digits;
    uint64_t stride;
} gemm_next;

/* Loads the parameters. Because of the empty assembly, the wave issues all of these loads before it
 * waits for one of them, and keeps the values. */
BSMM_DEVICE gemm_next gemm_next_of(const bsmm_cdna_gemm *p, gemm_shape s) {
    const bsmm_cdna_side *a = &p->sides[0], *b = &p->sides[1];
    const bsmm_cdna_side *scaled = &p->sides[gemm_carrier_side(s)];
    gemm_next n = {{a->o.data, b->o.data},
                   {a->rows, b->rows},
                   p->k,
                   p->row_tiles,
                   p->col_tiles,
                   p->groups,
                   scaled->rows,
                   scaled->o.row_map.count,
                   scaled->o.row_map.digits[0].stride};
    __asm__ volatile(""
                     : "+s"(n.data[0]), "+s"(n.data[1]), "+s"(n.rows[0]), "+s"(n.rows[1]),
                       "+s"(n.k), "+s"(n.row_tiles), "+s"(n.col_tiles), "+s"(n.groups),
                       "+s"(n.carrier_rows), "+s"(n.digits), "+s"(n.stride));
    return n;
}

/* Returns 1 if D has a tile with number `group`, else 0. If K is divided into parts, a launch has
 * at least as many workgroups as tiles, so that no workgroup has a second tile. `group` and the
 * number of tiles are below 2^31, so the highest bit of their difference tells which one is larger.
 * For a comparison, the compiler would use a vector register. */
BSMM_DEVICE uint32_t gemm_next_exists(const gemm_next *n, uint32_t group) {
    return (group - n->row_tiles * n->col_tiles) >> 31;
}

/* Returns the buffer descriptor of the memory of operand `side` (0 for A, 1 for B) from row `row`
 * to the operand's end. */
BSMM_DEVICE bsmm_i32x4 gemm_next_buffer(const gemm_next *n, gemm_shape s, uint32_t side,
                                        uint32_t pitch, uint32_t row) {
    const uint64_t row_bytes = ((uint64_t)n->k * gemm_bits(s.types[side]) + 7) / 8;
    return bsmm_isa_buffer(n->data[side] + (uint64_t)row * pitch,
                           (uint64_t)(n->rows[side] - row - 1) * pitch + row_bytes);
}

/* Changes the addresses in *at and *c from those of the workgroup's current tile to those of the
 * tile with number c->group. */
BSMM_DEVICE void gemm_next_tile(const gemm_next *n, gemm_position *at, gemm_chores *c,
                                gemm_shape s) {
    const uint32_t side = gemm_carrier_side(s);
    const gemm_tile tile = gemm_tile_of(gemm_number(c->group, n->row_tiles * n->col_tiles),
                                        n->row_tiles, n->col_tiles);
    const uint32_t rows[2] = {tile.row * gemm_rows(s, 0), tile.col * gemm_rows(s, 1)};
#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
        at->first[i] += rows[i] - at->tile[i];
        at->tile[i] = at->sources[i].row = rows[i];
        at->sources[i].buffer = gemm_next_buffer(n, s, i, at->sources[i].pitch, rows[i]);
    }
    at->scout = gemm_scout_of(at->sources, tile);
    const uint32_t row = gemm_carrier_row(s, side, rows[side], n->carrier_rows);
    c->carrier.row = row * (uint32_t)n->stride;
    if (n->digits != 1)
        c->carrier.row = (uint32_t)bsmm_axis_at(&gemm_params_here()->sides[side].o.row_map, row);
    c->carrier.low = UINT32_MAX;
    c->stage = gemm_stage(s, gemm_stage_count(s) - 1);
}

/* GEMM_KEPT is the number of scalars that the main loop needs and that depend on the tile or come
 * from the kernel's parameters. */
enum { GEMM_KEPT = 25 };

/* Stores in `list` the addresses of the GEMM_KEPT scalars of the next tile that the main loop
 * needs. Their values depend on the tile or come from the kernel's parameters. While a wave stores
 * the results of the present tile, these scalars are kept in vector registers (gemm_kept). */
BSMM_DEVICE void gemm_list_kept(gemm_position *at, gemm_chores *c, uint32_t *list[GEMM_KEPT]) {
    uint32_t n = 0;
#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t *buffer = (uint32_t *)&at->sources[i].buffer;
        list[n++] = &at->tile[i], list[n++] = &at->first[i], list[n++] = &at->offsets[i];
        list[n++] = &buffer[0], list[n++] = &buffer[1], list[n++] = &buffer[2];
        list[n++] = &at->sources[i].pitch;
    }
    uint32_t *scales = (uint32_t *)&c->carrier.buffer;
    list[n++] = &at->steps, list[n++] = &c->whole, list[n++] = &c->plain;
    list[n++] = &scales[0], list[n++] = &scales[1];
    list[n++] = &c->carrier.period, list[n++] = &c->carrier.blocks;
    list[n++] = &c->carrier.wide;
    list[n++] = &at->sources[0].wave, list[n++] = &c->group, list[n++] = &c->more;
}

/* While a wave stores the results of a tile, it has too few scalar registers to keep the values
 * that the next tile needs (gemm_list_kept). This struct keeps these scalars in the lanes of two
 * vector registers: scalar n is in lane n / 2 of register n % 2. Consecutive scalars go to
 * different registers, because hardware needs a wait state between two writes to one register. */
typedef struct gemm_kept {
    uint32_t lanes[2];
} gemm_kept;

BSMM_DEVICE gemm_kept gemm_keep(gemm_position *at, gemm_chores *c) {
    uint32_t *list[GEMM_KEPT];
    gemm_kept kept = {{0, 0}};
    gemm_list_kept(at, c, list);
#pragma unroll
    for (uint32_t i = 0; i < GEMM_KEPT; i++)
        __asm__("v_writelane_b32 %0, %1, %2" : "+v"(kept.lanes[i % 2]) : "s"(*list[i]), "i"(i / 2));
    return kept;
}

/* Reads the scalars of gemm_list_kept back from the vector registers to which gemm_keep copied
 * them. If the compiler knew that their values have not changed, it would keep them in scalar
 * registers all the time, and the copies would save no registers. The empty assembly hides this
 * from the compiler. */
BSMM_DEVICE void gemm_take_kept(gemm_position *at, gemm_chores *c, gemm_kept kept) {
    uint32_t *list[GEMM_KEPT];
    __asm__ volatile("" : "+v"(kept.lanes[0]), "+v"(kept.lanes[1]));
    gemm_list_kept(at, c, list);
#pragma unroll
    for (uint32_t i = 0; i < GEMM_KEPT; i++)
        *list[i] = (uint32_t)__builtin_amdgcn_readlane((int)kept.lanes[i % 2], (int)(i / 2));
#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
        at->sources[i].row = at->tile[i];
        at->sources[i].whole = c->whole;
    }
    at->sources[1].wave = at->sources[0].wave;
}

#endif
