/* cpu_avx512_bf16dot: everything that is exact in bf16, by AVX512-BF16's dot product of pairs.
 *
 * Tile: 8 rows of A x 48 of B in 24 fp32 accumulators, 3 registers of B, A broadcast from memory.
 * Folded form: nothing but dot products. Segmented form: the accumulators begin anew every 128 of K
 * and are added to the tile in memory, times the product of two fp32 scales. vdpbf16ps rounds like
 * two FMAs, of the odd element first; bound: 1.1 * (K + 4) * 2^-24 * sum |a||b| folded, and
 * 1.1 * (128 + K / 128 + 4) * 2^-24 segmented.
 *
 * Where vdpbf16ps takes the time of four FMAs, those two FMAs are done instead: the same bits of
 * the same packed B, whose pairs are taken apart in registers; A is widened to fp32 when packed. So
 * 48 of 54 slots do FMAs. */
#include "base/cpu.h"
#include "cpu/bf16.h"
#include "cpu/packed_kernel.h"

#if defined(__x86_64__)

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { MR = 8, NR = 48, VECTORS = 3 };

/* ---- a pair of K ---- */

INLINE void add_dots(const uint8_t *a, const __m512i column[VECTORS], __m512 acc[MR][VECTORS]) {
#    pragma GCC unroll 8
    for (int r = 0; r < MR; r++) {
        __m512i x = _mm512_set1_epi32(((const int32_t *)(const void *)a)[r]);
#    pragma GCC unroll 3
        for (int v = 0; v < VECTORS; v++)
            acc[r][v] = _mm512_dpbf16_ps(acc[r][v], (__m512bh)x, (__m512bh)column[v]);
    }
}

INLINE void add_element(const float *a, const __m512i column[VECTORS], __m512 acc[MR][VECTORS]) {
#    pragma GCC unroll 8
    for (int r = 0; r < MR; r++) {
        __m512 x = _mm512_set1_ps(a[r]);
#    pragma GCC unroll 3
        for (int v = 0; v < VECTORS; v++)
            acc[r][v] = _mm512_fmadd_ps(x, _mm512_castsi512_ps(column[v]), acc[r][v]);
    }
}

/* Even elements are taken after the odd ones are done with, and odd ones by a mask register: 24
 * accumulators leave 8 registers. */
INLINE void add_fmas(const uint8_t *a, const __m512i column[VECTORS], __m512 acc[MR][VECTORS]) {
    const float *values = (const float *)(const void *)a;
    __m512i half[VECTORS];
#    pragma GCC unroll 3
    for (int v = 0; v < VECTORS; v++)
        half[v] = _mm512_maskz_mov_epi16(0xaaaaaaaa, column[v]);
    add_element(values, half, acc);
#    pragma GCC unroll 3
    for (int v = 0; v < VECTORS; v++)
        half[v] = _mm512_slli_epi32(column[v], 16);
    add_element(values + MR, half, acc);
}

/* ---- tiles ---- */

/* Bytes of a pair of MR rows. */
enum { PAIR = MR * 4, WIDE_PAIR = 2 * MR * 4 };

INLINE void add_pairs(const uint8_t *a, const uint8_t *b, int64_t pairs, bool wide,
                      __m512 acc[MR][VECTORS]) {
    for (int64_t i = 0; i < pairs; i++) {
        __m512i column[VECTORS];
#    pragma GCC unroll 3
        for (int v = 0; v < VECTORS; v++)
            column[v] = _mm512_load_si512(b + (i * VECTORS + v) * 64);
        if (wide)
            add_fmas(a + i * WIDE_PAIR, column, acc);
        else
            add_dots(a + i * PAIR, column, acc);
    }
}

INLINE void multiply_folded(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                            int64_t pitch, bool add, bool wide) {
    __m512 acc[MR][VECTORS];
#    pragma GCC unroll 8
    for (int r = 0; r < MR; r++)
#    pragma GCC unroll 3
        for (int v = 0; v < VECTORS; v++)
            acc[r][v] = add ? _mm512_loadu_ps(c + r * pitch + 16 * v) : _mm512_setzero_ps();
    add_pairs(a, b, units * (BSMM_BF16_FOLDED_UNIT / 2), wide, acc);
#    pragma GCC unroll 8
    for (int r = 0; r < MR; r++)
#    pragma GCC unroll 3
        for (int v = 0; v < VECTORS; v++)
            _mm512_storeu_ps(c + r * pitch + 16 * v, acc[r][v]);
}

