/* These kernels compute FP8 groupwise products on gfx942 with a tall tile: D = A B^T with e4m3 or
 * e4m3fnuz operands. The fp32 scales of A cover 1 x 128 or 128 x 128 elements, and those of B cover
 * 128 x 128 elements. Operands are aligned for loads of 16 bytes (4 bytes if column-major), and K
 * is a multiple of 128. The kernels of cdna/gemm_promoted_body.h compute the same products without
 * these limits, and their sums are bitwise identical.
 *
 *   tile      256 x 128 for eight waves, each of 64 x 64; one workgroup on a compute unit
 *   LDS       two buffers, each with one half (64) of the 128 elements of K of a step
 *   registers the totals, i.e. the scaled sums over K; the sums of a step; the fragments of a half;
 *             the pieces of a step that are on their way from memory to LDS (gfx942/tall_relay.h)
 *
 * A step of the main loop has two halves h of 64 elements of K, and a half has two phases. Numbers
 * of rows and of A are those of a wave's four rows of 16 x 16 tiles. The lines h = 0 and h = 1 say
 * what is copied to LDS and loaded from memory during the half:
 *
 *   matrix core | rows 2, 3 of the half before | rows 0, 1 of half h |
 *   LDS reads   | A 0, 1; all of B             | A 2, 3              |
 *   h = 0       | half 1 of this step to LDS; half 0 and 1 of the next step from memory
 *   h = 1       | half 0 of the next step to LDS
 *               ^ barrier
 *
 * After the barrier before half h, half h is complete in LDS, and no wave reads the other half any
 * more. The matrix cores add the products of the 128 elements of a step, starting from 0. When the
 * sums of a step are complete, the vector unit multiplies them by the two scales and adds them to
 * the totals.
 *
 * The error bound is that of cdna/gemm_promoted_body.h. */
#ifndef BSMM_AMDGPU_GFX942_TALL_H
#define BSMM_AMDGPU_GFX942_TALL_H

#include "amdgpu/gfx942/tall_relay.h"

/* A wave computes TALL_TILES x TALL_TILES tiles of 16 x 16 results. */
enum { TALL_TILES = 4 };

BSMM_DEVICE gemm_shape tall_shape(uint32_t ocp, uint32_t columns) {
    return (gemm_shape){.types = {0, 0}, 4, 2, TALL_TILES, TALL_TILES, ocp, 0, columns};
}

/* The functions from here on handle scales. */

/* Holds this lane's scales: the scale of A of the lane's row in each row of tiles, and the scale of
 * B, which is the same for all columns of the tile. */
typedef struct tall_scales {
    __amdgpu_buffer_rsrc_t buffers[2];
    /* These are byte offsets in memory of the scales for the first block of K (128 elements). The
     * wave computes TALL_TILES rows of 16 x 16 tiles, and a lane has one row of D in each of them.
     * rows[i] is the offset of A's scale for the lane's row in row i of tiles. `col` is the offset
     * of B's scale, which is the same for all columns of the tile. */
    uint32_t rows[TALL_TILES], col;
    /* In lane l, at[0] (for A) and at[1] (for B) hold the distance from the scale of block 0 along
     * K to the scale of block l % 8 (scale_at in bsmm_cdna_side). Reading the register of another
     * lane takes less time than loading a kernel parameter. */
    uint32_t at[2], period[2];
    /* `row` and `all` are the scales of one step (128 elements of K): `row` those of A, and `all`
     * the one scale of B. */
    float row[TALL_TILES], all;
    float factors[TALL_TILES]; /* `factors` holds the products of scales of A and B of a step. */
    /* low is the least magnitude so far of the scales of A (index 0) and of B (index 1), minus 1.
     * high is the greatest magnitude. Both are the bits of fp32 numbers. Subtracting 1 makes 0 the
     * greatest integer, so that scales of 0 are ignored. */
    uint32_t low[2], high[2];
} tall_scales;

