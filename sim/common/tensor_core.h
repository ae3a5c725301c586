/* Computes the sum that a tensor core of an NVIDIA H100 or H200 (compute capability 9.0) computes
 * in one wgmma or mma.sync instruction. NVIDIA does not publish this arithmetic. The following
 * rules were fitted to results of an H200 and an H100 and reproduce all of these results
 * (docs/NUMERICS.md, "Tensor cores"). The constants `fraction` and `kept` depend on the element
 * type: both are 13 for 8-bit elements, and they are 25 and 23 for 16-bit elements.
 *
 * 1. The exponent of a product is the sum of its elements' exponents. A subnormal element has the
 *    exponent of the smallest normal number. Let `top` be the largest exponent of all nonzero
 *    products and of the accumulator.
 * 2. All products and the accumulator are truncated to multiples of 2^(top - fraction). The
 *    truncated numbers are added exactly.
 * 3. The sum is truncated to `kept` bits after its leading bit. If the accumulator is f16, the sum
 *    is rounded to the nearest f16 instead. A result of 0 is +0. */
#ifndef SIM_COMMON_TENSOR_CORE_H
#define SIM_COMMON_TENSOR_CORE_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct sim_tensor_rule {
    int fraction, kept;
    /* `least_a`, `least_b` and `least_sum` are the exponents of the smallest normal element of A
     * and of B, and of the smallest normal accumulator. */
    int least_a, least_b, least_sum;
} sim_tensor_rule;

enum { SIM_TENSOR_MOST_K = 32, SIM_TENSOR_LEAST_E4M3 = -6, SIM_TENSOR_LEAST_E5M2 = -14 };
enum { SIM_TENSOR_LEAST_F16 = -14, SIM_TENSOR_LEAST_BF16 = -126 };

/* Returns the rule by which a tensor core adds products. `narrow` is true for 8-bit elements and
 * false for 16-bit elements. `least_a` and `least_b` are the exponents of the smallest normal
 * elements of A and of B. */
static inline sim_tensor_rule sim_tensor_rule_of(bool narrow, int least_a, int least_b) {
    sim_tensor_rule rule;
    rule.fraction = narrow ? 13 : 25;
    rule.kept = narrow ? 13 : 23;
    rule.least_a = least_a;
    rule.least_b = least_b;
    rule.least_sum = -126;
    return rule;
}

static inline int sim_tensor_exponent(float x, int least) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int e = (int)(bits >> 23 & 255) - 127;
    return e < least ? least : e;
}

static inline double sim_tensor_power(int e) {
    const uint64_t bits = (uint64_t)(e + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns the NaN that tensor cores write for any NaN result. */
static inline float sim_tensor_nan(void) {
    const uint32_t bits = 0x7fffffff;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Holds one row of A or one column of B. Each element is stored as a value and an exponent, which
 * sim_tensor_sum needs. */
typedef struct sim_tensor_vector {
    double values[SIM_TENSOR_MOST_K];
    int32_t exponents[SIM_TENSOR_MOST_K]; /* An exponent is SIM_TENSOR_NONE if the element is 0. */
    bool finite;                          /* `finite` is true if no element is Inf or NaN. */
    bool zero;                            /* `zero` is true if all elements are 0. */
} sim_tensor_vector;

/* SIM_TENSOR_NONE is the exponent of an element that is 0. Every product with such an element gets
 * an exponent below SIM_TENSOR_NONE / 2, and no other product does. */
enum { SIM_TENSOR_NONE = -1000 };

/* Stores a row of A or a column of B in *to, with k elements, as values and exponents. `least` is
 * the exponent of the smallest normal number of the element format. A subnormal element gets this
 * exponent too. */
static inline void sim_tensor_prepare(sim_tensor_vector *to, const float *from, int k, int least) {
    uint32_t any = 0, largest = 0;
    for (int i = 0; i < k; i++) {
        uint32_t bits;
        memcpy(&bits, &from[i], sizeof bits);
        bits &= INT32_MAX;
        any |= bits;
        largest = bits > largest ? bits : largest;
        const int e = (int)(bits >> 23) - 127;
        to->exponents[i] = bits == 0 ? (int)SIM_TENSOR_NONE : e < least ? least : e;
        to->values[i] = (double)from[i];
    }
    to->zero = any == 0;
    to->finite = largest >> 23 < 255;
}

/* Models a tensor core instruction. Its terms are the accumulator `sum` and the k products of
 * elements of a and b. Truncates each term as `rule` says, and returns the exact sum of the
 * truncated terms. If a term is Inf or NaN, returns the sum of IEEE arithmetic instead. */
static inline double sim_tensor_exact(double sum, const sim_tensor_vector *a,
                                      const sim_tensor_vector *b, int k, sim_tensor_rule rule) {
    double products[SIM_TENSOR_MOST_K];
    if (!a->finite || !b->finite || !isfinite(sum)) {
        for (int i = 0; i < k; i++)
            sum += a->values[i] * b->values[i];
        return isnan(sum) ? (double)sim_tensor_nan() : sum;
    }
    /* If all elements of the row of A or of the column of B are 0, the result is 0. This test saves
     * time, because most tiles of small matrices consist mostly of padding, which is zeros. */
    if ((a->zero || b->zero) && sum == 0) return 0;
    int32_t top =
        sum != 0 ? sim_tensor_exponent((float)sum, rule.least_sum) : (int32_t)SIM_TENSOR_NONE;
    for (int i = 0; i < k; i++) {
        const int32_t e = a->exponents[i] + b->exponents[i];
        top = e > top ? e : top;
        products[i] = a->values[i] * b->values[i];
    }
    if (top < SIM_TENSOR_NONE / 2) return 0;
    const double scale = sim_tensor_power(rule.fraction - top);
    int64_t total = (int32_t)(sum * scale);
    for (int i = 0; i < k; i++)
        total += (int32_t)(products[i] * scale);
    return (double)total * sim_tensor_power(top - rule.fraction);
}

/* Adds the k products of elements of a and b to `sum`, and returns the result as a tensor core
 * rounds it to fp32. */
static inline float sim_tensor_sum(float sum, const sim_tensor_vector *a,
                                   const sim_tensor_vector *b, int k, sim_tensor_rule rule) {
    const double exact = sim_tensor_exact((double)sum, a, b, k, rule);
    if (isnan(exact)) return sim_tensor_nan();
    if (isinf(exact) || exact == 0) return (float)exact;
    uint64_t bits;
    memcpy(&bits, &exact, sizeof bits);
    int quantum = (int)(bits >> 52 & 2047) - 1023 - rule.kept;
    if (quantum < -149) quantum = -149;
    const double kept = trunc(exact * sim_tensor_power(-quantum));
    return kept != 0 ? (float)(kept * sim_tensor_power(quantum)) : 0;
}

#endif
