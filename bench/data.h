/* Creates matrices and fills them with random elements for measurements. */
#ifndef BENCH_DATA_H
#define BENCH_DATA_H

#include <bsmm.h>
#include <stdbool.h>

/* BENCH_FIRST_SEED is the seed of random data. Triton's block-scaled tutorial uses the same
 * seed. */
enum { BENCH_FIRST_SEED = 42 };

/* Creates a row-major matrix without gaps. Its memory is its own, uninitialized, and aligned to 64
 * bytes. The caller must zero *matrix before the call, and must destroy the matrix even if the call
 * fails. */
bsmm_status bench_matrix_create(bsmm_matrix *matrix, bsmm_format format, int64_t rows,
                                int64_t cols);
/* Creates a matrix like bench_matrix_create, but with the storage order `order` and the scale
 * layout `layout`. */
bsmm_status bench_matrix_create_in(bsmm_matrix *matrix, bsmm_format format, uint32_t order,
                                   uint32_t layout, int64_t rows, int64_t cols);
void bench_matrix_destroy(bsmm_matrix *matrix);

/* Fills a matrix with random elements and scales. The same seed gives the same bytes. The
 * distribution depends on the scale format:
 * - With e8m0 or e4m3 scales, the distribution is taken from Triton's block-scaled tutorial.
 *   Elements are random e2m1 values, whatever the element format is. Scales are uniform in (0, 1],
 *   rounded down to e8m0 or to the nearest e4m3.
 * - With fp32 scales, or without scales, elements are normally distributed, and fp32 scales are
 *   uniform. */
bsmm_status bench_matrix_fill(bsmm_matrix *matrix, uint64_t seed);

/* Describes how an operand is stored and which values it has. */
typedef struct bench_operand_kind {
    uint32_t order, layout; /* `order` is the storage order, and `layout` is the scale layout. */
    uint64_t seed;
    /* If `quantized` is true, the values are normally distributed and quantized by the format's
     * default recipe. */
    bool quantized;
    /* If `normal_scales` is true, fp32 scales are normally distributed instead of uniform, so half
     * of them are negative. */
    bool normal_scales;
} bench_operand_kind;

/* Creates and fills a matrix, and creates `wide`, a row-major fp32 matrix with the same values. */
bsmm_status bench_operand_create(bsmm_matrix *matrix, bsmm_matrix *wide, bsmm_format format,
                                 int64_t rows, int64_t cols, const bench_operand_kind *kind);

/* Returns the number of bits of an element of this format. */
uint32_t bench_elem_bits(uint32_t elem);
/* Returns true for f32, f16 and bf16, the element formats of more than 8 bits. */
bool bench_elem_is_wide(uint32_t elem);

/* Returns the next 64 random bits of splitmix64. */
uint64_t bench_next_bits(uint64_t *state);

#endif