BSMM_DEVICE tall_scales tall_scales_of(const bsmm_cdna_gemm *p, const gemm_position *at) {
    tall_scales g;
#pragma unroll
    for (uint32_t side = 0; side < 2; side++) {
        const bsmm_cdna_side *o = &p->sides[side];
        g.buffers[side] =
            __builtin_amdgcn_make_buffer_rsrc((void *)o->o.scales, 0, 0xffffffffu, 0x00020000);
        g.at[side] = o->scale_at[gemm_lane() % BSMM_CDNA_SCALES], g.period[side] = o->scale_period;
        g.low[side] = g.high[side] = bsmm_float_bits(1);
    }
#pragma unroll
    for (uint32_t i = 0; i < TALL_TILES; i++) {
        const uint32_t row = at->first[0] + i * BSMM_CDNA_EDGE + gemm_lane() % BSMM_CDNA_EDGE;
        g.rows[i] = 4 * gemm_promoted_row(p, 0, row), g.factors[i] = 0;
    }
    g.col = 4 * gemm_promoted_row(p, 1, at->tile[1]);
    /* The empty assembly hides from the compiler that all lanes load the same scale. The compiler
     * would otherwise wait for the load in order to move the scale to a scalar register. */
    __asm__("" : "+v"(g.col));
    return g;
}

BSMM_DEVICE uint32_t tall_scale_offset(const tall_scales *g, uint32_t side, uint32_t block) {
    const uint32_t first = (uint32_t)__builtin_amdgcn_readlane((int32_t)g->at[side],
                                                               (int32_t)(block % BSMM_CDNA_SCALES));
    return 4 * (first + block / BSMM_CDNA_SCALES * g->period[side]);
}

BSMM_DEVICE float tall_scale(const tall_scales *g, uint32_t side, uint32_t lane_offset,
                             uint32_t offset) {
    return bsmm_bits_float(__builtin_amdgcn_raw_buffer_load_b32(
        g->buffers[side], (int32_t)lane_offset, (int32_t)offset, 0));
}

BSMM_DEVICE void tall_load_scales(tall_scales *g, uint32_t step) {
    const uint32_t a = tall_scale_offset(g, 0, step), b = tall_scale_offset(g, 1, step);
#pragma unroll
    for (uint32_t i = 0; i < TALL_TILES; i++)
        g->row[i] = tall_scale(g, 0, g->rows[i], a);
    g->all = tall_scale(g, 1, g->col, b);
}

BSMM_DEVICE void tall_note(tall_scales *g, uint32_t side, float scale) {
    const uint32_t bits = bsmm_float_bits(scale) & 0x7fffffffu;
    g->low[side] = bits - 1 < g->low[side] ? bits - 1 : g->low[side];
    g->high[side] = bits > g->high[side] ? bits : g->high[side];
}

/* A wave has sums in several rows of tiles. Computes the factors by which this lane multiplies its
 * sums in two of these rows, `first` and `first` + 1. A factor is A's scale of the lane's row times
 * B's scale, both for this step, times the constant `factor`. */
BSMM_DEVICE void tall_take_scales(tall_scales *g, uint32_t first, float factor) {
    if (first == 0) tall_note(g, 1, g->all);
#pragma unroll
    for (uint32_t i = first; i < first + 2; i++) {
        g->factors[i] = g->row[i] * factor * g->all;
        tall_note(g, 0, g->row[i]);
    }
}

/* The functions from here on compute one step of the main loop, i.e. 128 elements of K. */

typedef struct tall_wave {
    /* `readers` holds two offsets in the LDS buffer of one half of a step. From the first offset
     * the lane reads its rows of A, and from the second its rows of B. */
    uint32_t readers[2];
    /* `rows` and `cols` are the fragments of A and B for one half of a step, i.e. for 64 elements
     * of K. */
    bsmm_i32x4 rows[TALL_TILES], cols[TALL_TILES];
    gemm_sums sums, totals;
} tall_wave;

