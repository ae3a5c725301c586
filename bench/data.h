/* Random operands and results for measuring. */
#ifndef BENCH_DATA_H
#define BENCH_DATA_H

#include <bsmm.h>
#include <stdbool.h>

enum { BENCH_FIRST_SEED = 42 }; /* the tutorial's */

/* A row-major matrix, rows and scales packed, with memory of its own (64-byte aligned, unset).
 * The caller zeroes *matrix first and destroys it whether this succeeds or not. */
bsmm_status bench_matrix_create(bsmm_matrix *matrix, bsmm_format format, int64_t rows,
                                int64_t cols);
/* The same with another scale layout. */
bsmm_status bench_matrix_create_in(bsmm_matrix *matrix, bsmm_format format, uint32_t layout,
                                   int64_t rows, int64_t cols);
void bench_matrix_destroy(bsmm_matrix *matrix);

/* Fills a matrix as Triton's block-scaled tutorial does where it has e8m0 or e4m3 scales: elements
 * are random e2m1 values whatever the element format, scales are uniform in (0, 1], to e8m0 rounded
 * down, to e4m3 to nearest. Other matrices as the FP8 groupwise challenge: normal values, uniform
 * fp32 scales. The same seed gives the same bytes. */
bsmm_status bench_matrix_fill(bsmm_matrix *matrix, uint64_t seed);

/* Both, and the matrix's values as a dense fp32 matrix, which is made and destroyed likewise.
 * layout: of the scales. quantized: normal values, quantized by the format's default recipe,
 * instead of the tutorial's. */
bsmm_status bench_operand_create(bsmm_matrix *matrix, bsmm_matrix *wide, bsmm_format format,
                                 uint32_t layout, int64_t rows, int64_t cols, uint64_t seed,
                                 int quantized);

/* The number of bits of an element's code. */
uint32_t bench_elem_bits(uint32_t elem);
/* More than 8 bits: f32, f16 and bf16. */
bool bench_elem_is_wide(uint32_t elem);

/* The next 64 of splitmix64's random bits. */
uint64_t bench_next_bits(uint64_t *state);

#endif
