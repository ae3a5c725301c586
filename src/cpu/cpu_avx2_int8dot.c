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

/* Sums of `groups` groups in 16 bits. Two groups at a time: unrolled whole, compilers reorder the
 * sums and run out of registers. */
INLINE void sum_groups(const uint8_t *a, const uint8_t *b, int64_t groups,
                       __m256i part[MR][VECTORS]) {
#    pragma GCC unroll 2
    for (int64_t g = 0; g < groups; g++) {
        __m256i b0 = load(b + g * NR * 4), b1 = load(b + g * NR * 4 + 32);
#    pragma GCC unroll 4
        for (int r = 0; r < MR; r++) {
            __m256i x = broadcast(a, g * MR + r);
            part[r][0] = _mm256_add_epi16(part[r][0], _mm256_maddubs_epi16(b0, x));
            part[r][1] = _mm256_add_epi16(part[r][1], _mm256_maddubs_epi16(b1, x));
        }
    }
}

/* Sums of one unit, exact, `run` groups at a time in 16 bits. */
INLINE void sum_unit(const uint8_t *a, const uint8_t *b, int64_t unit, int64_t run,
                     __m256i sum[MR][VECTORS]) {
    const uint8_t *begin = a + MR * unit;
#    pragma GCC unroll 4
    for (int64_t g = 0; g < unit / 4; g += run) {
        __m256i part[MR][VECTORS] = {0};
        sum_groups(a + g * MR * 4, b + g * NR * 4, run, part);
#    pragma GCC unroll 4
        for (int r = 0; r < MR; r++)
            for (int v = 0; v < VECTORS; v++)
                sum[r][v] = _mm256_add_epi32(g == 0 ? broadcast(begin, r) : sum[r][v],
                                             _mm256_madd_epi16(part[r][v], _mm256_set1_epi16(1)));
    }
}

/* The product of A's scale r and B's, in both forms. */
INLINE __m256 scale_product(const uint8_t *a_scales, int r, __m256i b_scales, bool by_exponent) {
    __m256i scale = broadcast(a_scales, r);
    if (by_exponent) return _mm256_castsi256_ps(_mm256_add_epi32(scale, b_scales));
    return _mm256_mul_ps(_mm256_castsi256_ps(scale), _mm256_castsi256_ps(b_scales));
}

INLINE void add_unit(const uint8_t *a, const uint8_t *b, int64_t unit, int64_t run,
                     bool by_exponent, float *c, int64_t pitch) {
    const uint8_t *a_scales = a + MR * unit + MR * 4, *b_scales = b + NR * unit;
    __m256i sum[MR][VECTORS];
    sum_unit(a, b, unit, run, sum);
#    pragma GCC unroll 4
    for (int r = 0; r < MR; r++)
        for (int v = 0; v < VECTORS; v++) {
            float *at = c + r * pitch + 8 * v;
            __m256 scale = scale_product(a_scales, r, load(b_scales + 32 * v), by_exponent);
            _mm256_storeu_ps(
                at, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[r][v]), scale, _mm256_loadu_ps(at)));
        }
}

INLINE void multiply(const uint8_t *a, const uint8_t *b, int64_t units, float *c, int64_t pitch,
                     bool add, bsmm_ahead ahead, int64_t unit, int64_t run, bool by_exponent) {
    if (!add)
        for (int r = 0; r < MR; r++)
            memset(c + r * pitch, 0, NR * sizeof(float));
    for (int64_t u = 0; u < units; u++) {
        bsmm_ask_ahead(&ahead);
        add_unit(a, b, unit, run, by_exponent, c, pitch);
        a += BSMM_INT8_UNIT_BYTES(MR, unit, BSMM_INT8_A);
        b += BSMM_INT8_UNIT_BYTES(NR, unit, BSMM_INT8_B);
    }
}

enum { EXPONENT = BSMM_INT8_EXPONENT_UNIT, VALUE = BSMM_INT8_MULTIPLY_UNIT };

/* 16-bit sums over a whole unit, and over 2 groups where both sides are e2m3. */
TARGET static void multiply_exponent(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                     int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply(a, b, units, c, pitch, add, ahead, EXPONENT, EXPONENT / 4, true);
}

TARGET static void multiply_exponent_e2m3(const uint8_t *a, const uint8_t *b, int64_t units,
                                          float *c, int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply(a, b, units, c, pitch, add, ahead, EXPONENT, 2, true);
}

TARGET static void multiply_value(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                  int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply(a, b, units, c, pitch, add, ahead, VALUE, VALUE / 4, false);
}

TARGET static void multiply_value_e2m3(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                       int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply(a, b, units, c, pitch, add, ahead, VALUE, 2, false);
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
