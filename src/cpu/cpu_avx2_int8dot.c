/* cpu_avx2_int8dot: e2m1 and e2m3 on both sides, by AVX2's multiply-add of bytes.
 *
 * vpmaddubsw adds two products of an unsigned and a signed byte and saturates at 16 bits, which
 * these bytes never reach: B's are at most 24 (e2m1) or 120 (e2m3), A's 12 or 60 in magnitude, so
 * that two products are at most 2 * 120 * 60 = 14400. Sums go on in 16 bits as far as 32767 carries
 * them: over a unit's 8 groups (mixed pairs: 8 * 2 * 1440 = 23040), or 2 where both sides are e2m3
 * (28800). vpmaddwd takes them to 32 bits.
 *
 * Tile: 4 rows of A x 16 of B in 8 registers of sums, which leaves compilers room; the fp32 sums
 * stay in D's block in L1, touched once per unit. A unit's sum is exact and one fp32 FMA adds it,
 * as in cpu_avx512_int8dot: the results have the same bits. Bound: (units + 1) * 2^-24 *
 * sum |a||b|, a unit being 32 of K (both sides e8m0) or 16. */
#include "base/cpu.h"
#include "cpu/int8.h"
#include "cpu/packed_kernel.h"

#if defined(__x86_64__)

#    include <immintrin.h>
#    include <string.h>

#    define TARGET __attribute__((target("avx2,fma")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { MR = 4, NR = 16, VECTORS = 2 };

INLINE __m256i load(const uint8_t *from) {
    return _mm256_load_si256((const __m256i *)(const void *)from);
}

INLINE __m256i broadcast(const uint8_t *words, int64_t i) {
    return _mm256_set1_epi32(((const int32_t *)(const void *)words)[i]);
}

/* Compilers give sums of integers another order, for which registers are too few: not past this. */
INLINE void keep_order(__m256i *sum) {
    __asm__("" : "+x"(*sum));
}

/* Sums of one unit, two groups at a time: exact in 16 bits, of which vpmaddwd has yet to add pairs,
 * or in 32 where 16 do not carry them further than two groups. */
INLINE void sum_unit(const uint8_t *a, const uint8_t *b, int64_t unit, bool wide,
                     __m256i sum[MR][VECTORS]) {
#    pragma GCC unroll 4
    for (int64_t g = 0; g < unit / 4; g += 2, a += 2 * MR * 4, b += 2 * NR * 4) {
        __m256i even[VECTORS], odd[VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            even[v] = load(b + 32 * v);
            odd[v] = load(b + NR * 4 + 32 * v);
        }
#    pragma GCC unroll 4
        for (int r = 0; r < MR; r++) {
            __m256i x = broadcast(a, r), y = broadcast(a, MR + r);
            for (int v = 0; v < VECTORS; v++) {
                __m256i part = _mm256_add_epi16(_mm256_maddubs_epi16(even[v], x),
                                                _mm256_maddubs_epi16(odd[v], y));
                if (wide) part = _mm256_madd_epi16(part, _mm256_set1_epi16(1));
                sum[r][v] = g == 0 ? part
                            : wide ? _mm256_add_epi32(sum[r][v], part)
                                   : _mm256_add_epi16(sum[r][v], part);
                keep_order(&sum[r][v]);
            }
        }
    }
}

/* The product of A's scale and B's, in both forms. */
INLINE __m256 scale_product(__m256i a_scale, __m256i b_scale, bool by_exponent) {
    if (by_exponent) return _mm256_castsi256_ps(_mm256_add_epi32(a_scale, b_scale));
    return _mm256_mul_ps(_mm256_castsi256_ps(a_scale), _mm256_castsi256_ps(b_scale));
}

