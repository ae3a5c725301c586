/* Random and adversarial operands in guarded memory: each buffer ends where an unreadable page
 * begins, so that a read or write past it ends the test. */
#ifndef BSMM_TEST_OPERAND_H
#define BSMM_TEST_OPERAND_H

#include "format/format.h"

/* splitmix64: the same numbers everywhere. */
typedef struct rng {
    uint64_t state;
} rng;
uint64_t rng_next(rng *r);
uint32_t rng_below(rng *r, uint32_t bound);

/* `bytes` of memory, filled with 0xa5, right before an unreadable page; aligned to 4 when bytes is
 * a multiple of 4. */
void *guarded_alloc(uint64_t bytes);
void guarded_free(void *memory, uint64_t bytes);

typedef enum fill {
    FILL_ORDINARY, /* finite elements, scales near 1 */
    FILL_EXTREME,  /* any finite element, scales of the whole range, 2^-127 and 2^127 among them */
    FILL_SPECIAL,  /* any code: NaN and Inf in elements and scales */
} fill;

/* A matrix with its own memory. Zero fields of `shape` mean what they mean in bsmm_matrix. */
typedef struct test_matrix {
    bsmm_matrix m;
    uint64_t data_bytes, scale_bytes;
    float global;
} test_matrix;

/* Allocates for a description (pointers ignored), poisons, and fills by `how`. */
void test_matrix_make(test_matrix *t, bsmm_matrix shape, fill how, rng *r);
void test_matrix_free(test_matrix *t);

/* A description: row-major order, packed. */
bsmm_matrix describe(bsmm_format format, int64_t rows, int64_t cols);

/* Rows [first, first + count) of a row-major matrix, whose block scales are row-major too; first
 * is the first row of a block. */
bsmm_matrix rows_of(const bsmm_matrix *m, int64_t first, int64_t count);

/* The names of all formats: elements of matrices, then presets, as the tables have them. */
typedef struct format_list {
    const char *names[64];
    size_t count;
} format_list;
format_list all_formats(void);

/* The element of matrices after another one, BSMM_ELEM_NONE past the last:
 * for (uint32_t e = next_elem(BSMM_ELEM_NONE); e; e = next_elem(e)) takes them all. */
uint32_t next_elem(uint32_t elem);

/* The format of a preset or element name; fails the test if there is none. */
bsmm_format format_named(const char *name);

/* Value (r, c), by the definitions of the formats and layouts alone, in double. */
double test_matrix_value(const test_matrix *t, int64_t r, int64_t c);

/* All of them, row after row, far faster than one by one; the caller frees them. */
double *test_matrix_values(const test_matrix *t);

#endif
