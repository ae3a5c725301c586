/* The kernel cpu_avx512_bf16dot multiplies operands of all formats that are exact in bf16 by the
 * instruction vdpbf16ps, which adds the dot product of two pairs of bf16 numbers to an fp32
 * accumulator.
 *
 * A register tile has 8 rows of A and 48 rows of B: 24 registers of fp32 accumulators and 3
 * registers of B. Elements of A are broadcast from memory. If scales are folded into the packed
 * elements, the loop contains only dot products. Otherwise the accumulators restart at 0 for each
 * segment of 128 elements of K. The sum of a segment is multiplied by the product of the two fp32
 * scales and added to the tile in memory. vdpbf16ps rounds like two FMAs, the first of which adds
 * the product of the odd elements. docs/NUMERICS.md states the error bound.
 *
 * On processors on which vdpbf16ps takes the time of four FMAs, the kernel uses two fp32 FMAs
 * instead. It reads the same packed B, and the results are bitwise identical. A chunk of a panel of
 * B is expanded to fp32 once for all the tiles that use it, and A is expanded while it is packed.
 * Nearly all instructions of the inner loop are then FMAs. */
#include "base/cpu.h"
#include "cpu/engine/engine_gemm_kernel.h"
#include "cpu/pack/pack_bf16dot.h"
#include "cpu/small_m/small_m_tiny.h"

#if defined(__x86_64__)

#    include <immintrin.h>
#    include <string.h>

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { MR = 8, NR = 48, VECTORS = 3 };

INLINE void add_dots(const uint8_t *a, const __m512i column[VECTORS], int vectors,
                     __m512 acc[MR][VECTORS]) {
#    pragma GCC unroll 8
    for (int r = 0; r < MR; r++) {
        __m512i x = _mm512_set1_epi32(((const int32_t *)(const void *)a)[r]);
#    pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            acc[r][v] = _mm512_dpbf16_ps(acc[r][v], (__m512bh)x, (__m512bh)column[v]);
    }
}

INLINE void add_fmas(const uint8_t *a, const __m512i column[VECTORS], int vectors,
                     __m512 acc[MR][VECTORS]) {
#    pragma GCC unroll 8
    for (int r = 0; r < MR; r++) {
        __m512 x = _mm512_set1_ps(((const float *)(const void *)a)[r]);
#    pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            acc[r][v] = _mm512_fmadd_ps(x, _mm512_castsi512_ps(column[v]), acc[r][v]);
    }
}

/* Adds the products of `unit` elements of K to the accumulators. If `wide` is false, A and B are
 * packed as bf16, and one dot product instruction multiplies a pair of elements of K. If `wide` is
 * true, A and B were expanded to fp32, and one FMA multiplies one element of K. Both read 4 bytes
 * per row at a time. `vectors` is less than VECTORS if only the first columns of the register tile
 * are needed. */
INLINE void add_unit(const uint8_t *a, const uint8_t *b, int64_t unit, bool wide, int vectors,
                     __m512 acc[MR][VECTORS]) {
    for (int64_t i = 0; i < (wide ? unit : unit / 2); i++) {
        __m512i column[VECTORS];
#    pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            column[v] = _mm512_load_si512(b + (i * VECTORS + v) * 64);
        if (wide)
            add_fmas(a + i * MR * 4, column, vectors, acc);
        else
            add_dots(a + i * MR * 4, column, vectors, acc);
    }
}

INLINE int64_t unit_bytes(int64_t width, int64_t unit, bool wide) {
    return wide ? BSMM_BF16_WIDE_UNIT_BYTES(width, unit) : BSMM_BF16_UNIT_BYTES(width, unit);
}

INLINE void multiply_folded(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                            int64_t pitch, bool add, bsmm_ahead ahead, bool wide, int vectors) {
    __m512 acc[MR][VECTORS];
#    pragma GCC unroll 8
    for (int r = 0; r < MR; r++)
#    pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            acc[r][v] = _mm512_setzero_ps();
    for (int64_t u = 0; u < units; u++) {
        bsmm_ask_ahead(&ahead);
        add_unit(a, b, BSMM_BF16_FOLDED_UNIT, wide, vectors, acc);
        a += unit_bytes(MR, BSMM_BF16_FOLDED_UNIT, wide);
        b += unit_bytes(NR, BSMM_BF16_FOLDED_UNIT, wide);
    }
#    pragma GCC unroll 8
    for (int r = 0; r < MR; r++)
#    pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            float *at = c + r * pitch + 16 * v;
            _mm512_storeu_ps(at, add ? _mm512_add_ps(_mm512_loadu_ps(at), acc[r][v]) : acc[r][v]);
        }
}

/* Multiplies the accumulators, which hold the sums of 128 elements of K, by the products of both
 * operands' scales. It adds the results to the tile `c` in memory, or stores them there if `add` is
 * false. */
