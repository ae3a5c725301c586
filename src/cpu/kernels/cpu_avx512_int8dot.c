/* The kernel cpu_avx512_int8dot multiplies e2m1 and e2m3 operands as small integers, by VNNI's dot
 * product of bytes (vpdpbusd).
 *
 * A unit is 32 elements of K if both scales are powers of two, else 16. The integer sum of a unit
 * is exact. One fp32 FMA multiplies it by the product of the two scales and adds it to the
 * accumulator, so the error of a result is at most (number of units + 1) * 2^-24 * sum |a * b|.
 * There are three versions of the multiply function. They read the same packed B and give bitwise
 * identical results.
 *
 * The summed version has register tiles of 6 rows of A and 32 rows of B. It converts a unit's
 * integer sum to fp32 and multiplies it by the product of A's scale and B's scale.
 *
 * The looked-up version has the same register tiles. It takes the products of scales from a table
 * by a permute and an integer addition (pack_int8dot.h). A Zen 4 starts one 512-bit multiplication
 * per cycle, where FMAs and dot products count as multiplications. In the same cycle it can start a
 * permute or an integer addition, so the table costs less than multiplying the scales.
 *
 * The floated version is for processors on which a conversion costs as much as a dot product. Its
 * register tiles have 8 rows of A and 32 rows of B. Its integer sums begin at the bits of a large
 * fp32 value, so that the bits of a sum are those of an fp32 number and need no conversion
 * (pack_int8dot.h). Two FMAs then apply the scales. */
#include "base/cpu.h"
#include "cpu/engine/engine_gemm_kernel.h"
#include "cpu/pack/pack_int8dot.h"
#include "cpu/small_m/small_m_tiny.h"

#if defined(__x86_64__)

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { MR_SUMMED = 6, MR_FLOATED = 8, MOST = 8, NR = 32, VECTORS = 2 };

/* Computes the integer sums of one unit (`unit` elements of K) for mr rows of A. The sums are
 * exact. The dot product instruction needs unsigned integers of B, so B's integers are stored with
 * a constant added. This makes each sum too large. The initial values of the sums, which are packed
 * with A, compensate for it. */
INLINE void sum_unit(const uint8_t *a, const uint8_t *b, int mr, int64_t unit,
                     __m512i sum[MOST][VECTORS]) {
    const int32_t *begin = (const int32_t *)(const void *)(a + mr * unit);
#    pragma GCC unroll 8
    for (int r = 0; r < mr; r++)
        sum[r][0] = sum[r][1] = _mm512_set1_epi32(begin[r]);
#    pragma GCC unroll 8
    for (int64_t g = 0; g < unit / 4; g++) {
        __m512i b0 = _mm512_load_si512(b + g * NR * 4);
        __m512i b1 = _mm512_load_si512(b + g * NR * 4 + 64);
#    pragma GCC unroll 8
        for (int r = 0; r < mr; r++) {
            __m512i x = _mm512_set1_epi32(((const int32_t *)(const void *)a)[g * mr + r]);
            sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], b0, x);
            sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], b1, x);
        }
    }
}

/* Returns the products of A's scale of row r and B's scales. If by_exponent is true, the scales are
 * powers of two stored as exponents in the position of fp32's exponent bits, so an integer addition
 * multiplies them. */
INLINE __m512 scale_product(const uint8_t *a_scales, int r, __m512i b_scales, bool by_exponent) {
    int32_t bits = ((const int32_t *)(const void *)a_scales)[r];
    if (by_exponent)
        return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_set1_epi32(bits), b_scales));
    return _mm512_mul_ps(_mm512_castsi512_ps(_mm512_set1_epi32(bits)),
                         _mm512_castsi512_ps(b_scales));
}

INLINE void add_summed(const uint8_t *a, const uint8_t *b, int64_t unit, bool by_exponent,
                       __m512 acc[MR_SUMMED][VECTORS]) {
    __m512i sum[MOST][VECTORS];
    sum_unit(a, b, MR_SUMMED, unit, sum);
    const uint8_t *a_scales = a + MR_SUMMED * (unit + 4), *b_scales = b + NR * unit;
    __m512i s0 = _mm512_load_si512(b_scales), s1 = _mm512_load_si512(b_scales + 64);
#    pragma GCC unroll 6
    for (int r = 0; r < MR_SUMMED; r++) {
        acc[r][0] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][0]),
                                    scale_product(a_scales, r, s0, by_exponent), acc[r][0]);
        acc[r][1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][1]),
                                    scale_product(a_scales, r, s1, by_exponent), acc[r][1]);
    }
}