/* A row's scales are read before its sums are stored: what is read after may have been written. */
INLINE void add_unit(const uint8_t *a, const uint8_t *b, int64_t unit, bool wide, bool by_exponent,
                     float *c, int64_t pitch) {
    const uint8_t *begins = a + MR * unit, *a_scales = begins + MR * 4;
    __m256i sum[MR][VECTORS], b_scale[VECTORS];
    sum_unit(a, b, unit, wide, sum);
    for (int v = 0; v < VECTORS; v++) {
        b_scale[v] = load(b + NR * unit + 32 * v);
        keep_order(&b_scale[v]);
    }
#    pragma GCC unroll 4
    for (int r = 0; r < MR; r++, c += pitch) {
        __m256i begin = broadcast(begins, r), a_scale = broadcast(a_scales, r);
        __m256 total[VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            __m256i exact = wide ? sum[r][v] : _mm256_madd_epi16(sum[r][v], _mm256_set1_epi16(1));
            total[v] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(begin, exact)),
                                       scale_product(a_scale, b_scale[v], by_exponent),
                                       _mm256_loadu_ps(c + 8 * v));
        }
        for (int v = 0; v < VECTORS; v++)
            _mm256_storeu_ps(c + 8 * v, total[v]);
    }
}

INLINE void multiply(const uint8_t *a, const uint8_t *b, int64_t units, float *c, int64_t pitch,
                     bool add, bsmm_ahead ahead, int64_t unit, bool wide, bool by_exponent) {
    if (!add)
        for (int r = 0; r < MR; r++)
            memset(c + r * pitch, 0, NR * sizeof(float));
    for (int64_t u = 0; u < units; u++) {
        bsmm_ask_ahead(&ahead);
        add_unit(a, b, unit, wide, by_exponent, c, pitch);
        a += BSMM_INT8_UNIT_BYTES(MR, unit, BSMM_INT8_A);
        b += BSMM_INT8_UNIT_BYTES(NR, unit, BSMM_INT8_B);
    }
}

enum { EXPONENT = BSMM_INT8_EXPONENT_UNIT, VALUE = BSMM_INT8_MULTIPLY_UNIT };

/* 16-bit sums over a whole unit, and over 2 groups where both sides are e2m3. */
TARGET static void multiply_exponent(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                     int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply(a, b, units, c, pitch, add, ahead, EXPONENT, false, true);
}

TARGET static void multiply_exponent_e2m3(const uint8_t *a, const uint8_t *b, int64_t units,
                                          float *c, int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply(a, b, units, c, pitch, add, ahead, EXPONENT, true, true);
}

TARGET static void multiply_value(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                  int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply(a, b, units, c, pitch, add, ahead, VALUE, false, false);
}

TARGET static void multiply_value_e2m3(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                       int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply(a, b, units, c, pitch, add, ahead, VALUE, true, false);
}

static void pack(const bsmm_product *p, bool is_b, int64_t row, int64_t rows, bsmm_panel *to) {
    bsmm_int8_pack(p, is_b ? BSMM_INT8_B : BSMM_INT8_A, is_b ? NR : MR, bsmm_int8_unit(p), row,
                   rows, to);
}

#    define ENGINE(unit_length, multiplies)                                                        \
        {                                                                                          \
            .mr = MR, .nr = NR, .unit = unit_length,                                               \
            .a_unit_bytes = BSMM_INT8_UNIT_BYTES(MR, unit_length, BSMM_INT8_A),                    \
            .b_unit_bytes = BSMM_INT8_UNIT_BYTES(NR, unit_length, BSMM_INT8_B),                    \
            .chunk = 2048 / (unit_length), .mc = 192, .nc = 256, .pack = pack,                     \
            .multiply = multiplies                                                                 \
        }

/* [whether by exponent][whether both sides are e2m3] */
static const bsmm_engine engines[2][2] = {
    {ENGINE(VALUE, multiply_value), ENGINE(VALUE, multiply_value_e2m3)},
    {ENGINE(EXPONENT, multiply_exponent), ENGINE(EXPONENT, multiply_exponent_e2m3)},
};

static const bsmm_engine *engine_of(const bsmm_product *p) {
    bool e2m3 = p->a.m.format.elem == BSMM_ELEM_E2M3 && p->b.m.format.elem == BSMM_ELEM_E2M3;
    return &engines[bsmm_int8_by_exponent(p)][e2m3];
}

#endif

static const char *refuse(const bsmm_product *p, char *why, size_t size) {
    static const packed_needs needs = {BSMM_CPU_AVX2, "the processor has no AVX2",
                                       bsmm_int8_refuse};
    return refuse_packed(&needs, p, why, size);
}

const bsmm_kernel bsmm_kernel_cpu_avx2_int8dot = {
    .name = "cpu_avx2_int8dot",
    BSMM_PACKED_KERNEL,
    .refuse = refuse,
    .bound = bsmm_int8_bound,
};