BSMM_DEVICE void tall_read(tall_wave *w, uint32_t half, uint32_t side, uint32_t tile) {
    const bsmm_i32x4 x = *(const BSMM_IN_LDS bsmm_i32x4 *)(tall_half(half) + w->readers[side] +
                                                           tile * BSMM_CDNA_EDGE * TALL_HALF);
    if (side)
        w->cols[tile] = x;
    else
        w->rows[tile] = x;
}

/* Multiplies a half (64 elements of K) of a step for two 16 x 16 tiles. Two instructions for the
 * same tile would have to wait for each other, because both add to the same sums. Instructions of
 * the two tiles therefore alternate. */
BSMM_DEVICE void tall_multiply(tall_wave *w, uint32_t half, const uint32_t i[2],
                               const uint32_t j[2], const bsmm_i32x4 rows[TALL_TILES]) {
    typedef int64_t i64x2 __attribute__((vector_size(16)));
    const bsmm_f32x4 zero = {0};
#pragma unroll
    for (int part = 0; part < 2; part++)
#pragma unroll
        for (int t = 0; t < 2; t++) {
            const i64x2 x = (i64x2)w->cols[j[t]], y = (i64x2)rows[i[t]];
            bsmm_f32x4 *sum = &w->sums[i[t]][j[t]];
            *sum = bsmm_isa_mfma_fp8_16(x[part], y[part], half || part ? *sum : zero);
        }
}

/* Multiplies the sums of one step of K for the 16 x 16 tile (i, j) by their scales, and adds the
 * products to the tile's totals, i.e. to its sums over all of K. */
BSMM_DEVICE void tall_promote_tile(tall_wave *w, const tall_scales *g, uint32_t i, uint32_t j) {
    const float f = g->factors[i];
    w->totals[i][j] =
        __builtin_elementwise_fma((bsmm_f32x4){f, f, f, f}, w->sums[i][j], w->totals[i][j]);
}

/* Multiplies the sums of a step (128 elements of K) by their scales and adds them to the totals
 * over all of K. This work is spread between matrix instructions. A step has two halves of 64
 * elements of K, and the matrix instructions of a half are issued in eight groups. The kernel calls
 * this function once per group, and `n` (0 to 7) is the number of the group in half `half`.
 *
 * A wave has 4 x 4 tiles of 16 x 16 results. Their sums are complete at different times, and each
 * call handles only some of the tiles:
 * - groups 5, 6 and 7 of half 1: the four tiles of row 0, and the first two tiles of row 1, two
 *   tiles in each group
 * - group 0 of half 0 of the next step: the last two tiles of row 1
 * - groups 6 and 7 of half 0 of the next step: the four tiles of row 2, and the four tiles of row
 *   3 */
BSMM_DEVICE void tall_promote(tall_wave *w, const tall_scales *g, uint32_t half, uint32_t n) {
    const uint32_t pair = half ? n - 5 : 3;
    if (half ? n >= 5 : n == 0)
#pragma unroll
        for (uint32_t j = pair % 2 * 2; j < pair % 2 * 2 + 2; j++)
            tall_promote_tile(w, g, pair / 2, j);
    if (!half && n >= 6)
#pragma unroll
        for (uint32_t j = 0; j < TALL_TILES; j++)
            tall_promote_tile(w, g, n - 4, j);
}

/* While the matrix cores multiply half a step, the wave also loads, stores to LDS and takes scales.
 * This work is divided into eight parts, one for each group of the half's matrix instructions. Does
 * part number `n` (0 to 7). */
BSMM_DEVICE void tall_chore(tall_relay *r, tall_scales *g, gemm_shape s, uint32_t step,
                            uint32_t half, uint32_t n, float factor) {
    if (half == 0 && n < TALL_PARTS) tall_store(r, s, 1, n);
    if (half == 0 && !s.columns && n < TALL_PARTS) tall_load(r, s, step, n);
    if (half == 0 && s.columns && n >= 6)
        tall_load(r, s, step, 2 * n - 12), tall_load(r, s, step, 2 * n - 11);
    if (half == 1 && n >= 2) tall_store(r, s, 0, n - 2);
    if (half == 1 && n < 2) tall_take_scales(g, 2 * n, factor);
    if (half == 1 && n == 2) tall_load_scales(g, step);
}

