/* Declares the interface of the kernels that compute matrix products (bsmm_product in product.h).
 * Each kernel is one file that defines one const bsmm_kernel. kernels.def lists the kernels in
 * order of preference, the fastest first and the reference kernel last. */
#ifndef BSMM_CORE_KERNEL_H
#define BSMM_CORE_KERNEL_H

#include "core/product.h"

/* A kernel's state holds everything that a kernel computes once per plan: choices, sizes, tables
 * and launch parameters. The plan keeps the state. Several threads may read it at the same time in
 * runs of the plan, and no run writes it. A plan copies the state by memcpy, so the state must hold
 * no pointer into itself, to the product or to the product's memory. */
enum {
    /* BSMM_STATE_BYTES is the largest size of a kernel's state, in bytes. */
    BSMM_STATE_BYTES = 16384,
    BSMM_STATE_ALIGNMENT = 128,
};

/* Fails to compile if a kernel's state type is larger than BSMM_STATE_BYTES. */
#define BSMM_CHECK_STATE(type)                                                                     \
    _Static_assert(sizeof(type) <= BSMM_STATE_BYTES && _Alignof(type) <= BSMM_STATE_ALIGNMENT,     \
                   "a plan has no room for a larger state")

/* These are features of a product that not every kernel supports. A kernel lists the features that
 * it supports in bsmm_kernel.features. If a product has a feature that the kernel does not list,
 * core/features.c makes the kernel refuse the product. */
typedef enum bsmm_feature {
    /* BSMM_FEATURE_EPILOGUE: the product has an epilogue (bsmm_product_epilogue). */
    BSMM_FEATURE_EPILOGUE = 1,
    /* BSMM_FEATURE_ANY_ROWS: each run chooses the number of rows of A and D (any_rows). CPU kernels
     * need not support this feature, because src/core divides such a product into plain products
     * (parts.h). */
    BSMM_FEATURE_ANY_ROWS = 2,
    /* BSMM_FEATURE_INVARIANT: the order in which the kernel sums the products of elements depends
     * only on formats and K, not on M or the number of threads. */
    BSMM_FEATURE_INVARIANT = 8,
    /* BSMM_FEATURE_GROUPS: the product has groups, i.e. consists of several products. CPU kernels
     * need not support this feature, because src/core runs each group as a plain product
     * (parts.h). */
    BSMM_FEATURE_GROUPS = 4,
    /* BSMM_FEATURE_COMPACT: B is stored in the element order of compact packed weights
     * (BSMM_ORDER_COMPACT). GPU kernels need not support this feature, because compact weights in
     * device memory have the ordinary row-major order. */
    BSMM_FEATURE_COMPACT = 16,
} bsmm_feature;

typedef struct bsmm_kernel {
    const char *name;
    /* `device` is the kind of device that the kernel runs on, such as "cpu". */
    const char *device;
    /* `state_bytes` is the size of the kernel's state in bytes. 0 means that it has none. */
    uint32_t state_bytes;
    /* Returns NULL if the kernel accepts the product, else the reason for refusing. The reason is
     * static text or is written into why[size]. If the kernel accepts, it fills `state`, which is
     * passed to all functions below. The function must not read the matrices' memory, because each
     * run has other buffers. A CPU kernel that accepts a product must also accept the same product
     * with fewer rows of A and D, and must not need more workspace for it. */
    const char *(*refuse)(const bsmm_product *product, void *state, char *why, size_t size);
    uint64_t (*workspace_bytes)(const bsmm_product *product, const void *state);
    /* Returns a factor f that bounds errors. Before its last rounding, a result differs from the
     * exact result by at most f * |alpha| * (sum over K of |a * b|). */
    double (*bound)(const bsmm_product *product, const void *state);
    /* Returns the number of parts into which the kernel splits K (split-K; k_parts in
     * bsmm_explanation). The function needs only what `refuse` writes to the state. If the pointer
     * is NULL, the kernel does not split K. */
    uint32_t (*k_parts)(const bsmm_product *product, const void *state);
    /* Completes the state when a plan is made. A GPU kernel loads its device code here, so that
     * runs allocate nothing. NULL means that the kernel needs no such function. */
    bsmm_status (*make)(const bsmm_product *product, void *state);
    /* Runs the product. On a device without host memory it only queues the work in product->stream
     * and returns. */
    bsmm_status (*run)(const bsmm_product *product, const void *state, void *workspace);
    /* These functions are for packed weights of form wide, which contain B as panels, i.e. B's
     * values in the order in which the kernel multiplies them. packed_b_bytes returns the size of
     * the panels in bytes. name_panels writes the name of their layout (at most 15 characters).
     * pack_b writes the panels of product->b, which is B as the caller stores it. The written bytes
     * may depend only on B and on the layout's name, so a changed layout needs a new name. The
     * functions are NULL if the kernel has no panels. */
    uint64_t (*packed_b_bytes)(const bsmm_product *product, const void *state);
    void (*name_panels)(const bsmm_product *product, const void *state, char *name, size_t size);
    bsmm_status (*pack_b)(const bsmm_product *product, const void *state, void *packed);
    /* `alignment` is the alignment in bytes that the kernel needs for the data and scales of A, B,
     * C and D. 0 means that the alignment of their elements suffices. */
    uint32_t alignment;
    /* `features` is a sum of the bsmm_feature values that the kernel supports. */
    uint32_t features;
} bsmm_kernel;

#endif
