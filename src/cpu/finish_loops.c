/* One body for each loop; the targets below only differ in what the compiler may vectorize with. */
#include "cpu/finish_loops.h"

#include "base/cpu.h"

#include <math.h>
#include <string.h>

/* A function of a target takes in these whole, whatever their size. */
#define INLINE static inline __attribute__((always_inline))

INLINE void scale(const float *acc, double row_factor, const double *factors, int64_t cols,
                  double *values) {
    for (int64_t i = 0; i < cols; i++)
        values[i] = (double)acc[i] * (row_factor * factors[i]);
}

INLINE void store_f32(const double *values, int64_t cols, void *out) {
    float *to = out;
    for (int64_t i = 0; i < cols; i++)
        to[i] = (float)values[i];
}

/* The bits of a value as fp32, cut to 24 bits of which the last one tells whether anything was cut:
 * a second rounding then equals one from double. Not so below fp32's normal values. */
INLINE uint32_t sticky_bits(double value) {
    static const uint64_t cut = 0x1fffffff;
    uint64_t bits;
    uint32_t single_bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits | ((bits & cut) + cut)) & ~cut;
    memcpy(&value, &bits, sizeof value);
    float single = (float)value;
    memcpy(&single_bits, &single, sizeof single_bits);
    return single_bits;
}

/* Without branches, so that compilers vectorize the loop. Adding 1/2 makes a subnormal's last place
 * that of the sum. */
INLINE uint16_t f16_from(double value) {
    uint32_t bits = sticky_bits(value), magnitude = bits & 0x7fffffff, shifted_bits;
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    float shifted;
    memcpy(&shifted, &magnitude, sizeof shifted);
    shifted += 0.5f;
    memcpy(&shifted_bits, &shifted, sizeof shifted_bits);
    uint32_t code = magnitude < 113u << 23 ? shifted_bits - (126u << 23) : normal;
    code = magnitude >= 143u << 23 ? 0x7c00 : code;
    code = magnitude > 255u << 23 ? 0x7e00 : code;
    return (uint16_t)(code | (bits >> 16 & 0x8000));
}

INLINE void store_f16(const double *values, int64_t cols, void *out) {
    uint16_t *to = out;
    for (int64_t i = 0; i < cols; i++)
        to[i] = f16_from(values[i]);
}

INLINE uint16_t bf16_from(double value) {
    uint32_t bits = sticky_bits(value), code = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    code = (bits & 0x7fffffff) > 255u << 23 ? (bits >> 16 & 0x8000) | 0x7fc0 : code;
    return (uint16_t)code;
}

/* bf16 is subnormal where fp32 is: a row with such a value takes the codec. */
INLINE bool has_subnormal(const double *values, int64_t cols) {
    int found = 0;
    for (int64_t i = 0; i < cols; i++)
        found |= (fabs(values[i]) < 0x1p-126) & (values[i] != 0);
    return found;
}

INLINE void store_bf16(const double *values, int64_t cols, void *out) {
    uint16_t *to = out;
    if (has_subnormal(values, cols)) {
        for (int64_t i = 0; i < cols; i++)
            to[i] = (uint16_t)bsmm_elem_encode(BSMM_ELEM_BF16, values[i], false);
        return;
    }
    for (int64_t i = 0; i < cols; i++)
        to[i] = bf16_from(values[i]);
}

/* ---- targets ---- */

static void scale_portable(const float *acc, double row_factor, const double *factors, int64_t cols,
                           double *values) {
    scale(acc, row_factor, factors, cols, values);
}
static void store_f32_portable(const double *values, int64_t cols, void *to) {
    store_f32(values, cols, to);
}
static void store_f16_portable(const double *values, int64_t cols, void *to) {
    store_f16(values, cols, to);
}
static void store_bf16_portable(const double *values, int64_t cols, void *to) {
    store_bf16(values, cols, to);
}
static const bsmm_finish_loops portable = {
    .scale = scale_portable,
    .store = {[BSMM_ELEM_F32] = store_f32_portable,
              [BSMM_ELEM_F16] = store_f16_portable,
              [BSMM_ELEM_BF16] = store_bf16_portable},
};

#if defined(__x86_64__)
#    define AVX2   __attribute__((target("avx2")))
#    define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

AVX2 static void scale_avx2(const float *acc, double row_factor, const double *factors,
                            int64_t cols, double *values) {
    scale(acc, row_factor, factors, cols, values);
}
AVX2 static void store_f32_avx2(const double *values, int64_t cols, void *to) {
    store_f32(values, cols, to);
}
AVX2 static void store_f16_avx2(const double *values, int64_t cols, void *to) {
    store_f16(values, cols, to);
}
AVX2 static void store_bf16_avx2(const double *values, int64_t cols, void *to) {
    store_bf16(values, cols, to);
}
static const bsmm_finish_loops avx2 = {
    .scale = scale_avx2,
    .store = {[BSMM_ELEM_F32] = store_f32_avx2,
              [BSMM_ELEM_F16] = store_f16_avx2,
              [BSMM_ELEM_BF16] = store_bf16_avx2},
};

AVX512 static void scale_avx512(const float *acc, double row_factor, const double *factors,
                                int64_t cols, double *values) {
    scale(acc, row_factor, factors, cols, values);
}
AVX512 static void store_f32_avx512(const double *values, int64_t cols, void *to) {
    store_f32(values, cols, to);
}
AVX512 static void store_f16_avx512(const double *values, int64_t cols, void *to) {
    store_f16(values, cols, to);
}
AVX512 static void store_bf16_avx512(const double *values, int64_t cols, void *to) {
    store_bf16(values, cols, to);
}
static const bsmm_finish_loops avx512 = {
    .scale = scale_avx512,
    .store = {[BSMM_ELEM_F32] = store_f32_avx512,
              [BSMM_ELEM_F16] = store_f16_avx512,
              [BSMM_ELEM_BF16] = store_bf16_avx512},
};

#endif

const bsmm_finish_loops *bsmm_finish_loops_get(void) {
#if defined(__x86_64__)
    uint32_t features = bsmm_cpu_features();
    if (features & BSMM_CPU_AVX512) return &avx512;
    if (features & BSMM_CPU_AVX2) return &avx2;
#endif
    return &portable;
}