/* Ends a group of four matrix instructions. The compiler may move nothing across the end, and puts
 * up to three vector instructions after each matrix instruction of the group. These three cost no
 * time: two waves share a SIMD, and while the matrix core executes a matrix instruction of the
 * other wave, this wave can issue three vector instructions. */
BSMM_DEVICE void tall_end_group(void) {
    /* VECTOR and MATRIX are the masks by which __builtin_amdgcn_sched_group_barrier selects vector
     * instructions and matrix instructions. */
    enum { VECTOR = 2, MATRIX = 8 };
#pragma unroll
    for (int i = 0; i < 4; i++) {
        __builtin_amdgcn_sched_group_barrier(MATRIX, 1, 0);
        __builtin_amdgcn_sched_group_barrier(VECTOR, 3, 0);
    }
    __builtin_amdgcn_sched_barrier(0);
}

BSMM_DEVICE void tall_half_step(tall_wave *w, tall_relay *r, tall_scales *g, gemm_shape s,
                                uint32_t half, uint32_t step, float factor) {
    const bsmm_i32x4 late[TALL_TILES] = {w->rows[0], w->rows[1], w->rows[2], w->rows[3]};
    bsmm_isa_barrier();
    __builtin_amdgcn_sched_barrier(0);
#pragma unroll
    for (uint32_t j = 0; j < TALL_TILES; j++) {
        tall_multiply(w, !half, (const uint32_t[2]){2, 3}, (const uint32_t[2]){j, j}, late);
        if (j == 0) tall_read(w, half, 0, 0), tall_read(w, half, 0, 1);
        tall_read(w, half, 1, j);
        tall_promote(w, g, half, j);
        tall_chore(r, g, s, step, half, j, factor);
        tall_end_group();
    }
#pragma unroll
    for (uint32_t n = 0; n < TALL_TILES; n++) {
        const uint32_t i = n / 2, j = n % 2 * 2;
        tall_multiply(w, half, (const uint32_t[2]){i, i}, (const uint32_t[2]){j, j + 1}, w->rows);
        if (n < 2) tall_read(w, half, 0, 2 + n);
        tall_promote(w, g, half, TALL_TILES + n);
        tall_chore(r, g, s, step, half, TALL_TILES + n, factor);
        tall_end_group();
    }
}

/* The functions from here on compute a whole tile. */

BSMM_DEVICE tall_wave tall_wave_of(const gemm_position *at) {
    const uint32_t row = gemm_lane() % BSMM_CDNA_EDGE, piece = gemm_lane() / BSMM_CDNA_EDGE;
    const uint32_t byte = tall_slot(row) * TALL_HALF + (piece ^ tall_swizzle(row)) * 16;
    tall_wave w = {.sums = {{{0}}}, .totals = {{{0}}}, .rows = {{0}}, .cols = {{0}}};
    for (uint32_t side = 0; side < 2; side++)
        w.readers[side] = byte + (at->first[side] - at->tile[side] + side * TALL_A) * TALL_HALF;
    return w;
}

/* Returns true if a product of a scale of A and a scale of B may lie outside the safe range,
 * GEMM_LEAST_FACTOR to GEMM_MOST_FACTOR. It multiplies the smallest scales of A and of B with each
 * other, and the largest ones, so the result may be true although no two scales with such a product
 * meet. */
BSMM_DEVICE bool tall_doubts(const tall_scales *g) {
    const float low = bsmm_bits_float(g->low[0] + 1) * bsmm_bits_float(g->low[1] + 1);
    const float high = bsmm_bits_float(g->high[0]) * bsmm_bits_float(g->high[1]);
    return !(low >= GEMM_LEAST_FACTOR && high <= GEMM_MOST_FACTOR);
}

