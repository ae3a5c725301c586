/* These are the multiply functions of the f32fma engines, i.e. of the loops by which CPU kernels
 * multiply with fp32 FMA. A kernel's file includes this body after it has defined a vector type and
 * two operations. `vec` is a vector of LANES floats, and a register tile is VECTORS such vectors
 * wide. MM(name) is the intrinsic of this name for this vector, such as _mm256_add_ps for add_ps.
 * COLUMNS is the number of elements along K that one iteration of the inner loop multiplies. INLINE
 * and TARGET are function attributes. The two operations are vec_accumulate (*acc += a * b, rounded
 * once) and vec_settle, which hides a value from the optimizer; it may do nothing.
 *
 * A register tile has MR rows of A and VECTORS * LANES rows of B. Elements of A are broadcast from
 * memory. There are three multiply functions:
 *
 * - multiply_folded reads elements that were multiplied by their scales. It sums its range of K (a
 *   chunk) in the accumulators and then adds the sum to the tile in memory, so that the rounding
 *   errors of long sums stay small.
 * - multiply_short does the same for every 128 elements of K.
 * - multiply_segments reads elements without their scales, and also restarts its accumulators at 0
 *   after every 128 elements of K (a segment). It multiplies the sum of a segment by A's scale,
 *   then by B's scale, and adds it to the tile in memory. The two scales are not multiplied with
 *   each other first, because their product may be outside fp32's range. */
#ifndef BSMM_CPU_ENGINE_F32FMA_BODY_H
#define BSMM_CPU_ENGINE_F32FMA_BODY_H

enum { MR = 6, NR = VECTORS * LANES };

INLINE vec vec_load(const float *from) {
    return MM(loadu_ps)(from);
}
INLINE void vec_store(float *to, vec value) {
    MM(storeu_ps)(to, value);
}
INLINE vec vec_set1(float value) {
    return MM(set1_ps)(value);
}
INLINE vec vec_add(vec a, vec b) {
    return MM(add_ps)(a, b);
}
INLINE vec vec_mul(vec a, vec b) {
    return MM(mul_ps)(a, b);
}
INLINE vec vec_fma(vec a, vec b, vec c) {
    return MM(fmadd_ps)(a, b, c);
}

INLINE void add_column(const float *a, const float *b, vec acc[MR][VECTORS]) {
    vec column[VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++)
        column[v] = vec_load(b + v * LANES);
#pragma GCC unroll 6
    for (int r = 0; r < MR; r++) {
        vec x = vec_set1(a[r]);
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++)
            vec_accumulate(&acc[r][v], x, column[v]);
    }
}

/* Multiplies packed panels of A and B over k elements of K and adds the results to the accumulators
 * of a register tile. k must be a multiple of COLUMNS. */
INLINE void add_columns(const float *a, const float *b, int64_t k, vec acc[MR][VECTORS]) {
    for (int64_t i = 0; i < k; i += COLUMNS, a += COLUMNS * MR, b += COLUMNS * NR)
#pragma GCC unroll 8
        for (int j = 0; j < COLUMNS; j++)
            add_column(a + j * MR, b + j * NR, acc);
}

/* A loop sums a segment (128 elements of K) in registers, and the code after the loop multiplies
 * the sums by the scales. This function is called between the loop and that code. It hides the
 * values of the accumulators from the optimizer. Otherwise compilers would optimize the two
 * together, and keep some accumulators in memory during the whole loop. */
INLINE void settle(vec acc[MR][VECTORS]) {
#pragma GCC unroll 6
    for (int r = 0; r < MR; r++)
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++)
            vec_settle(&acc[r][v]);
}

INLINE void clear(vec acc[MR][VECTORS]) {
#pragma GCC unroll 6
    for (int r = 0; r < MR; r++)
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++)
            acc[r][v] = vec_set1(0);
}

/* Adds the accumulators to the tile `c` in memory, or stores them there if `add` is false. `pitch`
 * is the stride of the tile's rows in floats. */
INLINE void add_sums(vec acc[MR][VECTORS], float *c, int64_t pitch, bool add) {
#pragma GCC unroll 6
    for (int r = 0; r < MR; r++)
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            float *at = c + r * pitch + v * LANES;
            vec_store(at, add ? vec_add(vec_load(at), acc[r][v]) : acc[r][v]);
        }
}

/* Multiplies a panel of A by a panel of B over `units` units of K, i.e. ranges of
 * BSMM_F32FMA_FOLDED_UNIT elements, and adds the results to the tile `c`. To keep rounding errors
 * small, it divides K into chunks of `chunk` units. The accumulators sum each chunk from 0, and the
 * chunk's sums are then added to `c`. If `add` is false, the first chunk overwrites `c` instead. */
