/* Declares the validated product and the interface of the kernels that compute products. Each
 * kernel is one file that defines one const bsmm_kernel. kernels.def lists the kernels in order of
 * preference, the fastest first and the reference kernel last. */
#ifndef BSMM_CORE_KERNEL_H
#define BSMM_CORE_KERNEL_H

#include "core/backend.h"
#include "core/recipe.h"

/* A validated bsmm_epilogue. core/epilogue.h declares the functions that apply it. In a plan the
 * pointers of this struct are NULL. Each run copies the struct and sets the pointers in its copy.
 */
typedef struct bsmm_finish {
    const struct bsmm_activation_row *activation; /* table entry of the activation; never NULL */
    bool interleaved; /* a gated activation reads its gates and ups from alternate columns; else
                         from two halves of the columns */
    /* The activation's parameters; limit is Inf if values are not clamped. */
    double limit, slope, up_offset;
    bool has_residual;
    bsmm_operand residual;
    uint32_t scale_by; /* factors by which results are multiplied, a sum of bsmm_scale_by flags */
    const float *row_scale, *col_scale;
} bsmm_finish;

/* The distance from one group's matrix to the next group's matrix of the same operand, in elements
 * and in scales. 0 means that all groups share one matrix. */
typedef struct bsmm_group_step {
    uint64_t elements, scales;
} bsmm_group_step;

/* A validated bsmm_group. In a plan the pointers of this struct are NULL. Each run copies the
 * struct and sets the pointers in its copy. */
typedef struct bsmm_groups {
    uint32_t kind, flags;
    int64_t count, align, expected_rows;
    bsmm_group_step a, b, c, d, residual; /* distances between the matrices of two groups */
    bsmm_operand gathered; /* with GATHER_A: the buffer for the gathered rows of A, with room for
                              the largest group */
    const int32_t *sizes, *gather;
    const float *alpha;
} bsmm_groups;

/* A validated bsmm_matmul_desc. The pointers inside the operands are those of the caller's
 * description. Each run of a plan replaces them by the pointers to its own buffers. */
typedef struct bsmm_product {
    bsmm_operand a, b, c, d;
    bool has_c; /* beta is not 0, so C is read */
    double alpha, beta;
    uint32_t bias_elem; /* element format of the bias; NONE if there is no bias */
    const void *bias;
    uint32_t compute;
    int threads;
    bsmm_pool pool; /* threads of the caller's pool; OpenMP's threads if pool.run is NULL */
    /* The bsmm_packed_form in which runs get B; NONE: as described. With packed weights of any form
     * (docs/PACKING.md), the operand b describes B's codes and scales inside the packed weights. In
     * host memory they are in the order BSMM_ORDER_COMPACT, in device memory in ORDER_ROW. */
    uint32_t packed_form;
    /* The form of the packed weights is wide: runs get B as panels, which the kernel's pack_b
     * wrote. */
    bool b_packed;
    const void *packed_b;      /* the panels of B in packed weights of form wide */
    const bsmm_recipe *recipe; /* recipe that quantizes a block-scaled D; NULL if D has no scales */
    const bsmm_finish *finish; /* the epilogue; NULL: only alpha, beta and bias */
    const bsmm_groups *groups; /* the groups; NULL: a single product */
    /* The device's backend; set before any kernel function is called. */
    const bsmm_backend *backend;
    bool invariant; /* the caller set BSMM_MATMUL_BATCH_INVARIANT */
    bool any_rows;  /* BSMM_MATMUL_ANY_ROWS: each run sets its number of rows; A and D have the
                       largest number */
    int64_t rows;   /* with any_rows: number of rows of the current run */
    /* If any_rows is set: the address of the number of rows of the current run in device memory, or
     * NULL if `rows` holds that number. */
    const int32_t *device_rows;
    /* The backend's record of the opened device. Kernels of the backend "cuda" cast it to const
     * bsmm_cuda_device *. */
    const void *device;
    void *stream; /* stream of the run, of the backend's type; NULL: the default stream */
} bsmm_product;

