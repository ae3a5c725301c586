/* Products on gfx950 whose e8m0 scales the matrix instruction applies. Lane l passes the scale of
 * row l % 16 and of elements 32 * (l / 16) to 32 * (l / 16) + 31 of the instruction's K. For 6- and
 * 4-bit types the same lane holds these elements. For 8-bit types it holds other elements of the
 * row, but the assignment of scales is the same. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_SCALED_H
#define BSMM_AMDGPU_CDNA_GEMM_SCALED_H

#include "amdgpu/cdna/gemm_stage.h"

enum { GEMM_SCALE_ONE = 127, GEMM_SCALED_BLOCK = 32 };

typedef struct gemm_scaled {
    /* For each tile, the offset of this lane's row in the scales. */
    uint32_t rows[2][GEMM_MOST_ROW_TILES];
    int32_t scales[2][GEMM_MOST_ROW_TILES]; /* the scales of the stage that is multiplied next */
    int32_t low[2];  /* the least scale of A and of B that this lane has seen */
    uint32_t blocks; /* scale blocks along K */
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

/* Returns the scale block along K that this lane needs for a stage. */
BSMM_DEVICE uint32_t gemm_scaled_block(uint32_t step) {
    return step * (BSMM_CDNA_K / GEMM_SCALED_BLOCK) + gemm_lane() / BSMM_CDNA_EDGE;
}

/* Loads the scales of a stage, and nothing more. Loads finish in order: a use of the scales here
 * would also wait for the stage's elements, whose loads to LDS were issued before. */
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

/* Completes the scales of a stage before they are used. Elements beyond K are 0, and their scale
 * must not be NaN, because 0 times NaN is NaN. The empty assembly forces the compiler to finish
 * with the loaded registers here, so that the next stage's scales can be loaded into them. */
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

/* Returns true if a product of two elements and their scales may underflow to 0 in fp32. The least
 * product of two nonzero elements is 2^-32 (two e5m2 subnormals). If the two least scales multiply
 * to 2^-117 or more, every product is at least 2^-149, the least positive fp32 number. */
BSMM_DEVICE bool gemm_scaled_may_vanish(const gemm_scaled *g) {
    return gemm_wave_least(g->low[0]) + gemm_wave_least(g->low[1]) < 254 - 117;
}

/* Multiplies one stage. The kernel passes B as the instruction's first operand and A as the second,
 * so that each lane holds four neighbouring columns of D. It reads all fragments of B first. It
 * then reads each fragment of A while it multiplies the previous one. gemm_order_reads tells the
 * compiler's scheduler this order, because the scheduler otherwise moves all reads ahead of the
 * multiplications. */
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
