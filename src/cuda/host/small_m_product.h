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

/* How fast blocks of one shape are: microseconds on an H200. */
typedef struct bsmm_small_m_speed {
    uint32_t k_warps;   /* warps along K of a block */
    uint32_t rows;      /* of B in a block */
    double fixed, step; /* the time of a block, and of each step of a warp */
} bsmm_small_m_speed;

enum { BSMM_SMALL_M_SPEEDS = 3 };

/* The shapes that blocks may have with weights of 4 or 8 bits, and, the last, those of
 * cuda_sm90a_fp8_small_m. Rows with k_warps 0 are none. */
typedef enum bsmm_small_m_family {
    BSMM_SMALL_M_4BIT = 0,
    BSMM_SMALL_M_8BIT = 1,
    BSMM_SMALL_M_FP8 = 2
} bsmm_small_m_family;
extern const bsmm_small_m_speed bsmm_small_m_speeds[][BSMM_SMALL_M_SPEEDS];

/* The predicted time, in microseconds, of a product of blocks of one shape, in clusters of `splits`
 * that share rows of B and cut K: waves of clusters, times the time of a block. It does not depend
 * on M, so that sums have one order. */
double bsmm_small_m_predict(const bsmm_product *p, const bsmm_small_m_speed *speed,
                            uint32_t splits);

/* ---- parameters ---- */

/* How many bytes of B's row-major scales, `step_scales` of a row and step, are copied at once if
 * each of `splits` blocks begins with one of `ranges` of K; 0: the scales have another layout. */
uint32_t bsmm_small_m_scale_vector(const bsmm_product *p, uint32_t step_scales, uint32_t splits,
                                   uint32_t ranges);

/* The logarithms of a power of two, and of any number, rounded up. */
uint32_t bsmm_small_m_log2(uint32_t power);
uint32_t bsmm_small_m_log2_up(uint32_t count);

/* What the product alone says, and its memory, of one that was made without. */
bsmm_small_m_params bsmm_small_m_params_of(const bsmm_product *p);
void bsmm_small_m_params_bind(const bsmm_product *p, bsmm_small_m_params *params);

#endif
