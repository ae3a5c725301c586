/* A product, and a kernel that computes products. A kernel is one file that ends in one const
 * bsmm_kernel; kernels.def lists them best first, the reference last. */
#ifndef BSMM_CORE_KERNEL_H
#define BSMM_CORE_KERNEL_H

#include "core/backend.h"
#include "core/recipe.h"

/* A validated bsmm_epilogue (core/epilogue.h says what each part does). Its pointers are bound by a
 * run, as those of the operands are. */
typedef struct bsmm_finish {
    const struct bsmm_activation_row *activation; /* never NULL */
    bool interleaved;                             /* of a gated one; else its halves are split */
    double limit, slope, up_offset;               /* limit: Inf where there is none */
    bool has_residual;
    bsmm_operand residual;
    uint32_t scale_by; /* bsmm_scale_by */
    const float *row_scale, *col_scale;
} bsmm_finish;

/* From one matrix of a stack to the next; 0: one matrix for all groups. */
typedef struct bsmm_group_step {
    uint64_t elements, scales;
} bsmm_group_step;

/* A validated bsmm_group. The pointers are those of a run. */
typedef struct bsmm_groups {
    uint32_t kind, flags;
    int64_t count, align, expected_rows;
    bsmm_group_step a, b, c, d, residual; /* of stacks */
    bsmm_operand gathered; /* with GATHER_A: A's rows as kernels see them, the most of a group */
    const int32_t *sizes, *gather;
    const float *alpha;
} bsmm_groups;

/* A validated bsmm_matmul_desc. Pointers inside the operands are those of the description; run
 * replaces them by the run's buffers. */
typedef struct bsmm_product {
    bsmm_operand a, b, c, d;
    bool has_c; /* beta != 0 */
    double alpha, beta;
    uint32_t bias_elem; /* NONE: no bias */
    const void *bias;
    uint32_t compute;
    int threads;
    bool b_packed;             /* runs are given packed_b */
    const void *packed_b;      /* what the kernel's pack_b made, after the header that core keeps */
    const bsmm_recipe *recipe; /* of a block-scaled D, else NULL */
    const bsmm_finish *finish; /* NULL: nothing after alpha, beta and bias */
    const bsmm_groups *groups; /* NULL: one product */
    const bsmm_backend *backend; /* never NULL once a kernel is asked */
    bool invariant;              /* BSMM_MATMUL_BATCH_INVARIANT */
    bool any_rows; /* BSMM_MATMUL_ANY_ROWS: matrices have the most rows that a run has */
    int64_t rows;  /* of a run with any_rows: how many, */
    const int32_t *device_rows; /* or, where not NULL, where that will be found */
    const void *device;         /* the backend's record: a kernel of "cuda" is given a
                                   const bsmm_cuda_device * */
    void *stream;               /* of a run: the backend's own type; NULL is its default */
} bsmm_product;

/* A kernel's state is what it knows of a product before it is given memory: choices, sizes, tables,
 * parameters of launches. The plan keeps it, and runs only read it, in any number of threads. It is
 * copied by memcpy, so it holds no pointer into itself, to the product or to the product's memory.
 */
enum {
    BSMM_STATE_BYTES = 16384, /* the most that a kernel's state takes */
    BSMM_STATE_ALIGNMENT = 128,
};

/* Fails to compile where a kernel's type of state is too large. */
#define BSMM_CHECK_STATE(type)                                                                     \
    _Static_assert(sizeof(type) <= BSMM_STATE_BYTES && _Alignof(type) <= BSMM_STATE_ALIGNMENT,     \
                   "a plan has no room for a larger state")

/* What a product may ask for beyond a product of two matrices. A kernel says which it takes;
 * core/features.c refuses the rest for it. */
typedef enum bsmm_feature {
    BSMM_FEATURE_EPILOGUE = 1, /* a bsmm_finish */
    BSMM_FEATURE_ANY_ROWS =
        2, /* any_rows; in host memory core cuts the product instead (parts.h) */
    BSMM_FEATURE_INVARIANT = 8, /* the order of sums depends on formats and K alone */
    BSMM_FEATURE_GROUPS = 4,    /* bsmm_groups; in host memory core cuts the product instead */
} bsmm_feature;

typedef struct bsmm_kernel {
    const char *name;
    const char *device;   /* the part before ':' of the devices that it runs on: "cpu" */
    uint32_t state_bytes; /* 0: the kernel has no state */
    /* NULL if the kernel takes the product, else the reason, written into why[size] or static.
     * Fills `state` if the kernel takes the product; all functions below are given that state. Must
     * not look at the product's memory, which each run has its own. In host memory a kernel that
     * takes a product takes it with fewer rows too, and needs no more workspace for it. */
    const char *(*refuse)(const bsmm_product *product, void *state, char *why, size_t size);
    uint64_t (*workspace_bytes)(const bsmm_product *product, const void *state);
    /* The largest error before the last rounding, as a multiple of |alpha| * sum |a||b|. */
    double (*bound)(const bsmm_product *product, const void *state);
    /* Completes the state when a plan is made: loads what runs launch, so that they allocate
     * nothing. NULL: nothing to do. */
    bsmm_status (*make)(const bsmm_product *product, void *state);
    /* Where buffers are not host memory, run only queues work in product->stream. */
    bsmm_status (*run)(const bsmm_product *product, const void *state, void *workspace);
    /* Bytes of B packed ahead, and the packing; NULL when the kernel takes B as it is stored. */
    uint64_t (*packed_b_bytes)(const bsmm_product *product, const void *state);
    bsmm_status (*pack_b)(const bsmm_product *product, const void *state, void *packed);
    uint32_t alignment; /* in bytes, of the data and scales of A, B, C and D; 0: their elements' */
    uint32_t features;  /* bsmm_feature, those that the kernel takes */
} bsmm_kernel;

#endif
