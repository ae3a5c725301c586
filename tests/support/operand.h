/* Random and extreme operands in guarded memory, i.e. memory that ends where an unreadable page
 * begins, so that an access past its end crashes the test. */
#ifndef BSMM_TEST_OPERAND_H
#define BSMM_TEST_OPERAND_H

#include "format/format.h"

/* The random generator splitmix64, which gives the same numbers on every machine. */
typedef struct rng {
    uint64_t state;
} rng;
uint64_t rng_next(rng *r);
uint32_t rng_below(rng *r, uint32_t bound);

/* Allocates `bytes` bytes right before an unreadable page, and fills them with 0xa5. The memory is
 * aligned to 4 if `bytes` is a multiple of 4. */
void *guarded_alloc(uint64_t bytes);
void guarded_free(void *memory, uint64_t bytes);

typedef enum fill {
    FILL_ORDINARY, /* Fills with finite elements and block scales near 1. */
    /* Fills with any finite elements and with scales of the whole range, including 2^-127 and
     * 2^127. */
    FILL_EXTREME,
    FILL_SPECIAL, /* Fills with any codes, including NaN and Inf in elements and scales. */
} fill;

/* A matrix with memory of its own. A field of `shape` that is 0 has its default meaning in
 * bsmm_matrix. */
typedef struct test_matrix {
    bsmm_matrix m;
    uint64_t data_bytes, scale_bytes;
    float global;
} test_matrix;

/* Allocates the memory of a matrix with the given description, fills it with a pattern, and then
 * fills the elements and scales as `how` says. The pointers of the description are ignored. */
void test_matrix_make(test_matrix *t, bsmm_matrix shape, fill how, rng *r);
void test_matrix_free(test_matrix *t);

/* Describes a row-major matrix with packed rows. */
bsmm_matrix describe(bsmm_format format, int64_t rows, int64_t cols);

/* Describes rows [first, first + count) of a row-major matrix with row-major block scales. `first`
 * must be the first row of a block. */
bsmm_matrix rows_of(const bsmm_matrix *m, int64_t first, int64_t count);

/* The names of all formats: the elements of matrices, then the presets, in the order of the
 * tables. */
typedef struct format_list {
    const char *names[64];
    size_t count;
} format_list;
format_list all_formats(void);

/* Returns the element format after another one, or BSMM_ELEM_NONE past the last.
 * for (uint32_t e = next_elem(BSMM_ELEM_NONE); e; e = next_elem(e)) visits all of them. */
uint32_t next_elem(uint32_t elem);

/* Returns the format of a preset or element name. Fails the test if there is none. */
bsmm_format format_named(const char *name);

/* Returns value (r, c) in double, computed from the definitions of formats and layouts only. */
double test_matrix_value(const test_matrix *t, int64_t r, int64_t c);

/* Returns all values of a matrix, row after row. This is far faster than a call of
 * test_matrix_value for each value. The caller frees them. */
double *test_matrix_values(const test_matrix *t);

#endif
