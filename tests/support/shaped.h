/* Operands whose sums have typical, one-sided or growing rounding errors. */
#ifndef BSMM_TEST_SHAPED_H
#define BSMM_TEST_SHAPED_H

#include "operand.h"

typedef enum test_shape {
    SHAPE_MIXED,    /* random elements of both signs */
    SHAPE_POSITIVE, /* random elements without signs, so that the errors of truncation add up */
    /* Elements without signs, whose e8m0 scales grow along K from 2^-7 to 1. Scales of other
     * formats do not change. */
    SHAPE_GROWING,
    SHAPES
} test_shape;

/* Makes two operands of the named formats with m and n rows and k columns. The same arguments give
 * the same bytes on every machine. */
void test_shaped_make(test_matrix *a, test_matrix *b, const char *const pair[2], int64_t m,
                      int64_t n, int64_t k, test_shape shape);

#endif