/* Sets those sums in `totals` to NaN that may be wrong, so that the epilogue computes their results
 * again in double. All sums of the wave become NaN if a product of scales may have been outside the
 * range from GEMM_LEAST_FACTOR to GEMM_MOST_FACTOR (tall_doubts). A single row or column of sums
 * becomes NaN if an operand has a NaN in it, for which `flags` has a flag (tall_relay.h). `flags`
 * may be NULL. */
BSMM_DEVICE void tall_distrust(const tall_scales *g, const gemm_position *at, tall_wave *w,
                               BSMM_IN_LDS const uint32_t *flags) {
    const uint32_t doubts = tall_doubts(g) ? TALL_NAN : 0;
    BSMM_IN_LDS const uint32_t *rows = flags + at->first[0] - at->tile[0];
    BSMM_IN_LDS const uint32_t *cols = flags + TALL_A + at->first[1] - at->tile[1];
#pragma unroll
    for (uint32_t i = 0; i < TALL_TILES; i++)
#pragma unroll
        for (uint32_t j = 0; j < TALL_TILES; j++)
#pragma unroll
            for (uint32_t e = 0; e < GEMM_D_COLS; e++) {
                uint32_t nan = doubts;
                if (flags)
                    nan |=
                        rows[i * BSMM_CDNA_EDGE + gemm_lane() % BSMM_CDNA_EDGE] |
                        cols[j * BSMM_CDNA_EDGE + gemm_lane() / BSMM_CDNA_EDGE * GEMM_D_COLS + e];
                w->totals[i][j][e] = bsmm_bits_float(bsmm_float_bits(w->totals[i][j][e]) | nan);
            }
}

/* Finds out which of the tile's rows of A and of B contain a NaN. Returns the address of an array
 * in LDS that has a flag for each of these rows. The array overwrites the stages of operands, so
 * the function first waits until all waves have read the stages. */
BSMM_DEVICE BSMM_IN_LDS const uint32_t *tall_flags(const tall_relay *r, gemm_shape s) {
    BSMM_IN_LDS uint32_t *flags = (BSMM_IN_LDS uint32_t *)gemm_stages;
    bsmm_isa_wait_barrier();
    if (bsmm_thread() < TALL_A + TALL_B) flags[bsmm_thread()] = 0;
    bsmm_isa_barrier();
    tall_flag_rows(r, s, flags);
    bsmm_isa_barrier();
    return flags;
}

BSMM_DEVICE void tall_run(const bsmm_cdna_gemm *p, gemm_shape s) {
    const gemm_position at = gemm_position_of(p, s, bsmm_group_x());
    const float factor = p->factor;
    tall_relay r = {.nan = 0};
    tall_scales g = tall_scales_of(p, &at);
    tall_wave w = tall_wave_of(&at);
    if (s.columns)
        tall_columns_begin(&r, &at);
    else
        tall_rows_begin(&r, &at);
#pragma unroll
    for (uint32_t n = 0; n < TALL_PARTS; n++)
        tall_load(&r, s, 0, n);
    tall_load_scales(&g, 0);
#pragma unroll
    for (uint32_t n = 0; n < TALL_PARTS; n++)
        tall_store(&r, s, 0, n);
    for (uint32_t step = 0; step < at.steps; step++) {
        const uint32_t next = step + 1 < at.steps ? step + 1 : step;
        tall_half_step(&w, &r, &g, s, 0, next, factor);
        tall_half_step(&w, &r, &g, s, 1, next, factor);
    }
#pragma unroll
    for (uint32_t j = 0; j < TALL_TILES; j++)
        tall_multiply(&w, 1, (const uint32_t[2]){2, 3}, (const uint32_t[2]){j, j}, w.rows);
#pragma unroll
    for (uint32_t n = 0; n < 2 * TALL_TILES; n++)
        tall_promote(&w, &g, 0, n);
    tall_distrust(&g, &at, &w, s.ocp ? tall_flags(&r, s) : NULL);
    gemm_end(&at, s, w.totals);
}

#endif