/* A kernel's state holds everything that a kernel computes once per plan: choices, sizes, tables
 * and launch parameters. The plan keeps the state. Runs on several threads may read it at the same
 * time, and none of them writes it. A plan copies the state by memcpy, so the state must hold no
 * pointer into itself, to the product or to the product's memory. */
enum {
    BSMM_STATE_BYTES = 16384, /* largest size of a kernel's state, in bytes */
    BSMM_STATE_ALIGNMENT = 128,
};

/* Fails to compile if a kernel's state type is larger than BSMM_STATE_BYTES. */
#define BSMM_CHECK_STATE(type)                                                                     \
    _Static_assert(sizeof(type) <= BSMM_STATE_BYTES && _Alignof(type) <= BSMM_STATE_ALIGNMENT,     \
                   "a plan has no room for a larger state")

/* Features of a product that not every kernel supports. A kernel lists the features that it
 * supports in bsmm_kernel.features. core/features.c refuses a product for a kernel that lacks
 * one. */
typedef enum bsmm_feature {
    BSMM_FEATURE_EPILOGUE = 1, /* the product has an epilogue (bsmm_finish) */
    /* The product chooses its number of rows in each run (any_rows). CPU kernels need not support
     * this feature, because core divides such a product into plain products (parts.h). */
    BSMM_FEATURE_ANY_ROWS = 2,
    /* The order in which the products of elements are summed depends only on formats and K. */
    BSMM_FEATURE_INVARIANT = 8,
    /* The product has groups. CPU kernels need not support this feature, because core runs each
     * group as a plain product (parts.h). */
    BSMM_FEATURE_GROUPS = 4,
    /* B is an operand in the order BSMM_ORDER_COMPACT. GPU kernels need not support this feature,
     * because packed weights of form compact have ORDER_ROW in device memory. */
    BSMM_FEATURE_COMPACT = 16,
} bsmm_feature;

typedef struct bsmm_kernel {
    const char *name;
    const char *device;   /* kind of device that the kernel runs on, such as "cpu" */
    uint32_t state_bytes; /* size of the kernel's state in bytes; 0: it has none */
    /* Returns NULL if the kernel accepts the product, else the reason for refusing. The reason is
     * static text or is written into why[size]. If the kernel accepts, it fills `state`, which is
     * passed to all functions below. The function must not read the matrices' memory, because each
     * run has other buffers. A CPU kernel that accepts a product must also accept the same product
     * with fewer rows, and must not need more workspace for it. */
    const char *(*refuse)(const bsmm_product *product, void *state, char *why, size_t size);
    uint64_t (*workspace_bytes)(const bsmm_product *product, const void *state);
    /* Returns a bound on the error of a result before its last rounding. The bound is a multiple of
     * |alpha| * sum over K of |a * b|. */
    double (*bound)(const bsmm_product *product, const void *state);
    /* Completes the state when a plan is made. A GPU kernel loads its device code here, so that
     * runs allocate nothing. NULL: the kernel needs no such function. */
    bsmm_status (*make)(const bsmm_product *product, void *state);
    /* Runs the product. On a device without host memory it only queues the work in product->stream
     * and returns. */
    bsmm_status (*run)(const bsmm_product *product, const void *state, void *workspace);
    /* These functions are for packed weights of form wide, which contain B as panels: B's values in
     * the order in which the kernel multiplies them. packed_b_bytes returns the size of the panels.
     * name_panels writes the name of their layout (at most 15 characters). pack_b writes the panels
     * of product->b, which is B as the caller stores it. The bytes may depend only on B and on the
     * layout's name, so a changed layout needs a new name. The functions are NULL if the kernel has
     * no panels. */
    uint64_t (*packed_b_bytes)(const bsmm_product *product, const void *state);
    void (*name_panels)(const bsmm_product *product, const void *state, char *name, size_t size);
    bsmm_status (*pack_b)(const bsmm_product *product, const void *state, void *packed);
    /* Alignment in bytes that the kernel needs for the data and scales of A, B, C and D; 0 if the
     * alignment of their elements suffices. */
    uint32_t alignment;
    uint32_t features; /* bsmm_feature values that the kernel supports */
} bsmm_kernel;

#endif
