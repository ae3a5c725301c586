/* Describes a row of values that is being encoded. The encoders of all instruction sets use these
 * types. */
#ifndef BSMM_QUANTIZE_ENCODE_ROW_H
#define BSMM_QUANTIZE_ENCODE_ROW_H

#include "quantize/factor_cursor.h"
#include "quantize/strip.h"

/* FACTOR_RUN adjacent columns, from a multiple of FACTOR_RUN on, always have the same factor. The
 * reason is that vector code encodes only blocks whose width is a multiple of FACTOR_RUN. */
enum { FACTOR_RUN = 16 };

/* `encode_care` says which special cases the loop of a row must handle. CARE_PLUS adds 0 to each
 * value, which turns -0 into +0 and changes no other value. CARE_ALL handles NaN and every rule for
 * zeros and ties. */
typedef enum encode_care {
    CARE_NONE, /* CARE_NONE: no NaN arises, and a zero keeps its sign. */
    CARE_PLUS, /* CARE_PLUS: no NaN arises, and the recipe turns -0 into +0. */
    CARE_ALL
} encode_care;

/* `element_way` is the operation that applies a factor to a value. */
typedef enum element_way {
    WAY_MULTIPLY,
    /* WAY_DIVIDE_TAME is fast division, for blocks whose magnitudes are moderate (quantize/recipe.h
     * calls such blocks "tame"). */
    WAY_DIVIDE_TAME,
    WAY_DIVIDE,
    WAY_COMPARE
} element_way;

/* This struct holds two positions that advance together: one in the array of the factors of a row's
 * blocks, and one in the array of the reciprocals of these factors. */
typedef struct meeting_cursor {
    factor_cursor by, reciprocal;
} meeting_cursor;

typedef struct encode_row {
    const void *from;
    uint32_t elem, bits;
    int64_t cols, width, ahead;
    const float *factors,
        /* `reciprocals` holds the reciprocals of the factors. It is set only for
         * WAY_DIVIDE_TAME. */
        *reciprocals;
    element_way way;
    uint8_t *to;
} encode_row;

static inline encode_care care_of(const bsmm_coder *k, bool tame) {
    bool one_zero = k->zero_code_and == 0;
    if (!tame || one_zero || k->zero_or || k->down) return CARE_ALL;
    return k->zero_and ? CARE_NONE : CARE_PLUS;
}

static inline element_way way_of(const bsmm_strip_job *job, encode_care care) {
    if (job->step == BSMM_STEP_COMPARE) return WAY_COMPARE;
    if (job->step == BSMM_STEP_MULTIPLY) return WAY_MULTIPLY;
    return care == CARE_NONE ? WAY_DIVIDE_TAME : WAY_DIVIDE;
}

static inline void reciprocals_of(const float *factors, int64_t n, float *reciprocals) {
    for (int64_t i = 0; i < n; i++)
        reciprocals[i] = 1 / factors[i];
}

#endif
