/* These functions compute FP8 GEMMs whose fp32 scales cover 128 elements of K. The matrix cores sum
 * the products of each stage (128 elements of K), starting from 0. The vector unit multiplies this
 * sum by the product of A's scale and B's scale, and adds it to the fp32 sum over all of K. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_PROMOTED_H
#define BSMM_AMDGPU_CDNA_GEMM_PROMOTED_H

#include "amdgpu/cdna/gemm_stage.h"

/* The product of a scale of A and a scale of B is safe if its magnitude is from GEMM_LEAST_FACTOR
 * to GEMM_MOST_FACTOR. A safe product times a nonzero sum of a stage is a normal fp32 number and
 * does not overflow. */
#define GEMM_LEAST_FACTOR 0x1p-104f
#define GEMM_MOST_FACTOR  0x1p64f

/* GEMM_D_COLS is the number of neighbouring columns of D that a lane holds of a 16 x 16 tile. */
enum { GEMM_D_COLS = 4 };

/* Holds the fp32 scales that a lane needs: those of A for its rows of D, and those of B for its
 * columns of D. `rows` and `cols` are the offsets of these scales in memory. `row` and `col` are
 * the values of the scales for one stage (128 elements of K). */
typedef struct gemm_promoted {
    uint32_t rows[GEMM_MOST_ROW_TILES], cols[GEMM_MOST_COL_TILES][GEMM_D_COLS];
    float row[GEMM_MOST_ROW_TILES], col[GEMM_MOST_COL_TILES][GEMM_D_COLS];
    /* `low` and `high` are the least and the greatest magnitude of the scales of A (index 0) and of
     * B (index 1) so far. Both magnitudes begin at 1, and scales of 0 are ignored. */
    float low[2], high[2];
} gemm_promoted;

/* Returns the number of scales of B that a lane needs for a 16 x 16 tile. This is one scale for
 * each of the lane's four columns, or one scale that all columns share. */
BSMM_DEVICE uint32_t gemm_promoted_cols(gemm_shape s) {
    return s.col_scales ? GEMM_D_COLS : 1;
}

/* A workgroup may multiply only a part of K. Returns the offset, in scales, of the scale that
 * covers the first elements of row `row` in this part. */
BSMM_DEVICE uint32_t gemm_promoted_row(const bsmm_cdna_gemm *p, uint32_t side, uint32_t row) {
    const bsmm_cdna_side *o = &p->sides[side];
    return (uint32_t)bsmm_axis_at(&o->o.row_map, row < o->rows ? row : o->rows - 1) +
           gemm_part_scale(p, side, BSMM_CDNA_K);
}

BSMM_DEVICE void gemm_promoted_begin(gemm_promoted *g, const bsmm_cdna_gemm *p, gemm_shape s,
                                     const gemm_position *at) {
    const uint32_t row = gemm_lane() % BSMM_CDNA_EDGE,
                   col = gemm_lane() / BSMM_CDNA_EDGE * GEMM_D_COLS * s.col_tiles;
    g->low[0] = g->low[1] = g->high[0] = g->high[1] = 1;
#pragma unroll
    for (uint32_t i = 0; i < s.row_tiles; i++)
        g->rows[i] = gemm_promoted_row(p, 0, at->first[0] + i * BSMM_CDNA_EDGE + row);
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++)
#pragma unroll
        for (uint32_t e = 0; e < gemm_promoted_cols(s); e++)
            g->cols[j][e] = gemm_promoted_row(
                p, 1,
                at->first[1] + (s.col_scales ? col + j * GEMM_D_COLS + e : j * BSMM_CDNA_EDGE));
}

