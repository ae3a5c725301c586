/* Declares matrices that tests quantize by every recipe, i.e. by every rule that computes scales.
 * Their formats, scale layouts, orders and sizes vary. */
#ifndef BSMM_TEST_RECODE_CASES_H
#define BSMM_TEST_RECODE_CASES_H

#include "operand.h"

typedef struct recode_case {
    /* The test converts `src` to `dst`. The memory of `dst` is filled with a pattern before the
     * conversion. */
    test_matrix src, dst;
    const char *recipe;
    uint32_t flags;
    bool two_level;
} recode_case;

/* Calls `check` for `rounds` random cases of each recipe and format. A recipe is a rule that
   computes scales. */
void recode_cases_each(uint32_t rounds, void (*check)(const recode_case *c, void *context),
                       void *context);

/* Fills an unscaled matrix of f32, f16 or bf16 with values. `mix` chooses the kind of values, such
 * as ordinary values, halfway values or tiny values. */
void recode_fill(const test_matrix *t, uint32_t mix, rng *r);
enum { RECODE_MIXES = 5 };

/* Compares the bytes that a conversion wrote with the expected bytes. Fails the test and names the
   case if they differ. */
void recode_expect(const recode_case *c, const char *what, const void *expected, const void *got,
                   uint64_t bytes);

#endif