INLINE void multiply_chunks(const uint8_t *a, const uint8_t *b, int64_t units, int64_t chunk,
                            float *c, int64_t pitch, bool add, bsmm_ahead ahead) {
    for (int64_t left = units; left > 0; left -= chunk, add = true) {
        vec acc[MR][VECTORS];
        clear(acc);
        for (int64_t u = 0; u < bsmm_min_i64(left, chunk); u++) {
            bsmm_ask_ahead(&ahead);
            add_columns((const float *)(const void *)a, (const float *)(const void *)b,
                        BSMM_F32FMA_FOLDED_UNIT, acc);
            a += BSMM_F32FMA_UNIT_BYTES(MR, BSMM_F32FMA_FOLDED_UNIT);
            b += BSMM_F32FMA_UNIT_BYTES(NR, BSMM_F32FMA_FOLDED_UNIT);
        }
        settle(acc);
        add_sums(acc, c, pitch, add);
    }
}

TARGET static void multiply_folded(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                   int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply_chunks(a, b, units, units, c, pitch, add, ahead);
}

TARGET static void multiply_short(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                  int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply_chunks(a, b, units, BSMM_F32FMA_SHORT_CHUNK / BSMM_F32FMA_FOLDED_UNIT, c, pitch, add,
                    ahead);
}

/* The accumulators hold the sums of a segment (128 elements of K) for a tile. Multiplies each sum
 * by the scale of its row of A and then by that of its row of B. Adds the results to the tile `c`
 * in memory, or stores them there if `add` is false. */
INLINE void add_scaled(const float *a_scales, const float *b_scales, vec acc[MR][VECTORS], float *c,
                       int64_t pitch, bool add) {
#pragma GCC unroll 6
    for (int r = 0; r < MR; r++) {
        vec row = vec_set1(a_scales[r]);
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            float *at = c + r * pitch + v * LANES;
            vec before = add ? vec_load(at) : vec_set1(0);
            vec_store(at, vec_fma(vec_mul(acc[r][v], row), vec_load(b_scales + v * LANES), before));
        }
    }
}

TARGET static void multiply_segments(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                     int64_t pitch, bool add, bsmm_ahead ahead) {
    for (int64_t u = 0; u < units; u++) {
        bsmm_ask_ahead(&ahead);
        const float *a_unit = (const float *)(const void *)a;
        const float *b_unit = (const float *)(const void *)b;
        vec acc[MR][VECTORS];
        clear(acc);
        add_columns(a_unit, b_unit, BSMM_F32FMA_SEGMENT_UNIT, acc);
        settle(acc);
        add_scaled(a_unit + MR * BSMM_F32FMA_SEGMENT_UNIT, b_unit + NR * BSMM_F32FMA_SEGMENT_UNIT,
                   acc, c, pitch, add || u > 0);
        a += BSMM_F32FMA_UNIT_BYTES(MR, BSMM_F32FMA_SEGMENT_UNIT);
        b += BSMM_F32FMA_UNIT_BYTES(NR, BSMM_F32FMA_SEGMENT_UNIT);
    }
}

static void pack(const bsmm_product *p, bool is_b, int64_t row, int64_t rows, bsmm_panel *to) {
    bsmm_f32fma_pack(p, is_b, is_b ? NR : MR, row, rows, to);
}

#define ENGINE(unit_length, multiplies)                                                            \
    {                                                                                              \
        .values = "f32", .mr = MR, .nr = NR, .unit = unit_length,                                  \
        .a_unit_bytes = BSMM_F32FMA_UNIT_BYTES(MR, unit_length),                                   \
        .b_unit_bytes = BSMM_F32FMA_UNIT_BYTES(NR, unit_length),                                   \
        .longest_chunk = BSMM_F32FMA_CHUNK, .mc = 192, .nc = 256,                                  \
        .wide_limit = BSMM_F32FMA_SPAN_LIMIT, .pack = pack, .multiply = multiplies                 \
    }

static const bsmm_engine folded = ENGINE(BSMM_F32FMA_FOLDED_UNIT, multiply_folded);
static const bsmm_engine folded_short = ENGINE(BSMM_F32FMA_FOLDED_UNIT, multiply_short);
static const bsmm_engine segmented = ENGINE(BSMM_F32FMA_SEGMENT_UNIT, multiply_segments);

static const bsmm_engine *engine_of(const bsmm_product *p) {
    if (bsmm_f32fma_by_segment(p)) return &segmented;
    return bsmm_f32fma_longest_chunk(p) == BSMM_F32FMA_CHUNK ? &folded : &folded_short;
}

#endif