INLINE void add_scaled(const float *a_scales, const float *b_scales, int vectors,
                       __m512 acc[MR][VECTORS], float *c, int64_t pitch, bool add) {
#    pragma GCC unroll 3
    for (int v = 0; v < vectors; v++) {
        __m512 column = _mm512_load_ps(b_scales + 16 * v);
#    pragma GCC unroll 8
        for (int r = 0; r < MR; r++) {
            __m512 scale = _mm512_mul_ps(_mm512_set1_ps(a_scales[r]), column);
            float *at = c + r * pitch + 16 * v;
            __m512 before = add ? _mm512_loadu_ps(at) : _mm512_setzero_ps();
            _mm512_storeu_ps(at, _mm512_fmadd_ps(acc[r][v], scale, before));
        }
    }
}

INLINE void multiply_segments(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                              int64_t pitch, bool add, bsmm_ahead ahead, bool wide, int vectors) {
    /* `elements` is the number of bytes of one row's elements in a unit of 128 elements of K. The
     * fp32 scales follow after the elements of all rows. */
    const int64_t elements = BSMM_BF16_SEGMENT_UNIT * (wide ? 4 : 2);
    for (int64_t u = 0; u < units; u++) {
        bsmm_ask_ahead(&ahead);
        __m512 acc[MR][VECTORS];
#    pragma GCC unroll 8
        for (int r = 0; r < MR; r++)
#    pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                acc[r][v] = _mm512_setzero_ps();
        add_unit(a, b, BSMM_BF16_SEGMENT_UNIT, wide, vectors, acc);
        add_scaled((const float *)(const void *)(a + MR * elements),
                   (const float *)(const void *)(b + NR * elements), vectors, acc, c, pitch,
                   add || u > 0);
        a += unit_bytes(MR, BSMM_BF16_SEGMENT_UNIT, wide);
        b += unit_bytes(NR, BSMM_BF16_SEGMENT_UNIT, wide);
    }
}

/* Expands a panel (NR rows) of B from bf16 to fp32. A unit is `unit` elements of K. For each pair
 * of elements along K, the function writes the odd elements of all NR rows and then the even
 * elements. Packed A has the same order. If a unit ends with fp32 scales, they are copied
 * unchanged. */
INLINE void widen_units(const uint8_t *b, int64_t units, int64_t unit, uint8_t *to) {
    enum { ROW = VECTORS * 64 };
    bool scaled = unit == BSMM_BF16_SEGMENT_UNIT;
    for (int64_t u = 0; u < units; u++, b += scaled ? ROW : 0, to += scaled ? ROW : 0) {
        for (int64_t i = 0; i < unit / 2; i++, b += ROW, to += 2 * ROW)
            for (int v = 0; v < ROW; v += 64) {
                __m512i pair = _mm512_load_si512(b + v);
                _mm512_store_si512(to + v, _mm512_maskz_mov_epi16(0xaaaaaaaa, pair));
                _mm512_store_si512(to + ROW + v, _mm512_slli_epi32(pair, 16));
            }
        if (scaled) memcpy(to, b, ROW);
    }
}

TARGET static void widen_folded(const uint8_t *b, int64_t units, uint8_t *to) {
    widen_units(b, units, BSMM_BF16_FOLDED_UNIT, to);
}

TARGET static void widen_segments(const uint8_t *b, int64_t units, uint8_t *to) {
    widen_units(b, units, BSMM_BF16_SEGMENT_UNIT, to);
}

TARGET static void dots_folded(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                               int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply_folded(a, b, units, c, pitch, add, ahead, false, VECTORS);
}

TARGET static void dots_segmented(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                  int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply_segments(a, b, units, c, pitch, add, ahead, false, VECTORS);
}

TARGET static void fmas_folded(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                               int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply_folded(a, b, units, c, pitch, add, ahead, true, VECTORS);
}

TARGET static void fmas_segmented(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                  int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply_segments(a, b, units, c, pitch, add, ahead, true, VECTORS);
}

/* Multiplies by multiply_folded or multiply_segments, but computes only 1 to 32 columns of D, i.e.
 * one or two vectors of 16 columns instead of three. The number of vectors is a constant in each of
 * the four calls, so the compiler makes a loop over K for each number, which keeps its accumulators
 * in registers. */
INLINE void multiply_narrow(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                            int64_t pitch, bool add, bsmm_ahead ahead, int64_t cols, bool wide,
                            bool segmented) {
    if (segmented && cols > 16)
        multiply_segments(a, b, units, c, pitch, add, ahead, wide, 2);
    else if (segmented)
        multiply_segments(a, b, units, c, pitch, add, ahead, wide, 1);
    else if (cols > 16)
        multiply_folded(a, b, units, c, pitch, add, ahead, wide, 2);
    else
        multiply_folded(a, b, units, c, pitch, add, ahead, wide, 1);
}

