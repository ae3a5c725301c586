/* Selects the operations on strips, i.e. on some adjacent blocks (strip.h), for the best
 * instruction set of the processor, and implements the portable operations. */
#include "quantize/strip.h"

#include "base/cpu.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { RUN = 256 };

static uint32_t largest_bits(const float *values, int64_t n, uint32_t limit) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t a = bsmm_float_bits(values[i]) & 0x7fffffffu;
        a = a > limit ? 0 : a;
        largest = a > largest ? a : largest;
    }
    return largest;
}

static uint32_t row_amax(const bsmm_plain *row, int64_t n, uint32_t limit) {
    float values[RUN];
    uint32_t amax = 0;
    for (int64_t i = 0; i < n; i += RUN) {
        int64_t count = bsmm_min_i64(RUN, n - i);
        bsmm_plain_load(row, i, count, values);
        uint32_t largest = largest_bits(values, count, limit);
        amax = largest > amax ? largest : amax;
    }
    return amax;
}

static void amax_blocks(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                        bool skips_nan, uint32_t *amax) {
    const uint32_t limit = skips_nan ? 0x7f800000u : UINT32_MAX;
    for (int64_t c = 0; c < cols; c += width, amax++) {
        *amax = 0;
        for (int64_t r = 0; r < rows; r++) {
            bsmm_plain row = bsmm_plain_at(values, r, c);
            uint32_t largest = row_amax(&row, bsmm_min_i64(width, cols - c), limit);
            *amax = largest > *amax ? largest : *amax;
        }
    }
}

/* Multiplies or divides n values by the factor of their block. A value that is NaN keeps its sign.
 * The code handles NaN values apart, because if value and factor were both NaN, the sign of their
 * product would depend on the order of operands that the compiler chooses. */
static void scale_run(bsmm_element_step step, float factor, int64_t n, float *values) {
    if (step == BSMM_STEP_DIVIDE)
        for (int64_t i = 0; i < n; i++)
            values[i] /= factor;
    else
        for (int64_t i = 0; i < n; i++)
            values[i] = isnan(values[i]) ? values[i] + values[i] : values[i] * factor;
}

static void encode_codes(const bsmm_strip_job *job, int64_t r, int64_t c, int64_t n,
                         const float *factor, float *values) {
    uint16_t codes[RUN];
    if (factor && job->step == BSMM_STEP_COMPARE)
        bsmm_coder_run_bounds(job->coder, values, n, *factor, codes);
    else {
        if (factor) scale_run(job->step, *factor, n, values);
        bsmm_coder_run(job->coder, values, n, codes);
    }
    bsmm_codes_store(job->dst, r, c, n, codes);
}

/* Stores values as f32 elements. If `factor` is not NULL, the values are first multiplied or
 * divided by it. If a result then overflows to Inf, the largest finite value is stored instead. */
static void encode_f32(const bsmm_strip_job *job, int64_t r, int64_t c, int64_t n,
                       const float *factor, float *values) {
    if (factor) scale_run(job->step, *factor, n, values);
    for (int64_t i = 0; factor && i < n; i++)
        if (isinf(values[i])) values[i] = copysignf(FLT_MAX, values[i]);
    float *to = job->dst->m.data;
    if (job->dst->m.order == BSMM_ORDER_ROW)
        memcpy(to + bsmm_operand_index(job->dst, r, c), values, (size_t)n * sizeof *values);
    else
        for (int64_t i = 0; i < n; i++)
            to[bsmm_operand_index(job->dst, r, c + i)] = values[i];
}

static void encode_block(const bsmm_strip_job *job, const bsmm_plain *row, int64_t r, int64_t c,
                         int64_t cols, const float *factor) {
    float values[RUN];
    bool wide = job->dst->m.format.elem == BSMM_ELEM_F32;
    for (int64_t i = 0; i < cols; i += RUN) {
        int64_t n = bsmm_min_i64(RUN, cols - i);
        bsmm_plain_load(row, i, n, values);
        (wide ? encode_f32 : encode_codes)(job, r, c + i, n, factor, values);
    }
}

static void encode(const bsmm_strip_job *job, const bsmm_plain *row, int64_t r, int64_t c,
                   int64_t cols, const float *factors, bool tame) {
    (void)tame;
    for (int64_t i = 0; i < cols; i += job->width) {
        bsmm_plain block = bsmm_plain_at(row, 0, i);
        encode_block(job, &block, r, c + i, bsmm_min_i64(job->width, cols - i), factors);
        if (factors) factors++;
    }
}

const bsmm_strip_ops bsmm_strip_portable = {amax_blocks, encode, NULL, NULL};

const bsmm_strip_ops *bsmm_strip_ops_best(void) {
#if defined(__x86_64__)
    uint32_t features = bsmm_cpu_features();
    if (features & BSMM_CPU_AVX512) return &bsmm_strip_avx512;
    if (features & BSMM_CPU_AVX2) return &bsmm_strip_avx2;
#endif
    return &bsmm_strip_portable;
}

/* Tells whether the vector code can encode an element format. It can encode all formats of 6 and 8
 * bits, and of the 4-bit formats only e2m1, whose constants it contains. */
static bool has_vector_coder(uint32_t elem) {
    return bsmm_elem_is_narrow(elem) && (bsmm_elem_row(elem)->bits != 4 || elem == BSMM_ELEM_E2M1);
}

const bsmm_strip_ops *bsmm_strip_ops_for(const bsmm_operand *dst) {
    bool packed = dst->m.order == BSMM_ORDER_ROW && has_vector_coder(dst->m.format.elem);
    return packed ? bsmm_strip_ops_best() : &bsmm_strip_portable;
}
