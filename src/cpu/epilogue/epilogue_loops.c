/* This file has the epilogue's loops, each in several versions for different instruction sets. The
 * body of a loop is written once, as an inline function. Each version is a function with the
 * attribute of its instruction set that only calls this inline function. The compiler therefore
 * vectorizes the body with the instructions of that set. */
#include "cpu/epilogue/epilogue_loops.h"

#include "base/cpu.h"

#include <math.h>
#include <string.h>

/* Forces inlining. Otherwise a body could be compiled as a function of its own, without the
 * instruction set of its caller. */
#define INLINE static inline __attribute__((always_inline))

/* Multiplies accumulators by their factors. The addition of 0 turns -0 into +0, so a zero result is
 * +0 whatever the factors' signs are. */
INLINE void scale(const float *acc, double row_factor, const double *factors, int64_t cols,
                  double *values) {
    for (int64_t i = 0; i < cols; i++)
        values[i] = (double)acc[i] * (row_factor * factors[i]) + 0.0;
}

INLINE void add_f32(const void *from, double factor, int64_t cols, double *values) {
    const float *row = from;
    for (int64_t i = 0; i < cols; i++)
        values[i] += factor * (double)row[i];
}

INLINE float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Converts bf16 to fp32. Every NaN code becomes the same NaN, whatever its sign and payload are, as
 * in bsmm_elem_decode. */
INLINE float bf16_value(uint16_t code) {
    uint32_t bits = (uint32_t)code << 16;
    return float_of_bits((code & 0x7fff) > 0x7f80 ? 255u << 23 | 1u << 22 : bits);
}

INLINE void add_bf16(const void *from, double factor, int64_t cols, double *values) {
    const uint16_t *row = from;
    for (int64_t i = 0; i < cols; i++)
        values[i] += factor * (double)bf16_value(row[i]);
}

/* Converts f16 to fp32. The value of a subnormal f16 is its magnitude bits times 2^-24. */
INLINE float f16_value(uint16_t code) {
    uint32_t magnitude = code & 0x7fff, normal = (magnitude << 13) + (112u << 23), small_bits;
    float small = (float)(int32_t)magnitude * 0x1p-24f;
    memcpy(&small_bits, &small, sizeof small_bits);
    uint32_t bits = magnitude < 0x400 ? small_bits : normal;
    bits = magnitude == 0x7c00 ? 255u << 23 : bits;
    bits |= (uint32_t)(code & 0x8000) << 16;
    return float_of_bits(magnitude > 0x7c00 ? 255u << 23 | 1u << 22 : bits);
}

INLINE void add_f16(const void *from, double factor, int64_t cols, double *values) {
    const uint16_t *row = from;
    for (int64_t i = 0; i < cols; i++)
        values[i] += factor * (double)f16_value(row[i]);
}

INLINE void store_f32(const double *values, int64_t cols, void *out) {
    float *to = out;
    for (int64_t i = 0; i < cols; i++)
        to[i] = (float)values[i];
}

/* Truncates a double to the 24 significant bits of fp32, makes the last of them a sticky bit, and
 * returns the bits of the fp32 number. A sticky bit is 1 if it was 1 before or if any of the 29
 * bits that are cut off was 1. To compute it, the function adds 29 ones (`cut`) to these 29 bits:
 * the sum carries into the sticky bit unless all of them are 0. If the result is rounded to fewer
 * bits later, it is the same as if the double had been rounded at once, unless the value is
 * subnormal in fp32. */
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

/* Rounds a double to f16. The function has no branches, so that compilers can vectorize loops that
 * call it. If the f16 is subnormal, the function lets an fp32 addition do the rounding: it adds 1/2
 * to the magnitude. The last mantissa bit of fp32 numbers from 1/2 to 1 has the value 2^-24, and so
 * has the last bit of subnormal f16 numbers. The fp32 addition therefore rounds to the same
 * multiples of 2^-24 as f16 would. */
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

/* Returns true if any value is subnormal in bf16. Such a value is subnormal in fp32 too, because
 * bf16 and fp32 have the same range of exponents. sticky_bits, which truncates a double to fp32 so
 * that it can be rounded again, is wrong for subnormal values. A row with such a value is encoded
 * by bsmm_elem_encode. */
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

/* Rounds a double to an 8-bit format, whose properties are in *f. The function has no branches, so
 * that compilers can vectorize loops that call it. To round a subnormal, it adds the fp32 value
 * `place`, whose last mantissa bit has the value of the format's last subnormal bit. The addition
 * then rounds to the format. Values that overflow become the largest finite value. */
