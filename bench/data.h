/* Fills matrices with random elements for measurements, and allocates them. */
#ifndef BENCH_DATA_H
#define BENCH_DATA_H

#include <bsmm.h>
#include <stdbool.h>

/* the seed of the random data, the same as in Triton's block-scaled tutorial */
enum { BENCH_FIRST_SEED = 42 };

/* Creates a row-major matrix with memory of its own, which is aligned to 64 bytes and
 * uninitialized. Rows and scales are packed. The caller zeroes *matrix first, and destroys it even
 * if this fails. */
bsmm_status bench_matrix_create(bsmm_matrix *matrix, bsmm_format format, int64_t rows,
                                int64_t cols);
/* Creates a matrix as bench_matrix_create does, but with the given scale layout. */
bsmm_status bench_matrix_create_in(bsmm_matrix *matrix, bsmm_format format, uint32_t layout,
                                   int64_t rows, int64_t cols);
void bench_matrix_destroy(bsmm_matrix *matrix);

/* Fills a matrix. With e8m0 or e4m3 scales it uses the distribution of Triton's block-scaled
 * tutorial: elements are random e2m1 values whatever the element format, and scales are uniform in
 * (0, 1], rounded down to e8m0 or to the nearest e4m3. All other matrices use the distribution of
 * the FP8 groupwise challenge: normally distributed values and uniform fp32 scales. The same seed
 * gives the same bytes. */
bsmm_status bench_matrix_fill(bsmm_matrix *matrix, uint64_t seed);

/* Creates and fills a matrix, and creates `wide` with the same values as a dense fp32 matrix.
 * `layout` is the layout of the scales. If `quantized` is set, the values are normally distributed
 * and quantized by the format's default recipe. */
bsmm_status bench_operand_create(bsmm_matrix *matrix, bsmm_matrix *wide, bsmm_format format,
                                 uint32_t layout, int64_t rows, int64_t cols, uint64_t seed,
                                 int quantized);

/* Returns the number of bits of an element's code. */
uint32_t bench_elem_bits(uint32_t elem);
/* Returns true for formats of more than 8 bits: f32, f16 and bf16. */
bool bench_elem_is_wide(uint32_t elem);

/* Returns the next 64 random bits of splitmix64. */
uint64_t bench_next_bits(uint64_t *state);

#endif