/* `parted_scales` holds 16 fp32 scales of B, one in each lane. Each of them is multiplied by the
 * same scale of A, by a table look-up and an addition. For each scale of A there is a table of 16
 * products. `index` has the bits of B's scale from bit 20 on: its three highest mantissa bits (the
 * others are 0) and its exponent. A permute uses the low four bits of `index` to select an entry of
 * the table. The other exponent bits are in `rest`. The bits of the selected entry plus `rest` are
 * the bits of the product. If B's scale is 0, its bit in `nonzero` is 0, and the product is 0. */
typedef struct parted_scales {
    __m512i index, rest;
    __mmask16 nonzero;
} parted_scales;

INLINE parted_scales part_scales(const uint8_t *b_scales) {
    const __m512i high = _mm512_set1_epi32((int32_t)0xff000000);
    __m512i bits = _mm512_load_si512(b_scales);
    return (parted_scales){
        _mm512_srli_epi32(bits, 20),
        _mm512_sub_epi32(_mm512_and_si512(bits, high), _mm512_set1_epi32(BSMM_INT8_PRODUCT_BIAS)),
        _mm512_test_epi32_mask(bits, bits)};
}

INLINE __m512 look_up(const uint8_t *products, const parted_scales *b) {
    __m512i entry = _mm512_permutexvar_epi32(b->index, _mm512_load_si512(products));
    return _mm512_castsi512_ps(_mm512_maskz_add_epi32(b->nonzero, entry, b->rest));
}

/* Adds the scaled products of one unit (16 elements of K) to the accumulators. It looks up the
 * products of A's and B's scales in a table instead of multiplying the scales. */
INLINE void add_looked_up(const uint8_t *a, const uint8_t *b, const uint8_t *products,
                          __m512 acc[MR_SUMMED][VECTORS]) {
    enum { UNIT = BSMM_INT8_MULTIPLY_UNIT };
    __m512i sum[MOST][VECTORS];
    const uint32_t *a_scales = (const uint32_t *)(const void *)(a + MR_SUMMED * (UNIT + 4));
    const uint8_t *b_scales = b + NR * UNIT;
    sum_unit(a, b, MR_SUMMED, UNIT, sum);
    const parted_scales s0 = part_scales(b_scales), s1 = part_scales(b_scales + 64);
#    pragma GCC unroll 6
    for (int r = 0; r < MR_SUMMED; r++) {
        const uint8_t *row = products + a_scales[r];
        acc[r][0] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][0]), look_up(row, &s0), acc[r][0]);
        acc[r][1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][1]), look_up(row, &s1), acc[r][1]);
    }
}

/* Adds the scaled sums of all units (ranges of K with one scale per row) to a tile of accumulators.
 * If `products` is not NULL, the products of scales are looked up in this table. */
INLINE void multiply_summed(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                            int64_t pitch, bool add, bsmm_ahead ahead, int64_t unit,
                            bool by_exponent, const uint8_t *products) {
    __m512 acc[MR_SUMMED][VECTORS];
#    pragma GCC unroll 6
    for (int r = 0; r < MR_SUMMED; r++)
        for (int v = 0; v < VECTORS; v++)
            acc[r][v] = add ? _mm512_loadu_ps(c + r * pitch + 16 * v) : _mm512_setzero_ps();
    for (int64_t u = 0; u < units; u++) {
        bsmm_ask_ahead(&ahead);
        if (products)
            add_looked_up(a, b, products, acc);
        else
            add_summed(a, b, unit, by_exponent, acc);
        a += BSMM_INT8_UNIT_BYTES(MR_SUMMED, unit, BSMM_INT8_A);
        b += BSMM_INT8_UNIT_BYTES(NR, unit, BSMM_INT8_B);
    }
#    pragma GCC unroll 6
    for (int r = 0; r < MR_SUMMED; r++)
        for (int v = 0; v < VECTORS; v++)
            _mm512_storeu_ps(c + r * pitch + 16 * v, acc[r][v]);
}

