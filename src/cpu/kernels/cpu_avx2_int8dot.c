/* The kernel cpu_avx2_int8dot multiplies e2m1 and e2m3 operands as small integers, by AVX2's
 * multiply-add of bytes (engine_int8dot_avx2.h). Integer sums are exact.
 *
 * A register tile has 4 rows of A and 16 rows of B. Its integer accumulators take 8 of the 16
 * vector registers. The fp32 accumulators stay in D's cache block in L1 and are loaded and stored
 * once per unit. A unit is 32 elements of K if both scales are powers of two, else 16. One fp32 FMA
 * adds a unit's exact sum, as in cpu_avx512_int8dot, so the results of the two kernels are bitwise
 * identical. The error of a result is at most (units + 1) * 2^-24 * sum |a * b|. */
#include "base/cpu.h"
#include "cpu/engine/engine_gemm_kernel.h"
#include "cpu/pack/pack_int8dot.h"

#if defined(__x86_64__)

#    include "cpu/engine/engine_int8dot_avx2.h"

#    include <string.h>

#    define TARGET __attribute__((target("avx2,fma")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { MR = BSMM_INT8_MR, NR = BSMM_INT8_NR };

INLINE void multiply(const uint8_t *a, const uint8_t *b, int64_t units, float *c, int64_t pitch,
                     bool add, bsmm_ahead ahead, int64_t unit, bool wide, bool by_exponent) {
    if (!add)
        for (int r = 0; r < MR; r++)
            memset(c + r * pitch, 0, NR * sizeof(float));
    const bsmm_int8_strides places = {.row = 4, .odd = MR * 4, .pair = 2 * MR * 4, .scale = MR * 4};
    for (int64_t u = 0; u < units; u++) {
        bsmm_ask_ahead(&ahead);
        bsmm_int8_add_unit(a, a + MR * unit, &places, MR, b, unit, wide, by_exponent, c, pitch);
        a += BSMM_INT8_UNIT_BYTES(MR, unit, BSMM_INT8_A);
        b += BSMM_INT8_UNIT_BYTES(NR, unit, BSMM_INT8_B);
    }
}

enum { EXPONENT = BSMM_INT8_EXPONENT_UNIT, VALUE = BSMM_INT8_MULTIPLY_UNIT };

/* These functions multiply packed panels of integers. The names with "exponent" are for scales that
 * are powers of two and units of 32 elements of K. The names with "value" are for scales of any
 * value and units of 16 elements. A unit is a range of K in which each row has one scale. The
 * integer sum over a unit fits 16 bits, unless both operands are e2m3. In that case the functions
 * with "e2m3" in their names widen the sum of each 8 elements of K to 32 bits. */
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
            .values = "int8", .mr = MR, .nr = NR, .unit = unit_length,                             \
            .a_unit_bytes = BSMM_INT8_UNIT_BYTES(MR, unit_length, BSMM_INT8_A),                    \
            .b_unit_bytes = BSMM_INT8_UNIT_BYTES(NR, unit_length, BSMM_INT8_B),                    \
            .longest_chunk = 2560, .mc = 192, .nc = 256, .pack = pack, .multiply = multiplies      \
        }

/* `engines` holds the engines. The first index is 1 if all scales are powers of two. The second
 * index is 1 if both operands are e2m3, so that sums of 8 elements of K are widened to 32 bits. */
static const bsmm_engine engines[2][2] = {
    {ENGINE(VALUE, multiply_value), ENGINE(VALUE, multiply_value_e2m3)},
    {ENGINE(EXPONENT, multiply_exponent), ENGINE(EXPONENT, multiply_exponent_e2m3)},
};

static const bsmm_engine *engine_of(const bsmm_product *p) {
    return &engines[bsmm_int8_by_exponent(p)][bsmm_int8_is_wide(p)];
}

#endif

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    static const packed_needs needs = {BSMM_CPU_AVX2, "the processor has no AVX2",
                                       bsmm_int8_refuse};
    return refuse_packed(&needs, p, state, why, size);
}

const bsmm_kernel bsmm_kernel_cpu_avx2_int8dot = {
    .name = "cpu_avx2_int8dot",
    BSMM_PACKED_KERNEL,
    .refuse = refuse,
    .bound = bsmm_int8_bound,
};