BSMM_DEVICE void gemm_promoted_load(gemm_promoted *g, const bsmm_cdna_gemm *p, gemm_shape s,
                                    uint32_t step) {
    BSMM_GLOBAL const float *a = (BSMM_GLOBAL const float *)p->sides[0].o.scales;
    BSMM_GLOBAL const float *b = (BSMM_GLOBAL const float *)p->sides[1].o.scales;
    const uint32_t a_across = gemm_scale_offset(&p->sides[0], step);
    const uint32_t b_across = gemm_scale_offset(&p->sides[1], step);
#pragma unroll
    for (uint32_t i = 0; i < s.row_tiles; i++)
        g->row[i] = a[g->rows[i] + a_across];
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++)
#pragma unroll
        for (uint32_t e = 0; e < gemm_promoted_cols(s); e++)
            g->col[j][e] = b[g->cols[j][e] + b_across];
}

/* Includes the magnitude of `scale` in the range low[side] to high[side]. The range holds the
 * magnitudes of all scales of A (side 0) or of B (side 1) that the lane has used. A scale of 0 is
 * left out. fminf and fmaxf also leave out a NaN. This does no harm, because a result with a NaN
 * scale is NaN in any case. */
BSMM_DEVICE void gemm_promoted_note(gemm_promoted *g, uint32_t side, float scale) {
    const float size = __builtin_fabsf(scale);
    g->low[side] = fminf(g->low[side], size == 0 ? 1 : size);
    g->high[side] = fmaxf(g->high[side], size);
}

/* Copies a scale to another register, so that the load for the next stage can overwrite the
 * register to which the scale was loaded. The compiler would move an ordinary assignment behind
 * that load, and the assignment would then have to wait for the load. */
BSMM_DEVICE float gemm_promoted_move(float from) {
    float to;
    __asm__ volatile("v_mov_b32 %0, %1" : "=&v"(to) : "v"(from));
    return to;
}

BSMM_DEVICE void gemm_promoted_take(gemm_promoted *g, gemm_shape s) {
#pragma unroll
    for (uint32_t i = 0; i < s.row_tiles; i++)
        g->row[i] = gemm_promoted_move(g->row[i]);
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++)
#pragma unroll
        for (uint32_t e = 0; e < gemm_promoted_cols(s); e++)
            g->col[j][e] = gemm_promoted_move(g->col[j][e]);
}

BSMM_DEVICE void gemm_promoted_note_all(gemm_promoted *g, gemm_shape s) {
#pragma unroll
    for (uint32_t i = 0; i < s.row_tiles; i++)
        gemm_promoted_note(g, 0, g->row[i]);
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++)
#pragma unroll
        for (uint32_t e = 0; e < gemm_promoted_cols(s); e++)
            gemm_promoted_note(g, 1, g->col[j][e]);
}

/* Multiplies one stage (128 elements of K) of one row of 16 x 16 tiles, starting from sums of 0.
 * The kernel passes B as the instruction's first operand and A as the second, because each lane
 * then holds four neighbouring columns of D. */
BSMM_DEVICE void gemm_promoted_sum(gemm_shape s, const bsmm_i32x8 columns[GEMM_MOST_COL_TILES],
                                   bsmm_i32x8 row, bsmm_f32x4 sums[GEMM_MOST_COL_TILES]) {
    const bsmm_f32x4 zero = {0};
#if defined(__gfx950__)
#    pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++)
        sums[j] = bsmm_isa_mfma_scale_16(columns[j], row, zero, BSMM_F8F6F4_E4M3, BSMM_F8F6F4_E4M3,
                                         127, 0, 127, 0);
#else
    typedef int64_t i64x4 __attribute__((vector_size(32)));
    const i64x4 y = (i64x4)row;
#    pragma unroll
    for (int i = 0; i < 4; i++)
#    pragma unroll
        for (uint32_t j = 0; j < s.col_tiles; j++) {
            const i64x4 x = (i64x4)columns[j];
            sums[j] = bsmm_isa_mfma_fp8_16(x[i], y[i], i ? sums[j] : zero);
        }
#endif
}

/* Returns the factor of the sum for column e of a 16 x 16 tile, where `row` is the factor of the
 * row. A packed FMA multiplies two sums, and reads their factors from a pair of registers. If both
 * sums have the same factor, the compiler would put it in only one register of the pair. It might
 * use the other register as the target of a load, and the FMA would then wait for this load. In the
 * kernels for column-major operands on gfx950, the empty assembly makes the compiler put the factor
 * in both registers. */
