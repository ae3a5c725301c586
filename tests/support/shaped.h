/* Declares operands of three kinds. Depending on the kind, the rounding errors of dot products are
 * typical, have one sign, or grow along K. */
#ifndef BSMM_TEST_SHAPED_H
#define BSMM_TEST_SHAPED_H

#include "operand.h"

typedef enum test_shape {
    SHAPE_MIXED, /* SHAPE_MIXED makes random elements of both signs. */
    /* SHAPE_POSITIVE makes random positive elements, so that the errors of truncated sums all have
     * the same sign. */
    SHAPE_POSITIVE,
    /* SHAPE_GROWING makes elements that are not negative, and e8m0 block scales that grow along K
     * from 2^-7 to 1. Scales of other formats do not grow. */
    SHAPE_GROWING,
    SHAPES
} test_shape;

/* Makes A with m rows and B with n rows, each with k columns. `pair` names their two formats. The
 * name "fp8_rows" means e4m3 elements with one fp32 scale for each row. The same arguments give the
 * same bytes on every machine. */
void test_shaped_make(test_matrix *a, test_matrix *b, const char *const pair[2], int64_t m,
                      int64_t n, int64_t k, test_shape shape);

#endif
