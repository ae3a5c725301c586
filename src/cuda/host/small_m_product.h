/* The host code of all small-M kernels (few rows of A) shares these functions. They test operands,
 * split K, and fill the kernel parameters that do not depend on the split. */
#ifndef BSMM_CUDA_HOST_SMALL_M_PRODUCT_H
#define BSMM_CUDA_HOST_SMALL_M_PRODUCT_H

#include "cuda/host/clusters.h"
#include "cuda/host/kernel.h"
#include "cuda/sm90a/small_m_params.h"

/* BSMM_SMALL_M_FLOATS_RULE is the reason with which a kernel refuses an operand whose fp32 scales
 * change within BSMM_SMALL_M_K elements of a row (bsmm_small_m_has_steady_floats). */
#define BSMM_SMALL_M_FLOATS_RULE                                                                   \
    "the kernel takes f32 scales of multiples of 128 columns or all of K"

/* Returns NULL if the operand's K and ld are multiples of `unit` elements, which take `bytes`
 * bytes. Otherwise writes the reason to `why` and returns it. */
const char *bsmm_small_m_refuse_units(const bsmm_operand *o, char name, uint32_t unit,
                                      uint32_t bytes, char *why, size_t size);

/* Returns true if the operand has fp32 scales that do not change within a step of K (BSMM_SMALL_M_K
 * elements of a row). */
bool bsmm_small_m_has_steady_floats(const bsmm_operand *o);

/* Returns true if the operand has fp32 scales and each tile of 16 rows by BSMM_SMALL_M_K elements
 * of K lies in one scale block. */
bool bsmm_small_m_has_tile_floats(const bsmm_operand *o);

/* Returns true if each row of the operand has one fp32 scale for all of K. The kernels multiply
 * complete sums by such scales. */
bool bsmm_small_m_has_row_floats(const bsmm_operand *o);

/* Returns the number of bf16 numbers whose sum is one value of A: 2 for f16, 3 for f32, else 1. */
uint32_t bsmm_small_m_count_parts(const bsmm_operand *a);

bsmm_small_m_source bsmm_small_m_find_source(const bsmm_operand *a);

enum {
    /* BSMM_SMALL_M_MOST_SPLITS is the largest number of thread blocks that split K. They form a
     * cluster, and 8 is the largest portable cluster size. */
    BSMM_SMALL_M_MOST_SPLITS = 8,
    /* BSMM_SMALL_M_MOST_SHARED is the largest shared memory of a thread block on sm_90, in
     * bytes. */
    BSMM_SMALL_M_MOST_SHARED = 227 * 1024,
};

/* Returns the number of scales of a row if each scale has one byte and the scales of a row are
 * adjacent in memory. Otherwise returns 0. */
uint32_t bsmm_small_m_count_code_scales(const bsmm_operand *o);

/* Returns the number of steps of BSMM_SMALL_M_K elements along K, rounded up. */
uint32_t bsmm_small_m_count_steps(const bsmm_product *p);

/* Returns the largest number of steps of K that one thread block computes if `count` thread blocks
 * share `steps` steps. A step is BSMM_SMALL_M_K elements. */
uint32_t bsmm_small_m_most_steps(uint32_t steps, uint32_t count);

/* Describes the measured speed of a thread block on an H200, for one shape of thread block. */
typedef struct bsmm_small_m_speed {
    /* `k_warps` is the number of warps of a thread block that multiply the same rows of B and split
     * K among them. */
    uint32_t k_warps;
    uint32_t rows; /* `rows` is the number of rows of B that a thread block computes. */
    /* These numbers predict the time of a thread block, which is `fixed` + n * `step` microseconds.
     * n is the number of steps that each of its warps multiplies; a step is 128 elements along K.
     */
    double fixed, step;
} bsmm_small_m_speed;

enum { BSMM_SMALL_M_SPEEDS = 3 };

/* These are the indices of the tables in bsmm_small_m_speeds: one table for 4-bit weights, one for
 * 8-bit weights, and one for the kernel cuda_sm90a_fp8_small_m. A table entry with k_warps 0 is
 * unused. */
typedef enum bsmm_small_m_family {
    BSMM_SMALL_M_4BIT = 0,
    BSMM_SMALL_M_8BIT = 1,
    BSMM_SMALL_M_FP8 = 2
} bsmm_small_m_family;
extern const bsmm_small_m_speed bsmm_small_m_speeds[][BSMM_SMALL_M_SPEEDS];

