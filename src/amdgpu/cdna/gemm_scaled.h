/* Products whose e8m0 scales the matrix instruction applies (gfx950). The scale of a row and 32 of
 * K lies in the lane that holds them of a 6- or 4-bit operand; of 8 bits too, though the lane holds
 * other elements. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_SCALED_H
#define BSMM_AMDGPU_CDNA_GEMM_SCALED_H

#include "amdgpu/cdna/gemm_stage.h"

enum { GEMM_SCALE_ONE = 127, GEMM_SCALED_BLOCK = 32 };

typedef struct gemm_scaled {
    uint32_t rows[2][GEMM_MOST_ROW_TILES];  /* offset of each tile's row in the scales */
    int32_t scales[2][GEMM_MOST_ROW_TILES]; /* of the stage that is multiplied next */
    int32_t low[2];                         /* the least scale of a row so far */
    uint32_t blocks;                        /* along K */
} gemm_scaled;

BSMM_DEVICE uint32_t gemm_scaled_tiles(gemm_shape s, uint32_t side) {
    return side ? s.col_tiles : s.row_tiles;
}

BSMM_DEVICE void gemm_scaled_begin(gemm_scaled *g, const bsmm_cdna_gemm *p, gemm_shape s,
                                   const uint32_t first[2]) {
    g->blocks = (p->k + GEMM_SCALED_BLOCK - 1) / GEMM_SCALED_BLOCK;
#pragma unroll
    for (uint32_t side = 0; side < 2; side++) {
        const bsmm_cdna_side *o = &p->sides[side];
        g->low[side] = 255;
#pragma unroll
        for (uint32_t t = 0; t < gemm_scaled_tiles(s, side); t++) {
            const uint32_t row = first[side] + t * BSMM_CDNA_EDGE + gemm_lane() % BSMM_CDNA_EDGE;
            g->rows[side][t] =
                (uint32_t)bsmm_axis_at(&o->o.row_map, row < o->rows ? row : o->rows - 1);
        }
    }
}

/* The block of this lane in a stage. */
BSMM_DEVICE uint32_t gemm_scaled_block(uint32_t step) {
    return step * (BSMM_CDNA_K / GEMM_SCALED_BLOCK) + gemm_lane() / BSMM_CDNA_EDGE;
}

/* Only loads: whatever used their results here would wait for the stage in LDS too, which was asked
 * for before. */
BSMM_DEVICE void gemm_scaled_load(gemm_scaled *g, const bsmm_cdna_gemm *p, gemm_shape s,
                                  uint32_t step) {
    const uint32_t block = gemm_scaled_block(step), k = block < g->blocks ? block : g->blocks - 1;
#pragma unroll
    for (uint32_t side = 0; side < 2; side++) {
        const bsmm_gpu_operand *o = &p->sides[side].o;
        const uint32_t across = (uint32_t)bsmm_axis_at(&o->col_map, k * GEMM_SCALED_BLOCK);
        gemm_memory *scales = (gemm_memory *)o->scales;
#pragma unroll
        for (uint32_t t = 0; t < gemm_scaled_tiles(s, side); t++)
            g->scales[side][t] = scales[g->rows[side][t] + across];
    }
}

/* A scale beyond K must not be NaN: the elements there are 0, and 0 times NaN is NaN. The empty
 * instruction settles the scales here, so that the next ones may be loaded into their registers. */
BSMM_DEVICE void gemm_scaled_take(gemm_scaled *g, gemm_shape s, uint32_t step) {
    const bool inside = gemm_scaled_block(step) < g->blocks;
#pragma unroll
    for (uint32_t side = 0; side < 2; side++)
#pragma unroll
        for (uint32_t t = 0; t < gemm_scaled_tiles(s, side); t++) {
            g->scales[side][t] = inside ? g->scales[side][t] : GEMM_SCALE_ONE;
            __asm__ volatile("" : "+v"(g->scales[side][t]));
            g->low[side] = g->scales[side][t] < g->low[side] ? g->scales[side][t] : g->low[side];
        }
}

BSMM_DEVICE int32_t gemm_wave_least(int32_t value) {
    for (int distance = GEMM_WAVE / 2; distance > 0; distance /= 2) {
        const int32_t other =
            __builtin_amdgcn_ds_bpermute(4 * ((int32_t)gemm_lane() ^ distance), value);
        value = other < value ? other : value;
    }
    return value;
}

/* Two elements of e5m2 multiply to 2^-32 at least: with scales of 2^-117 together all products are
 * 2^-149 and more, and none vanishes in fp32. */
BSMM_DEVICE bool gemm_scaled_may_vanish(const gemm_scaled *g) {
    return gemm_wave_least(g->low[0]) + gemm_wave_least(g->low[1]) < 254 - 117;
}

/* One stage. The instruction's A is our B: a lane then holds four neighbouring columns of D. All of
 * B's fragments are read first, then each of A's while the one before it is multiplied: the
 * scheduler is told so, for it may gather all reads ahead of the products. */
BSMM_DEVICE void gemm_scaled_multiply(const gemm_scaled *g, gemm_shape s, const gemm_lds *a,
                                      const gemm_lds *b, const gemm_reader readers[2],
                                      gemm_sums sums) {
#if defined(__gfx950__)
    bsmm_i32x8 columns[GEMM_MOST_COL_TILES];
    const uint32_t a_tile = BSMM_CDNA_EDGE * gemm_row_bytes(s.types[0]);
    const uint32_t b_tile = BSMM_CDNA_EDGE * gemm_row_bytes(s.types[1]);
#    pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++)
        columns[j] = gemm_read_fragment(b + j * b_tile, readers[1], s.types[1]);
    bsmm_i32x8 next = gemm_read_fragment(a, readers[0], s.types[0]);
#    pragma unroll
    for (uint32_t i = 0; i < s.row_tiles; i++) {
        const bsmm_i32x8 row = next;
        if (i + 1 < s.row_tiles)
            next = gemm_read_fragment(a + (i + 1) * a_tile, readers[0], s.types[0]);
#    pragma unroll
        for (uint32_t j = 0; j < s.col_tiles; j++)
            sums[i][j] = bsmm_isa_mfma_scale_16(columns[j], row, sums[i][j], s.types[1], s.types[0],
                                                g->scales[1][j], g->scales[0][i]);
    }
    gemm_order_reads(s);
#endif
}

#endif