/* Adds the scaled sums of a unit (16 or 32 elements of K) to the accumulators. `acc` is a local
 * array of the caller, not the tile in memory. The compiler therefore knows that the array overlaps
 * no operand, and keeps as much of the array as possible in registers. */
INLINE void add_floated(const uint8_t *a, const uint8_t *b, int64_t unit,
                        __m512 acc[MR_FLOATED][VECTORS]) {
    __m512i sum[MOST][VECTORS];
    sum_unit(a, b, MR_FLOATED, unit, sum);
    const float *a_scales = (const float *)(const void *)(a + MR_FLOATED * (unit + 4));
    const float *taken = a_scales + MR_FLOATED;
    const float *b_scales = (const float *)(const void *)(b + NR * unit);
    __m512 scale[VECTORS] = {_mm512_load_ps(b_scales), _mm512_load_ps(b_scales + 16)};
#    pragma GCC unroll 8
    for (int r = 0; r < MR_FLOATED; r++)
#    pragma GCC unroll 2
        for (int v = 0; v < VECTORS; v++) {
            __m512 scaled = _mm512_fmsub_ps(_mm512_castsi512_ps(sum[r][v]),
                                            _mm512_set1_ps(a_scales[r]), _mm512_set1_ps(taken[r]));
            acc[r][v] = _mm512_fmadd_ps(scaled, scale[v], acc[r][v]);
        }
}

INLINE void multiply_floated(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                             int64_t pitch, bool add, bsmm_ahead ahead, int64_t unit) {
    __m512 acc[MR_FLOATED][VECTORS];
#    pragma GCC unroll 8
    for (int r = 0; r < MR_FLOATED; r++)
#    pragma GCC unroll 2
        for (int v = 0; v < VECTORS; v++)
            acc[r][v] = add ? _mm512_loadu_ps(c + r * pitch + 16 * v) : _mm512_setzero_ps();
    for (int64_t u = 0; u < units; u++) {
        bsmm_ask_ahead(&ahead);
        add_floated(a, b, unit, acc);
        a += BSMM_INT8_UNIT_BYTES(MR_FLOATED, unit, BSMM_INT8_A_FLOATED);
        b += BSMM_INT8_UNIT_BYTES(NR, unit, BSMM_INT8_B);
    }
#    pragma GCC unroll 8
    for (int r = 0; r < MR_FLOATED; r++)
#    pragma GCC unroll 2
        for (int v = 0; v < VECTORS; v++)
            _mm512_storeu_ps(c + r * pitch + 16 * v, acc[r][v]);
}

enum { EXPONENT = BSMM_INT8_EXPONENT_UNIT, VALUE = BSMM_INT8_MULTIPLY_UNIT };

TARGET static void multiply_exponent(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                     int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply_summed(a, b, units, c, pitch, add, ahead, EXPONENT, true, NULL);
}

TARGET static void multiply_value(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                  int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply_summed(a, b, units, c, pitch, add, ahead, VALUE, false, NULL);
}

TARGET static void multiply_looked_up(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                      int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply_summed(a, b, units, c, pitch, add, ahead, VALUE, false,
                    (const uint8_t *)bsmm_int8_products);
}

TARGET static void multiply_floated_32(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                       int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply_floated(a, b, units, c, pitch, add, ahead, EXPONENT);
}

TARGET static void multiply_floated_16(const uint8_t *a, const uint8_t *b, int64_t units, float *c,
                                       int64_t pitch, bool add, bsmm_ahead ahead) {
    multiply_floated(a, b, units, c, pitch, add, ahead, VALUE);
}

static void pack_summed(const bsmm_product *p, bool is_b, int64_t row, int64_t rows,
                        bsmm_panel *to) {
    bsmm_int8_pack(p, is_b ? BSMM_INT8_B : BSMM_INT8_A, is_b ? NR : MR_SUMMED, bsmm_int8_unit(p),
                   row, rows, to);
}

static void pack_looked_up(const bsmm_product *p, bool is_b, int64_t row, int64_t rows,
                           bsmm_panel *to) {
    bsmm_int8_pack(p, is_b ? BSMM_INT8_B : BSMM_INT8_A_LOOKED_UP, is_b ? NR : MR_SUMMED,
                   BSMM_INT8_MULTIPLY_UNIT, row, rows, to);
}

