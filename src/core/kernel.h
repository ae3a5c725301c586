/* A product, and a kernel that computes products. A kernel is one file that ends in one const
 * bsmm_kernel; kernels.def lists them best first, the reference last. */
#ifndef BSMM_CORE_KERNEL_H
#define BSMM_CORE_KERNEL_H

#include "core/backend.h"
#include "core/recipe.h"

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
    const bsmm_backend *backend; /* never NULL once a kernel is asked */
    const void *device;          /* the backend's record: a kernel of "cuda" is given a
                                    const bsmm_cuda_device * */
    void *stream;                /* of a run: the backend's own type; NULL is its default */
} bsmm_product;

typedef struct bsmm_kernel {
    const char *name;
    const char *device; /* the part before ':' of the devices that it runs on: "cpu" */
    /* NULL if the kernel takes it, else the reason, written into why[size] or static. */
    const char *(*refuse)(const bsmm_product *product, char *why, size_t size);
    uint64_t (*workspace_bytes)(const bsmm_product *product);
    /* The largest error before the last rounding, as a multiple of |alpha| * sum |a||b|. */
    double (*bound)(const bsmm_product *product);
    /* Once when a plan is made, after refuse took the product: loads what runs will need, so that
     * they allocate nothing. NULL: nothing to do. */
    bsmm_status (*prepare)(const bsmm_product *product);
    /* Where buffers are not host memory, run only queues work in product->stream. */
    bsmm_status (*run)(const bsmm_product *product, void *workspace);
    /* Bytes of B packed ahead, and the packing; NULL when the kernel takes B as it is stored. */
    uint64_t (*packed_b_bytes)(const bsmm_product *product);
    bsmm_status (*pack_b)(const bsmm_product *product, void *packed);
    uint32_t alignment; /* in bytes, of the data and scales of A, B, C and D; 0: their elements' */
} bsmm_kernel;

#endif