INLINE uint8_t narrow_from(const bsmm_cpu_epilogue_narrow *f, double value) {
    uint32_t bits = sticky_bits(value), magnitude = bits & 0x7fffffff, sum_bits, place_bits;
    uint32_t shift = 23 - f->mantissa_bits, lowest = (uint32_t)(f->lowest + 127) << 23;
    float place = float_of_bits(lowest + (shift << 23)), sum = float_of_bits(magnitude) + place;
    memcpy(&sum_bits, &sum, sizeof sum_bits);
    memcpy(&place_bits, &place, sizeof place_bits);
    uint32_t half = (1u << (shift - 1)) - 1;
    uint32_t normal = (magnitude - lowest + (1u << 23) + half + (magnitude >> shift & 1)) >> shift;
    uint32_t code = magnitude < lowest ? sum_bits - place_bits : normal;
    bool fnuz = f->nan_code == 0x80, nan = magnitude > 255u << 23;
    code = code > f->max_code ? f->max_code : code;
    code = nan ? f->nan_code : code;
    uint32_t sign = fnuz & (nan | (code == 0)) ? 0 : bits >> 24 & 0x80;
    return (uint8_t)(code | sign);
}

INLINE void store_narrow(const bsmm_cpu_epilogue_narrow *format, const double *values, int64_t cols,
                         uint8_t *to) {
    const bsmm_cpu_epilogue_narrow f = *format;
    for (int64_t i = 0; i < cols; i++)
        to[i] = narrow_from(&f, values[i]);
}

/* This macro defines the loops of one instruction set. For each loop body above, it defines a
 * function with the attributes `target`, and then the table `isa` of these functions. The other
 * arguments of the macro initialize the remaining members of the table. */
#define LOOPS(isa, target, ...)                                                                    \
    target static void scale_##isa(const float *acc, double row_factor, const double *factors,     \
                                   int64_t cols, double *values) {                                 \
        scale(acc, row_factor, factors, cols, values);                                             \
    }                                                                                              \
    target static void store_f32_##isa(const double *values, int64_t cols, void *to) {             \
        store_f32(values, cols, to);                                                               \
    }                                                                                              \
    target static void store_f16_##isa(const double *values, int64_t cols, void *to) {             \
        store_f16(values, cols, to);                                                               \
    }                                                                                              \
    target static void store_bf16_##isa(const double *values, int64_t cols, void *to) {            \
        store_bf16(values, cols, to);                                                              \
    }                                                                                              \
    target static void add_f32_##isa(const void *from, double factor, int64_t cols,                \
                                     double *values) {                                             \
        add_f32(from, factor, cols, values);                                                       \
    }                                                                                              \
    target static void add_f16_##isa(const void *from, double factor, int64_t cols,                \
                                     double *values) {                                             \
        add_f16(from, factor, cols, values);                                                       \
    }                                                                                              \
    target static void add_bf16_##isa(const void *from, double factor, int64_t cols,               \
                                      double *values) {                                            \
        add_bf16(from, factor, cols, values);                                                      \
    }                                                                                              \
    target static void store_narrow_##isa(const bsmm_cpu_epilogue_narrow *f, const double *values, \
                                          int64_t cols, uint8_t *to) {                             \
        store_narrow(f, values, cols, to);                                                         \
    }                                                                                              \
    static const bsmm_cpu_epilogue_loops isa = {.scale = scale_##isa,                              \
                                                .add = {[BSMM_ELEM_F32] = add_f32_##isa,           \
                                                        [BSMM_ELEM_F16] = add_f16_##isa,           \
                                                        [BSMM_ELEM_BF16] = add_bf16_##isa},        \
                                                .store_narrow = store_narrow_##isa,                \
                                                .store = {[BSMM_ELEM_F32] = store_f32_##isa,       \
                                                          [BSMM_ELEM_F16] = store_f16_##isa,       \
                                                          [BSMM_ELEM_BF16] = store_bf16_##isa},    \
                                                __VA_ARGS__}

LOOPS(portable, , .direct = {NULL});

#if defined(__x86_64__)
#    define DIRECT(isa)                                                                            \
        .direct = {[BSMM_ELEM_F32] = bsmm_cpu_epilogue_f32_##isa,                                  \
                   [BSMM_ELEM_F16] = bsmm_cpu_epilogue_f16_##isa,                                  \
                   [BSMM_ELEM_BF16] = bsmm_cpu_epilogue_bf16_##isa}
LOOPS(avx2, __attribute__((target("avx2"))), DIRECT(avx2));
LOOPS(avx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), DIRECT(avx512));
#endif

const bsmm_cpu_epilogue_loops *bsmm_cpu_epilogue_loops_get(void) {
#if defined(__x86_64__)
    uint32_t features = bsmm_cpu_features();
    if (features & BSMM_CPU_AVX512) return &avx512;
    if (features & BSMM_CPU_AVX2) return &avx2;
#endif
    return &portable;
}
