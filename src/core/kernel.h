/* A validated product, and the interface of a kernel that computes products. Each kernel is one
 * file that ends in one const bsmm_kernel. kernels.def lists the kernels, the fastest first and the
 * reference last. */
#ifndef BSMM_CORE_KERNEL_H
#define BSMM_CORE_KERNEL_H

#include "core/backend.h"
#include "core/recipe.h"

/* A validated bsmm_epilogue. core/epilogue.h describes its parts. A run sets its pointers, like
 * those of the operands. */
typedef struct bsmm_finish {
    const struct bsmm_activation_row *activation; /* row of the activation; never NULL */
    bool interleaved; /* a gated activation reads interleaved columns, else split halves */
    double limit, slope, up_offset; /* limit of the clamp is Inf if there is no clamp */
    bool has_residual;
    bsmm_operand residual;
    uint32_t scale_by; /* factors that the epilogue has, bsmm_scale_by flags */
    const float *row_scale, *col_scale;
} bsmm_finish;

/* The distance from one matrix of a stack to the next. 0 means that all groups share one matrix. */
typedef struct bsmm_group_step {
    uint64_t elements, scales;
} bsmm_group_step;

/* A validated bsmm_group. A run sets its pointers. */
typedef struct bsmm_groups {
    uint32_t kind, flags;
    int64_t count, align, expected_rows;
    bsmm_group_step a, b, c, d, residual; /* distances between the matrices of stacks */
    bsmm_operand gathered; /* with GATHER_A: copy of A's gathered rows, for the largest group */
    const int32_t *sizes, *gather;
    const float *alpha;
} bsmm_groups;

/* A validated bsmm_matmul_desc. The pointers inside the operands are those of the description; each
 * run replaces them by its own buffers. */
typedef struct bsmm_product {
    bsmm_operand a, b, c, d;
    bool has_c; /* beta is not 0, so C is read */
    double alpha, beta;
    uint32_t bias_elem; /* element format of the bias; NONE: there is no bias */
    const void *bias;
    uint32_t compute;
    int threads;
    bsmm_pool pool;    /* threads of a run; run is NULL: OpenMP's */
    uint32_t b_packed; /* bsmm_packed_form: runs get B in packed weights */
    /* Panels that the kernel's pack_b made (form wide). With packed weights, b is B as it lies in
     * them; in host memory that is in BSMM_ORDER_COMPACT. */
    const void *packed_b;
    const bsmm_recipe *recipe;   /* recipe of a block-scaled D, else NULL */
    const bsmm_finish *finish;   /* epilogue; NULL: only alpha, beta and bias */
    const bsmm_groups *groups;   /* groups of the product; NULL: it is one product */
    const bsmm_backend *backend; /* backend; never NULL when a kernel is asked */
    bool invariant;              /* the caller set BSMM_MATMUL_BATCH_INVARIANT */
    bool any_rows;               /* BSMM_MATMUL_ANY_ROWS: matrices have the most rows of any run */
    int64_t rows;                /* with any_rows: number of rows of this run */
    /* With any_rows: the address of that number in device memory, or NULL. */
    const int32_t *device_rows;
    /* The backend's record of the opened device. For kernels of "cuda" it is a const
     * bsmm_cuda_device *. */
    const void *device;
    void *stream; /* stream of a run, of the backend's type; NULL: its default */
} bsmm_product;

/* A kernel's state holds what a plan computes once: choices, sizes, tables, launch parameters.
 * The plan keeps the state, and runs in any number of threads only read it. The state is copied
 * by memcpy. It must therefore hold no pointer into itself, to the product or to the product's
 * memory. */
enum {
    BSMM_STATE_BYTES = 16384, /* largest size of a kernel's state, in bytes */
    BSMM_STATE_ALIGNMENT = 128,
};

/* Fails to compile if a kernel's state type is larger than BSMM_STATE_BYTES. */
#define BSMM_CHECK_STATE(type)                                                                     \
    _Static_assert(sizeof(type) <= BSMM_STATE_BYTES && _Alignof(type) <= BSMM_STATE_ALIGNMENT,     \
                   "a plan has no room for a larger state")

/* Features of a product that not every kernel supports. A kernel declares those that it supports;
 * core/features.c refuses the others for it. */
typedef enum bsmm_feature {
    BSMM_FEATURE_EPILOGUE = 1, /* the product has an epilogue (bsmm_finish) */
    BSMM_FEATURE_ANY_ROWS =
        /* Runs choose their number of rows (any_rows). On the CPU, core cuts such a product into
         * parts instead (parts.h). */
    2,
    BSMM_FEATURE_INVARIANT = 8, /* the order of sums depends on formats and K alone */
    /* The product has groups. On the CPU, core runs each group as a product of its own instead
     * (parts.h). */
    BSMM_FEATURE_GROUPS = 4,
    BSMM_FEATURE_COMPACT = 16, /* B is in compact form, an operand in BSMM_ORDER_COMPACT */
} bsmm_feature;

typedef struct bsmm_kernel {
    const char *name;
    const char *device;   /* kind of device that it runs on, such as "cpu" */
    uint32_t state_bytes; /* size of the kernel's state in bytes; 0: it has none */
    /* Returns NULL if the kernel accepts the product, else the reason. The reason is written into
     * why[size] or is static. If the kernel accepts, it fills `state`, which all functions below
     * receive. The function must not read the product's memory, because each run has other memory.
     * A CPU kernel that accepts a product must also accept it with fewer rows, without more
     * workspace. */
    const char *(*refuse)(const bsmm_product *product, void *state, char *why, size_t size);
    uint64_t (*workspace_bytes)(const bsmm_product *product, const void *state);
    /* Returns the largest error before the last rounding, as a multiple of |alpha| * sum |a||b|. */
    double (*bound)(const bsmm_product *product, const void *state);
    /* Completes the state when a plan is made. It loads the code that runs launch, so that runs
     * allocate nothing. NULL: the kernel needs no such step. */
    bsmm_status (*make)(const bsmm_product *product, void *state);
    /* Runs the product. On a device without host memory it only queues work in product->stream. */
    bsmm_status (*run)(const bsmm_product *product, const void *state, void *workspace);
    /* These functions return the size of B's panels in packed weights of form wide, write the name
     * of their layout (at most 15 characters), and pack product->b, which is B as it is described.
     * The panels depend on B and the name alone; a layout that changes must change its name. The
     * functions are NULL if the kernel has no panels. */
    uint64_t (*packed_b_bytes)(const bsmm_product *product, const void *state);
    void (*name_panels)(const bsmm_product *product, const void *state, char *name, size_t size);
    bsmm_status (*pack_b)(const bsmm_product *product, const void *state, void *packed);
    /* Alignment in bytes of the data and scales of A, B, C and D; 0: that of their elements. */
    uint32_t alignment;
    uint32_t features; /* bsmm_feature values that the kernel supports */
} bsmm_kernel;

#endif
