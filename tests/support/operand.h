/* Declares functions that make random and extreme operands in guarded memory. An unreadable page
 * follows guarded memory, so that an access past its end crashes the test. */
#ifndef BSMM_TEST_OPERAND_H
#define BSMM_TEST_OPERAND_H

#include "format/format.h"

/* Holds the state of the random generator splitmix64. It gives the same numbers on every
 * machine. */
typedef struct rng {
    uint64_t state;
} rng;
uint64_t rng_next(rng *r);
uint32_t rng_below(rng *r, uint32_t bound);

/* Allocates `bytes` bytes right before an unreadable page and fills them with 0xa5. The address is
 * a multiple of 4 if `bytes` is a multiple of 4. */
void *guarded_alloc(uint64_t bytes);
void guarded_free(void *memory, uint64_t bytes);

typedef enum fill {
    /* FILL_ORDINARY fills the matrix with finite elements and with block scales near 1. */
    FILL_ORDINARY,
    /* FILL_EXTREME fills the matrix with any finite elements and with scales of the whole range,
     * for example 2^-127 and 2^127. */
    FILL_EXTREME,
    /* FILL_SPECIAL fills the matrix with any codes, so elements and scales may be NaN or Inf. */
    FILL_SPECIAL,
} fill;

/* Describes a matrix and owns its memory. */
typedef struct test_matrix {
    bsmm_matrix m;
    uint64_t data_bytes, scale_bytes;
    float global;
} test_matrix;

/* Allocates the memory of a matrix with the description `shape`, and fills elements and scales as
 * `how` says. The pointers in `shape` are ignored. A field of `shape` that is 0 has the default
 * meaning of bsmm_matrix. */
void test_matrix_make(test_matrix *t, bsmm_matrix shape, fill how, rng *r);
void test_matrix_free(test_matrix *t);

/* Returns the description of a row-major matrix without gaps between its rows. */
bsmm_matrix describe(bsmm_format format, int64_t rows, int64_t cols);

/* Returns the description of rows [first, first + count) of a row-major matrix. Its block scales
 * must be row-major, and row `first` must be the first row of a block. */
bsmm_matrix rows_of(const bsmm_matrix *m, int64_t first, int64_t count);

/* Holds the names of formats: first the element formats, then the presets. */
typedef struct format_list {
    const char *names[64];
    size_t count;
} format_list;
format_list all_formats(void);

/* Returns the element format after `elem`, or BSMM_ELEM_NONE after the last one. The loop for
 * (uint32_t e = next_elem(BSMM_ELEM_NONE); e; e = next_elem(e)) visits all element formats. */
uint32_t next_elem(uint32_t elem);

/* Returns the format that a preset or an element format of this name describes. Fails the test if
   there is none. */
bsmm_format format_named(const char *name);

/* Returns the value of element (r, c) times its scales in double. The function follows the
 * definitions of formats and layouts and calls none of the library's kernels. */
double test_matrix_value(const test_matrix *t, int64_t r, int64_t c);

/* Returns all values of a matrix, row after row. This is far faster than a call of
 * test_matrix_value for each value. The caller frees the array. */
double *test_matrix_values(const test_matrix *t);

#endif
