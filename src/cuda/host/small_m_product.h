/* How the small-M kernels take a product: their operands, how K is cut, and what of their
 * parameters does not depend on that. */
#ifndef BSMM_CUDA_HOST_SMALL_M_PRODUCT_H
#define BSMM_CUDA_HOST_SMALL_M_PRODUCT_H

#include "cuda/host/kernel.h"
#include "cuda/sm90a/small_m_params.h"

/* It has fp32 scales, and each step of K lies in one block. */
bool bsmm_small_m_has_steady_floats(const bsmm_operand *o);

/* And each 16 rows too. */
bool bsmm_small_m_has_tile_floats(const bsmm_operand *o);

/* One fp32 scale for all of K: it is applied to results. */
bool bsmm_small_m_has_row_floats(const bsmm_operand *o);

/* bf16 numbers that make one value of A. */
uint32_t bsmm_small_m_count_parts(const bsmm_operand *a);

bsmm_small_m_source bsmm_small_m_find_source(const bsmm_operand *a);

/* ---- K ---- */

enum {
    BSMM_SMALL_M_MOST_SPLITS = 8,          /* portable clusters */
    BSMM_SMALL_M_MOST_SHARED = 227 * 1024, /* of a block */
};

/* Steps of BSMM_SMALL_M_K. */
uint32_t bsmm_small_m_count_steps(const bsmm_product *p);

/* Most steps of a part when K is cut into `count` parts. */
uint32_t bsmm_small_m_most_steps(uint32_t steps, uint32_t count);

/* Blocks of a cluster that share `rows` rows of B and cut K: as many as fill the multiprocessors
 * best, of parts that have `least` steps. Whatever M is, so that sums have one order. */
uint32_t bsmm_small_m_choose_splits(const bsmm_product *p, uint32_t rows, uint32_t least);

/* ---- parameters ---- */

/* Bytes that B's scales, `step_scales` of a row and step, can be copied by, when each of `splits`
 * blocks begins with one of `ranges` of K; 0: they are gathered one by one. */
uint32_t bsmm_small_m_scale_vector(const bsmm_product *p, uint32_t step_scales, uint32_t splits,
                                   uint32_t ranges);

/* The logarithms of a power of two, and of any number, rounded up. */
uint32_t bsmm_small_m_log2(uint32_t power);
uint32_t bsmm_small_m_log2_up(uint32_t count);

/* What the product alone says, and its memory, of one that was made without. */
bsmm_small_m_params bsmm_small_m_params_of(const bsmm_product *p);
void bsmm_small_m_params_bind(const bsmm_product *p, bsmm_small_m_params *params);

#endif
