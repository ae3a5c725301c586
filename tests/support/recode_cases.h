/* Matrices that tests quantize by every recipe. They vary formats, input types, scale layouts,
 * orders, sizes and strides, and have values that are hard because of rounding, zeros, NaN and
 * subnormals. */
#ifndef BSMM_TEST_RECODE_CASES_H
#define BSMM_TEST_RECODE_CASES_H

#include "operand.h"

typedef struct recode_case {
    /* The source and the destination of a conversion. The memory of dst is filled with a pattern
     * before the conversion. */
    test_matrix src, dst;
    const char *recipe;
    uint32_t flags;
    bool two_level;
} recode_case;

/* Calls `check` for `rounds` cases of each recipe and format. */
void recode_cases_each(uint32_t rounds, void (*check)(const recode_case *c, void *context),
                       void *context);

/* Fills an unscaled matrix of f32, f16 or bf16 with values of kind `mix`, such as ordinary values,
 * halfway values or tiny values. */
void recode_fill(const test_matrix *t, uint32_t mix, rng *r);
enum { RECODE_MIXES = 5 };

/* Fails the test and names the case if the bytes differ. */
void recode_expect(const recode_case *c, const char *what, const void *expected, const void *got,
                   uint64_t bytes);

#endif