TARGET static void dots_folded_narrow(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                      int64_t pitch, bool add, bsmm_ahead ahead, int64_t cols) {
    multiply_narrow(a, b, units, c, pitch, add, ahead, cols, false, false);
}

TARGET static void dots_segmented_narrow(const uint8_t *a, const uint8_t *b, int64_t units,
                                         float *c, int64_t pitch, bool add, bsmm_ahead ahead,
                                         int64_t cols) {
    multiply_narrow(a, b, units, c, pitch, add, ahead, cols, false, true);
}

TARGET static void fmas_folded_narrow(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                      int64_t pitch, bool add, bsmm_ahead ahead, int64_t cols) {
    multiply_narrow(a, b, units, c, pitch, add, ahead, cols, true, false);
}

TARGET static void fmas_segmented_narrow(const uint8_t *a, const uint8_t *b, int64_t units,
                                         float *c, int64_t pitch, bool add, bsmm_ahead ahead,
                                         int64_t cols) {
    multiply_narrow(a, b, units, c, pitch, add, ahead, cols, true, true);
}

static void pack(const bsmm_product *p, bool is_b, int64_t row, int64_t rows, bsmm_panel *to) {
    bsmm_bf16_pack(p, is_b ? BSMM_BF16_B : BSMM_BF16_A, is_b ? NR : MR, row, rows, to);
}

static void pack_wide(const bsmm_product *p, bool is_b, int64_t row, int64_t rows, bsmm_panel *to) {
    bsmm_bf16_pack(p, is_b ? BSMM_BF16_B : BSMM_BF16_A_WIDE, is_b ? NR : MR, row, rows, to);
}

#    define BY_DOTS(unit_length, multiplies)                                                       \
        {                                                                                          \
            .values = "bf16", .mr = MR, .nr = NR, .unit = unit_length,                             \
            .a_unit_bytes = BSMM_BF16_UNIT_BYTES(MR, unit_length),                                 \
            .b_unit_bytes = BSMM_BF16_UNIT_BYTES(NR, unit_length),                                 \
            .longest_chunk = BSMM_BF16_CHUNK, .mc = 128, .nc = 384, .pack = pack,                  \
            .multiply = multiplies, .narrow = multiplies##_narrow, .narrow_cols = NR - 16          \
        }
#    define BY_FMAS(unit_length, widens, multiplies)                                               \
        {                                                                                          \
            .values = "bf16", .mr = MR, .nr = NR, .unit = unit_length,                             \
            .a_unit_bytes = BSMM_BF16_WIDE_UNIT_BYTES(MR, unit_length),                            \
            .b_unit_bytes = BSMM_BF16_UNIT_BYTES(NR, unit_length),                                 \
            .longest_chunk = BSMM_BF16_CHUNK, .mc = 256, .nc = 384, .pack = pack_wide,             \
            .widen = widens, .multiply = multiplies, .narrow = multiplies##_narrow,                \
            .narrow_cols = NR - 16,                                                                \
            .widened_unit_bytes = BSMM_BF16_WIDE_UNIT_BYTES(NR, unit_length)                       \
        }

/* `engines` holds the engines, indexed by [products by FMAs instead of dot products][sums are
 * scaled after each 128 elements of K]. */
static const bsmm_engine engines[2][2] = {
    {BY_DOTS(BSMM_BF16_FOLDED_UNIT, dots_folded), BY_DOTS(BSMM_BF16_SEGMENT_UNIT, dots_segmented)},
    {BY_FMAS(BSMM_BF16_FOLDED_UNIT, widen_folded, fmas_folded),
     BY_FMAS(BSMM_BF16_SEGMENT_UNIT, widen_segments, fmas_segmented)},
};

static const bsmm_engine *engine_of(const bsmm_product *p) {
    bool by_fma = bsmm_cpu_features() & BSMM_CPU_TWO_PORTS;
    return &engines[by_fma][bsmm_bf16_by_segment(p)];
}

#endif

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    static const packed_needs needs = {BSMM_CPU_AVX512_BF16, "the processor has no AVX-512 BF16",
                                       bsmm_bf16_refuse};
    const char *reason = refuse_packed(&needs, p, state, why, size);
    if (!reason) bsmm_small_m_tiny_make(p, false, state);
    return reason;
}

BSMM_CHECK_STATE(bsmm_tiny_gemm);

const bsmm_kernel bsmm_kernel_cpu_avx512_bf16dot = {
    .name = "cpu_avx512_bf16dot",
    BSMM_PACKED_KERNEL_WITH(bsmm_tiny_gemm, bsmm_small_m_tiny_run),
    .refuse = refuse,
    .bound = bsmm_bf16_bound,
};
