/* cpu_avx512_int8dot: e2m1 and e2m3 on both sides, by VNNI's dot product of bytes.
 *
 * Tile: 6 rows of A x 32 of B in 12 int32 and 12 fp32 accumulators, 2 registers of B, A broadcast
 * from memory. A unit's sum is exact; one fp32 FMA adds it, times the product of two scales. Bound:
 * (units + 1) * 2^-24 * sum |a||b|, a unit being 32 of K (both sides e8m0) or 16. */
#include "base/cpu.h"
#include "cpu/int8.h"
#include "cpu/packed_kernel.h"

#if defined(__x86_64__)

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { MR = 6, NR = 32, VECTORS = 2 };

/* Sums of one unit, exact. */
INLINE void sum_unit(const uint8_t *a, const uint8_t *b, int64_t unit, __m512i sum[MR][VECTORS]) {
    const int32_t *begin = (const int32_t *)(const void *)(a + MR * unit);
#    pragma GCC unroll 6
    for (int r = 0; r < MR; r++)
        sum[r][0] = sum[r][1] = _mm512_set1_epi32(begin[r]);
#    pragma GCC unroll 8
    for (int64_t g = 0; g < unit / 4; g++) {
        __m512i b0 = _mm512_load_si512(b + g * NR * 4);
        __m512i b1 = _mm512_load_si512(b + g * NR * 4 + 64);
#    pragma GCC unroll 6
        for (int r = 0; r < MR; r++) {
            __m512i x = _mm512_set1_epi32(((const int32_t *)(const void *)a)[g * MR + r]);
            sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], b0, x);
            sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], b1, x);
        }
    }
}

/* The product of A's scale r and B's, in both forms. */
INLINE __m512 scale_product(const uint8_t *a_scales, int r, __m512i b_scales, bool by_exponent) {
    int32_t bits = ((const int32_t *)(const void *)a_scales)[r];
    if (by_exponent)
        return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_set1_epi32(bits), b_scales));
    return _mm512_mul_ps(_mm512_castsi512_ps(_mm512_set1_epi32(bits)),
                         _mm512_castsi512_ps(b_scales));
}

INLINE void add_unit(const uint8_t *a, const uint8_t *b, int64_t unit, bool by_exponent,
                     __m512 acc[MR][VECTORS]) {
    __m512i sum[MR][VECTORS];
    sum_unit(a, b, unit, sum);
    const uint8_t *a_scales = a + MR * unit + MR * 4, *b_scales = b + NR * unit;
    __m512i s0 = _mm512_load_si512(b_scales), s1 = _mm512_load_si512(b_scales + 64);
#    pragma GCC unroll 6
    for (int r = 0; r < MR; r++) {
        acc[r][0] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][0]),
                                    scale_product(a_scales, r, s0, by_exponent), acc[r][0]);
        acc[r][1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][1]),
                                    scale_product(a_scales, r, s1, by_exponent), acc[r][1]);
    }
}

INLINE void multiply(const uint8_t *a, const uint8_t *b, int64_t units, float *c, int64_t pitch,
                     bool add, int64_t unit, bool by_exponent) {
    __m512 acc[MR][VECTORS];
#    pragma GCC unroll 6
    for (int r = 0; r < MR; r++)
        for (int v = 0; v < VECTORS; v++)
            acc[r][v] = add ? _mm512_loadu_ps(c + r * pitch + 16 * v) : _mm512_setzero_ps();
    for (int64_t u = 0; u < units; u++) {
        add_unit(a, b, unit, by_exponent, acc);
        a += BSMM_INT8_UNIT_BYTES(MR, unit, 1);
        b += BSMM_INT8_UNIT_BYTES(NR, unit, 0);
    }
#    pragma GCC unroll 6
    for (int r = 0; r < MR; r++)
        for (int v = 0; v < VECTORS; v++)
            _mm512_storeu_ps(c + r * pitch + 16 * v, acc[r][v]);
}

TARGET static void multiply_exponent(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                     int64_t pitch, bool add) {
    multiply(a, b, units, c, pitch, add, BSMM_INT8_EXPONENT_UNIT, true);
}

TARGET static void multiply_value(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                  int64_t pitch, bool add) {
    multiply(a, b, units, c, pitch, add, BSMM_INT8_MULTIPLY_UNIT, false);
}

static void pack_exponent(const bsmm_product *p, bool is_b, int64_t row, int64_t rows,
                          bsmm_panel *to) {
    bsmm_int8_pack(p, is_b, is_b ? NR : MR, BSMM_INT8_EXPONENT_UNIT, row, rows, to);
}

static void pack_value(const bsmm_product *p, bool is_b, int64_t row, int64_t rows,
                       bsmm_panel *to) {
    bsmm_int8_pack(p, is_b, is_b ? NR : MR, BSMM_INT8_MULTIPLY_UNIT, row, rows, to);
}

#    define ENGINE(unit_length, packs, multiplies)                                                 \
        {                                                                                          \
            .mr = MR, .nr = NR, .unit = unit_length,                                               \
            .a_unit_bytes = BSMM_INT8_UNIT_BYTES(MR, unit_length, 1),                              \
            .b_unit_bytes = BSMM_INT8_UNIT_BYTES(NR, unit_length, 0),                              \
            .chunk = 2048 / (unit_length), .mc = 192, .nc = 256, .pack = packs,                    \
            .multiply = multiplies                                                                 \
        }

static const bsmm_engine by_exponent =
    ENGINE(BSMM_INT8_EXPONENT_UNIT, pack_exponent, multiply_exponent);
static const bsmm_engine by_value = ENGINE(BSMM_INT8_MULTIPLY_UNIT, pack_value, multiply_value);

static const bsmm_engine *engine_of(const bsmm_product *p) {
    return bsmm_int8_by_exponent(p) ? &by_exponent : &by_value;
}

static bool is_supported(void) {
    return bsmm_cpu_features() & BSMM_CPU_AVX512_VNNI;
}

#else

static const bsmm_engine *engine_of(const bsmm_product *p) {
    (void)p;
    return NULL;
}

static bool is_supported(void) {
    return false;
}

#endif

static const char *refuse(const bsmm_product *p, char *why, size_t size) {
    if (!is_supported()) return "the processor has no AVX-512 VNNI";
    const char *reason = bsmm_int8_refuse(p, why, size);
    return reason ? reason : bsmm_gemm_refuse_output(engine_of(p), p, why, size);
}

static double bound(const bsmm_product *p) {
    return (double)(bsmm_ceil_div(p->a.m.cols, engine_of(p)->unit) + 1) * 0x1p-24;
}

const bsmm_kernel bsmm_kernel_cpu_avx512_int8dot = {
    .name = "cpu_avx512_int8dot",
    BSMM_PACKED_KERNEL,
    .refuse = refuse,
    .bound = bound,
};