/* c = (or +=) acc times the products of the unit's scales. */
INLINE void add_scaled(const float *a_scales, const float *b_scales, __m512 acc[MR][VECTORS],
                       float *c, int64_t pitch, bool add) {
#    pragma GCC unroll 3
    for (int v = 0; v < VECTORS; v++) {
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
                              int64_t pitch, bool add, bool wide) {
    for (int64_t u = 0; u < units; u++) {
        __m512 acc[MR][VECTORS];
#    pragma GCC unroll 8
        for (int r = 0; r < MR; r++)
#    pragma GCC unroll 3
            for (int v = 0; v < VECTORS; v++)
                acc[r][v] = _mm512_setzero_ps();
        add_pairs(a, b, BSMM_BF16_SEGMENT_UNIT / 2, wide, acc);
        add_scaled((const float *)(const void *)(a + BSMM_BF16_SEGMENT_UNIT / 2 *
                                                         (wide ? WIDE_PAIR : PAIR)),
                   (const float *)(const void *)(b + NR * BSMM_BF16_SEGMENT_UNIT * 2), acc, c,
                   pitch, add || u > 0);
        a += wide ? BSMM_BF16_WIDE_UNIT_BYTES(MR, BSMM_BF16_SEGMENT_UNIT)
                  : BSMM_BF16_UNIT_BYTES(MR, BSMM_BF16_SEGMENT_UNIT);
        b += BSMM_BF16_UNIT_BYTES(NR, BSMM_BF16_SEGMENT_UNIT);
    }
}

/* ---- engines ---- */

TARGET static void dots_folded(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                               int64_t pitch, bool add) {
    multiply_folded(a, b, units, c, pitch, add, false);
}

TARGET static void dots_segmented(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                  int64_t pitch, bool add) {
    multiply_segments(a, b, units, c, pitch, add, false);
}

TARGET static void fmas_folded(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                               int64_t pitch, bool add) {
    multiply_folded(a, b, units, c, pitch, add, true);
}

TARGET static void fmas_segmented(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                  int64_t pitch, bool add) {
    multiply_segments(a, b, units, c, pitch, add, true);
}

static void pack(const bsmm_product *p, bool is_b, int64_t row, int64_t rows, bsmm_panel *to) {
    bsmm_bf16_pack(p, is_b, is_b ? NR : MR, row, rows, to);
}

static void pack_wide(const bsmm_product *p, bool is_b, int64_t row, int64_t rows, bsmm_panel *to) {
    if (is_b)
        bsmm_bf16_pack(p, true, NR, row, rows, to);
    else
        bsmm_bf16_pack_wide(p, MR, row, rows, to);
}

#    define ENGINE(unit_length, a_bytes, packs, multiplies)                                        \
        {                                                                                          \
            .mr = MR, .nr = NR, .unit = unit_length, .a_unit_bytes = a_bytes(MR, unit_length),     \
            .b_unit_bytes = BSMM_BF16_UNIT_BYTES(NR, unit_length), .chunk = 512 / (unit_length),   \
            .mc = 128, .nc = 384, .pack = packs, .multiply = multiplies                            \
        }

/* [whether by FMA][whether segmented] */
static const bsmm_engine engines[2][2] = {
    {ENGINE(BSMM_BF16_FOLDED_UNIT, BSMM_BF16_UNIT_BYTES, pack, dots_folded),
     ENGINE(BSMM_BF16_SEGMENT_UNIT, BSMM_BF16_UNIT_BYTES, pack, dots_segmented)},
    {ENGINE(BSMM_BF16_FOLDED_UNIT, BSMM_BF16_WIDE_UNIT_BYTES, pack_wide, fmas_folded),
     ENGINE(BSMM_BF16_SEGMENT_UNIT, BSMM_BF16_WIDE_UNIT_BYTES, pack_wide, fmas_segmented)},
};

static const bsmm_engine *engine_of(const bsmm_product *p) {
    bool by_fma = bsmm_cpu_features() & BSMM_CPU_TWO_PORTS;
    return &engines[by_fma][bsmm_bf16_by_segment(p)];
}

#endif

static const char *refuse(const bsmm_product *p, char *why, size_t size) {
    static const packed_needs needs = {BSMM_CPU_AVX512_BF16, "the processor has no AVX-512 BF16",
                                       bsmm_bf16_refuse};
    return refuse_packed(&needs, p, why, size);
}

const bsmm_kernel bsmm_kernel_cpu_avx512_bf16dot = {
    .name = "cpu_avx512_bf16dot",
    BSMM_PACKED_KERNEL,
    .refuse = refuse,
    .bound = bsmm_bf16_bound,
};
