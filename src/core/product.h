/* Declares the validated description of a matrix product that kernels compute: bsmm_product, with
 * its epilogue and groups. */
#ifndef BSMM_CORE_PRODUCT_H
#define BSMM_CORE_PRODUCT_H

#include "core/backend.h"
#include "core/recipe.h"

/* `bsmm_product_epilogue` is a validated bsmm_epilogue. core/epilogue.h declares the functions that
 * apply it. In a plan the pointers of this struct are NULL. Each run copies the struct and sets the
 * pointers in its copy. */
typedef struct bsmm_product_epilogue {
    /* `activation` is the table entry of the activation. It is never NULL. */
    const struct bsmm_activation_row *activation;
    /* `interleaved` is true if a gated activation reads its gates from even columns and its ups
     * from odd columns of A x B^T. Otherwise the gates are the first half of the columns, and the
     * ups the second. */
    bool interleaved;
    /* `limit`, `slope` and `up_offset` are the activation's parameters. `limit` is Inf if values
     * are not clamped. */
    double limit, slope, up_offset;
    bool has_residual;
    bsmm_operand residual;
    /* `scale_by` tells by which factors results are multiplied. It is a sum of bsmm_scale_by
     * flags. */
    uint32_t scale_by;
    const float *row_scale, *col_scale;
} bsmm_product_epilogue;

/* `bsmm_group_step` holds the stride from one group's matrix to the next group's matrix of the same
 * operand, in elements and in scales. 0 means that all groups share one matrix. */
typedef struct bsmm_group_step {
    uint64_t elements, scales;
} bsmm_group_step;

/* `bsmm_groups` is a validated bsmm_group. In a plan the pointers of this struct are NULL. Each run
 * copies the struct and sets the pointers in its copy. */
typedef struct bsmm_groups {
    uint32_t kind, flags;
    int64_t count, align, expected_rows;
    /* Each of these fields holds, for one operand, the stride from the matrix of one group to the
     * matrix of the next group. */
    bsmm_group_step a, b, c, d, residual;
    /* With GATHER_A, `gathered` describes the buffer into which the selected rows of A are copied.
     * It has room for the rows of the largest group. */
    bsmm_operand gathered;
    const int32_t *sizes, *gather;
    const float *alpha;
} bsmm_groups;

/* `bsmm_product` is a validated bsmm_matmul_desc. The pointers inside the operands are those of the
 * caller's description. Each run of a plan replaces them by the pointers to its own buffers. */
typedef struct bsmm_product {
    bsmm_operand a, b, c, d;
    bool has_c; /* `has_c` is true if beta is not 0, so that C is read. */
    double alpha, beta;
    /* `bias_elem` is the element format of the bias. It is NONE if there is no bias. */
    uint32_t bias_elem;
    const void *bias;
    uint32_t compute;
    int threads;
    /* `pool` is the caller's thread pool. If pool.run is NULL, OpenMP's threads do the work. */
    bsmm_pool pool;
    /* `packed_form` is the bsmm_packed_form in which runs get B, or NONE if runs read B as the
     * caller stores it. With packed weights of any form (docs/PACKING.md), the operand b describes
     * B's codes and scales inside the packed weights. Their order is BSMM_ORDER_COMPACT in host
     * memory and BSMM_ORDER_ROW in device memory. */
    uint32_t packed_form;
    /* `b_packed` is true if the form of the packed weights is wide: runs get B as panels, which the
     * kernel's pack_b wrote. */
    bool b_packed;
    /* `packed_b` holds the panels of B in packed weights of form wide. */
    const void *packed_b;
    /* `recipe` is the recipe that quantizes a block-scaled D. It is NULL if D has no scales. */
    const bsmm_recipe *recipe;
    /* `epilogue` points to the epilogue. If it is NULL, D is alpha * A x B^T + beta * C + bias,
     * rounded. */
    const bsmm_product_epilogue *epilogue;
    const bsmm_groups *groups; /* `groups` points to the groups. NULL means a single product. */
    /* `backend` is the device's backend. It is set before any kernel function is called. */
    const bsmm_backend *backend;
    bool invariant; /* `invariant` is true if the caller set BSMM_MATMUL_BATCH_INVARIANT. */
    /* `any_rows` is true with BSMM_MATMUL_ANY_ROWS. A and D then have the largest number of rows,
     * and each run sets its own number. */
    bool any_rows;
    int64_t rows; /* If any_rows is true, `rows` is the number of rows of the current run. */
    /* `device_rows` is the address in device memory of the number of rows of the current run, if
     * any_rows is set. It is NULL if `rows` holds that number. */
    const int32_t *device_rows;
    /* `device` points to the backend's own struct for the opened device. Kernels of the backend
     * "cuda" cast it to const bsmm_cuda_device *. */
    const void *device;
    /* `stream` is the stream of the run, of the backend's type. NULL is the default stream. */
    void *stream;
} bsmm_product;

#endif