static void pack_floated(const bsmm_product *p, bool is_b, int64_t row, int64_t rows,
                         bsmm_panel *to) {
    bsmm_int8_pack(p, is_b ? BSMM_INT8_B : BSMM_INT8_A_FLOATED, is_b ? NR : MR_FLOATED,
                   bsmm_int8_unit(p), row, rows, to);
}

#    define ENGINE(rows, form, unit_length, packs, multiplies)                                     \
        {                                                                                          \
            .values = "int8", .mr = rows, .nr = NR, .unit = unit_length,                           \
            .a_unit_bytes = BSMM_INT8_UNIT_BYTES(rows, unit_length, form),                         \
            .b_unit_bytes = BSMM_INT8_UNIT_BYTES(NR, unit_length, BSMM_INT8_B),                    \
            .longest_chunk = 2560, .mc = 192, .nc = 256, .pack = packs, .multiply = multiplies     \
        }

/* These are the engines of this kernel. The first index is the version of the multiply function: 0
 * for "summed", and 1 for "floated", which needs no conversion of integer sums to fp32. The second
 * index is 1 if all scales of A and B are powers of two, and 0 otherwise. */
static const bsmm_engine engines[2][2] = {
    {ENGINE(MR_SUMMED, BSMM_INT8_A, VALUE, pack_summed, multiply_value),
     ENGINE(MR_SUMMED, BSMM_INT8_A, EXPONENT, pack_summed, multiply_exponent)},
    {ENGINE(MR_FLOATED, BSMM_INT8_A_FLOATED, VALUE, pack_floated, multiply_floated_16),
     ENGINE(MR_FLOATED, BSMM_INT8_A_FLOATED, EXPONENT, pack_floated, multiply_floated_32)},
};

/* LOOKED_UP_K is the least K for which the kernel looks up the products of scales in a table. On a
 * Zen 4, the table is slower than multiplying the scales if K is shorter. */
enum { LOOKED_UP_K = 256 };
static const bsmm_engine looked_up_engine =
    ENGINE(MR_SUMMED, BSMM_INT8_A_LOOKED_UP, VALUE, pack_looked_up, multiply_looked_up);

/* Chooses the version of the multiply function. All versions sum products of int8 elements in
 * integers, multiply a sum by the scales of A and B, and add it to an fp32 total.
 * - The version "floated" needs no conversion. Its integer sum begins with a constant, so that the
 *   bits of the sum are those of an fp32 number, namely a large constant plus the sum. An FMA
 *   multiplies this number by A's scale and subtracts the constant's part exactly. The result is
 *   then multiplied by B's scale.
 * - The other versions convert the sum to fp32. They multiply the two scales with each other first
 *   and round their product to fp32.
 * If the scales have few mantissa bits, as scales of 8 bits do, no product above is rounded, so all
 * versions give identical results. With fp32 scales a product may be rounded, so the floated
 * version is used only if no operand has fp32 scales. It is also used only on processors of Intel,
 * on which a conversion occupies a port that a dot product could use. */
static const bsmm_engine *engine_of(const bsmm_product *p) {
    bool exact = p->a.m.format.scale != BSMM_SCALE_F32 && p->b.m.format.scale != BSMM_SCALE_F32;
    bool floated = exact && bsmm_cpu_features() & BSMM_CPU_TWO_PORTS;
    if (!floated && bsmm_int8_has_products(p) && p->a.m.cols >= LOOKED_UP_K)
        return &looked_up_engine;
    return &engines[floated][bsmm_int8_by_exponent(p)];
}

#endif

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    static const packed_needs needs = {BSMM_CPU_AVX512_VNNI, "the processor has no AVX-512 VNNI",
                                       bsmm_int8_refuse};
    const char *reason = refuse_packed(&needs, p, state, why, size);
    if (!reason) bsmm_small_m_tiny_make(p, true, state);
    return reason;
}

BSMM_CHECK_STATE(bsmm_tiny_gemm);

const bsmm_kernel bsmm_kernel_cpu_avx512_int8dot = {
    .name = "cpu_avx512_int8dot",
    BSMM_PACKED_KERNEL_WITH(bsmm_tiny_gemm, bsmm_small_m_tiny_run),
    .refuse = refuse,
    .bound = bsmm_int8_bound,
};