BSMM_DEVICE float gemm_promoted_factor(const gemm_promoted *g, gemm_shape s, float row, uint32_t j,
                                       uint32_t e) {
    const float factor = row * g->col[j][s.col_scales ? e : 0];
#if defined(__gfx950__)
    if (s.columns && !s.col_scales) {
        typedef float pair __attribute__((vector_size(8)));
        pair both = {factor, factor};
        __asm__("" : "+v"(both));
        return both[e % 2];
    }
#endif
    return factor;
}

/* Multiplies the sums of one stage by the scales of A and B, and adds the products to the totals
 * over K of row i of 16 x 16 tiles. */
BSMM_DEVICE void gemm_promoted_add(const gemm_promoted *g, gemm_shape s, uint32_t i, float factor,
                                   const bsmm_f32x4 sums[GEMM_MOST_COL_TILES], gemm_sums totals) {
    const float row = g->row[i] * factor;
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++)
#pragma unroll
        for (uint32_t e = 0; e < GEMM_D_COLS; e++)
            totals[i][j][e] =
                fmaf(gemm_promoted_factor(g, s, row, j, e), sums[j][e], totals[i][j][e]);
}

/* Multiplies one stage (128 elements of K) of a wave's tile of D, which consists of rows of 16 x 16
 * blocks. While the matrix core multiplies one row of blocks, the vector unit multiplies the sums
 * of the row before by their scales and adds them to the totals over K. Neither unit then waits for
 * the other. The scheduling barrier keeps the compiler from moving instructions from one row to the
 * next. */
BSMM_DEVICE void gemm_promoted_multiply(gemm_promoted *g, gemm_shape s, const gemm_lds *a,
                                        const gemm_lds *b, const gemm_reader readers[2],
                                        float factor, gemm_sums totals) {
    bsmm_i32x8 columns[GEMM_MOST_COL_TILES], rows[GEMM_MOST_ROW_TILES];
    bsmm_f32x4 sums[2][GEMM_MOST_COL_TILES];
    const uint32_t tile = BSMM_CDNA_EDGE * gemm_row_bytes(BSMM_F8F6F4_E4M3);
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j++)
        columns[j] = gemm_read_fragment(b + j * tile, readers[1], BSMM_F8F6F4_E4M3);
#pragma unroll
    for (uint32_t i = 0; i < s.row_tiles; i++)
        rows[i] = gemm_read_fragment(a + i * tile, readers[0], BSMM_F8F6F4_E4M3);
    __builtin_amdgcn_sched_barrier(0);
#pragma unroll
    for (uint32_t i = 0; i <= s.row_tiles; i++) {
        if (i < s.row_tiles) gemm_promoted_sum(s, columns, rows[i], sums[i % 2]);
        if (i > 0) gemm_promoted_add(g, s, i - 1, factor, sums[(i - 1) % 2], totals);
        if (i == 0) gemm_promoted_note_all(g, s);
        __builtin_amdgcn_sched_barrier(0);
    }
}

/* Sets all totals (sums over K) to NaN if a product of a scale of A and a scale of B may have been
 * outside the safe range (GEMM_LEAST_FACTOR to GEMM_MOST_FACTOR). The epilogue computes results
 * again in double if their totals are NaN. */
BSMM_DEVICE void gemm_promoted_distrust(const gemm_promoted *g, gemm_shape s, gemm_sums totals) {
    const bool safe =
        g->low[0] * g->low[1] >= GEMM_LEAST_FACTOR && g->high[0] * g->high[1] <= GEMM_MOST_FACTOR;
    const float nan = bsmm_bits_float(0x7fc00000u);
#pragma unroll
    for (uint32_t i = 0; i < s.row_tiles; i++)
#pragma unroll
        for (uint32_t j = 0; j < s.col_tiles; j++)
#pragma unroll
            for (uint32_t e = 0; e < GEMM_D_COLS; e++)
                totals[i][j][e] = safe ? totals[i][j][e] : nan;
}

#endif
