/* What to quantize, by every recipe: formats, input types, scale layouts, orders, odd sizes and
 * pitches, and values that rounding, zeros, NaN and subnormals make hard. */
#ifndef BSMM_TEST_RECODE_CASES_H
#define BSMM_TEST_RECODE_CASES_H

#include "operand.h"

typedef struct recode_case {
    test_matrix src, dst; /* dst's memory is poisoned */
    const char *recipe;
    uint32_t flags;
    bool two_level;
} recode_case;

/* Calls check for `rounds` cases of each recipe and format. */
void recode_cases_each(uint32_t rounds, void (*check)(const recode_case *c, void *context),
                       void *context);

/* Values of one of the mixes into an unscaled matrix of f32, f16 or bf16. */
void recode_fill(const test_matrix *t, uint32_t mix, rng *r);
enum { RECODE_MIXES = 5 };

/* Fails the test, naming the case, unless the bytes are the same. */
void recode_expect(const recode_case *c, const char *what, const void *expected, const void *got,
                   uint64_t bytes);

#endif
