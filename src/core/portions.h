/* Runs products with a block-scaled D on GPUs. GPU kernels store only results without scales. In a
 * plan with a block-scaled D, a kernel therefore stores fp32 results in the workspace, and the
 * backend then quantizes them to D. To limit the size of the workspace, D is divided into portions,
 * i.e. ranges of rows. The plan computes and quantizes one portion after another, and all portions
 * use the same memory. */
#ifndef BSMM_CORE_PORTIONS_H
#define BSMM_CORE_PORTIONS_H

#include "core/describe.h"

/* Holds the quantizers of a plan: the prepared kernel launches that quantize fp32 results to D
 * (core/backend.h). `first` quantizes all portions of D but the last, and `last` quantizes the last
 * portion. */
typedef struct bsmm_portion_quantizers {
    _Alignas(16) uint8_t first[BSMM_QUANTIZER_BYTES], last[BSMM_QUANTIZER_BYTES];
} bsmm_portion_quantizers;

/* Describes how the rows of D are divided into portions, which a GPU computes one after another.
 * The last portion has `last` rows, and all others have `rows` rows. */
typedef struct bsmm_portions {
    int64_t rows, last;
    /* `result_bytes` is the size in bytes of the fp32 results of one portion (a range of D's rows),
     * or UINT64_MAX on overflow. */
    uint64_t result_bytes;
} bsmm_portions;

/* BSMM_PORTION_MOST_BYTES limits the size in bytes of the fp32 results of one portion, i.e. of a
 * range of D's rows that is computed at a time. A portion with the smallest allowed number of rows
 * may exceed the limit. With a lower limit, the results would stay in a GPU's L2 cache until they
 * are quantized. But there would be more portions, and some kernels pack B again for each portion.
 */
#define BSMM_PORTION_MOST_BYTES (UINT64_C(256) << 20)

/* Returns BSMM_PORTION_MOST_BYTES. Only tests link another definition of this function. */
uint64_t bsmm_portion_most_bytes(void);

/* Tells whether a product runs in portions, i.e. one range of D's rows after another. */
static inline bool bsmm_has_portions(const bsmm_product *p) {
    return p->recipe && !p->backend->host_memory;
}

/* A portion is a range of D's rows that is computed at a time. Sets *portion to the product that
 * computes the first portion, from the first rows of A and of C. Its D is an fp32 matrix whose
 * pointer is NULL until a run sets it. No other portion has more rows than the first one. */
void bsmm_portion_first(const bsmm_product *product, bsmm_product *portion);

/* Returns the reason why a kernel cannot run the portions (ranges of D's rows) of a product, or
 * NULL if it can. All portions but the last have the same size, so the function calls
 * kernel->refuse only for the first and the last one. If the kernel accepts, it has filled `state`,
 * its state for the first portion. */
const char *bsmm_portions_refuse(const bsmm_kernel *kernel, const bsmm_product *product,
                                 void *state, char *why, size_t size);

/* A plan with a block-scaled D computes the rows of D in portions. All portions but the last have
 * the same number of rows. The kernel's state (what it computes once per plan) depends on this
 * number, so there are two states: `state` for all portions but the last, and last_state for the
 * last one. Fills last_state, and computes the size of the workspace. */
bsmm_status bsmm_portions_make(const bsmm_kernel *kernel, const bsmm_product *product,
                               const void *state, void *last_state, uint64_t *workspace_bytes);

/* A product with a block-scaled D is computed in portions, i.e. ranges of D's rows. Completes the
 * kernel's states (what it computes once per plan) for the first and for the last portion. The
 * function also makes the quantizers of D (the prepared launches of the quantizing kernel), and
 * loads the device code that runs need. */
bsmm_status bsmm_portions_load(const bsmm_kernel *kernel, const bsmm_product *product, void *state,
                               void *last_state, bsmm_portion_quantizers *quantizers);

/* A product with a block-scaled D is computed in portions, i.e. ranges of D's rows. Queues the
 * product and the quantization of D, one portion after another. */
bsmm_status bsmm_portions_run(const bsmm_kernel *kernel, const bsmm_product *product,
                              const void *state, const void *last_state,
                              const bsmm_portion_quantizers *quantizers, void *workspace);

#endif