/* Returns the predicted time of a GEMM in microseconds. A cluster has `splits` thread blocks, which
 * have the same rows of B and split K. The time is that of one thread block times the number of
 * waves, i.e. of the rounds in which the GPU runs all clusters. The prediction does not depend on
 * M. The host chooses `splits` by this prediction, so the order of additions along K does not
 * depend on M either. */
double bsmm_small_m_predict(const bsmm_product *p, const bsmm_small_m_speed *speed,
                            uint32_t splits);

/* Every thread block reads the part of A that it needs, converted to bf16, from L2. Returns the
 * predicted time in microseconds that this takes for all thread blocks together, if A has the
 * largest number of rows. (A row that is split into several bf16 parts counts as so many rows; the
 * largest number is BSMM_SMALL_M_MOST_COLUMNS.) */
double bsmm_small_m_predict_a(const bsmm_product *p, const bsmm_small_m_speed *speed,
                              uint32_t splits);

/* Returns true if B's scales are row-major codes of one byte that kernels copy to shared memory 16
 * bytes at a time. The function returns false if the rows of e4m3 codes have an odd stride. */
bool bsmm_small_m_has_row_codes(const bsmm_operand *b);

/* Returns the distance in bytes from the scales of one row of B to those of the next row in shared
 * memory. A thread block holds the scales for its part of K: K is split into `ranges` ranges of
 * whole steps, which `splits` thread blocks divide among them, and a row has `step_scales` bytes of
 * scales per step. Kernels copy row-major codes 16 aligned bytes at a time. The codes of a row must
 * then have the same address modulo 16 in shared memory as in global memory. If rows of codes in
 * global memory are not aligned to 16 bytes, the returned distance is therefore equal modulo 16 to
 * the distance between rows there. */
uint32_t bsmm_small_m_scale_stride(const bsmm_product *p, uint32_t step_scales, uint32_t splits,
                                   uint32_t ranges);

/* Returns the log2 of the number of threads that copy the `bytes` scale codes of a row of B to
 * shared memory. Each of them copies 16 bytes at a time. Up to 15 bytes before and behind the codes
 * are copied too, so that the copies are aligned. */
uint32_t bsmm_small_m_scale_lanes_log2(uint32_t bytes);

/* bsmm_small_m_log2 returns log2 of a power of two. bsmm_small_m_log2_up returns log2 of any
 * positive number, rounded up. */
uint32_t bsmm_small_m_log2(uint32_t power);
uint32_t bsmm_small_m_log2_up(uint32_t count);

/* bsmm_small_m_params_of fills the parameters that depend only on the product and not on how K is
 * split. bsmm_small_m_params_bind sets the pointers in them to the buffers of a run. */
bsmm_small_m_params bsmm_small_m_params_of(const bsmm_product *p);
void bsmm_small_m_params_bind(const bsmm_product *p, bsmm_small_m_params *params);

/* Returns true if A's rows may be divided into bands, i.e. ranges of rows. A small-M kernel then
 * runs once for each band and reads all of B each time. `bits` is the number of bits of an element
 * of B. */
bool bsmm_small_m_prefers_bands(const bsmm_product *p, uint32_t bits);

/* Returns the predicted time in us of cuda_sm90_small_m for all rows of A, or infinity if this
 * kernel refuses the product. */
double bsmm_small_m_predict_rows(const bsmm_product *p);

/* Returns the predicted time in us for `columns` columns of a tile of D^T, where a column is a row
 * of A or one of the bf16 parts into which a row is split. `time` is the prediction of
 * bsmm_small_m_predict, which holds for one row of A. `bits` is the number of bits of an element of
 * B. */
double bsmm_small_m_with_columns(double time, uint32_t columns, uint32_t bits);

/* Returns true if the kernel cuda_sm90a_mixed should compute a product. `mixed` is the predicted
 * time in us of this kernel. `other` is the predicted time in us of the fastest other kernel. */
bool bsmm_small_m_prefers_mixed(double mixed, double other);

/* Returns true if the kernel cuda_sm90a_mixed may divide K among `splits` thread blocks of a
 * cluster, and in each thread block among `groups` groups of warps. K has `steps` steps of 128
 * elements. If K is divided, each part must have at least one step. The rule is the same for tiles
 * of any number of columns, `columns`. */
bool bsmm_small_m_divides_mixed(uint32_t columns, uint32_t groups, uint32_t splits, uint32_t steps);

/* Returns true if the kernel cuda_sm90a_mixed may divide the rows of B among this number of
 * launches. */
bool bsmm_small_m_launches_mixed(uint32_t launches);

#endif
