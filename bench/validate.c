#include "validate.h"

#include <math.h>
#include <string.h>

static const double tolerance = 1e-3;
/* `budget` is the largest number of multiply-adds that a validation computes. */
static const int64_t budget = (int64_t)1 << 28;

/* Returns the stride between two outputs that are checked. It is odd, so it has no common factor
 * with tile sizes, which are powers of two. The check therefore covers every position within a
 * tile. */
static int64_t choose_stride(int64_t outputs, int64_t k) {
    int64_t affordable = budget / (k > 0 ? k : 1) + 1;
    int64_t stride = outputs / affordable + 1;
    return stride == 1 ? 1 : stride | 1;
}

typedef struct sums {
    /* `exact` is the sum of a * b over K, and `magnitude` is the sum of |a * b|. */
    double exact, magnitude;
} sums;

static sums sum_products(const float *a, const float *b, int64_t k) {
    double exact = 0, magnitude = 0;
#pragma omp simd reduction(+ : exact, magnitude)
    for (int64_t i = 0; i < k; i++) {
        double product = (double)a[i] * (double)b[i];
        exact += product;
        magnitude += fabs(product);
    }
    return (sums){exact, magnitude};
}

static uint32_t load(const bsmm_matrix *d, int64_t index) {
    static const size_t bytes[] = {[BSMM_ELEM_F32] = 4, [BSMM_ELEM_F16] = 2, [BSMM_ELEM_BF16] = 2};
    uint32_t code = 0;
    size_t size = bytes[d->format.elem];
    memcpy(&code, (const char *)d->data + (size_t)index * size, size);
    return code;
}

static double decode(const bsmm_matrix *d, uint32_t code) {
    double value = NAN;
    bsmm_decode_elem(d->format.elem, code, &value);
    return value;
}

static void compare(double value, sums sum, double rounding, int64_t index, int64_t cols,
                    bench_result *result) {
    double exact = sum.exact;
    double error = fabs(value - exact), relative = error / fmax(1, fabs(exact));
    double allowed = tolerance + (tolerance + rounding) * fabs(exact);
    double promised = result->bound * sum.magnitude + rounding * fabs(exact);
    result->checked++;
    if (!(error <= fmax(allowed, promised))) result->failed++;
    /* If `relative` is NaN, this comparison is false, and the function does not return here. It
     * then sets max_error to NaN, unless max_error is already NaN. */
    if (relative <= result->max_error) return;
    if (isnan(result->max_error)) return;
    result->max_error = relative;
    result->worst = value;
    result->worst_exact = exact;
    result->worst_row = index / cols;
    result->worst_col = index % cols;
}

void bench_validate(const bsmm_matrix *d, const float *a, const float *b, int64_t k,
                    const uint32_t *unwritten, bench_result *result) {
    int64_t outputs = d->rows * d->cols, stride = choose_stride(outputs, k);
    double rounding = d->format.elem == BSMM_ELEM_BF16 ? 0x1p-8 : 0;
    for (int64_t i = 0; i < outputs; i += stride) {
        const uint32_t code = load(d, i);
        if (unwritten && code == *unwritten) continue;
        sums sum = sum_products(a + i / d->cols * k, b + i % d->cols * k, k);
        compare(decode(d, code), sum, rounding, i, d->cols, result);
    }
    if (unwritten && !result->checked) result->failed = 1;
}
