/* Description -> product: the only way in for matmul, plans, explain and the speed of light. */
#ifndef BSMM_DESCRIBE_H
#define BSMM_DESCRIBE_H

#include "core/kernel.h"

/* What names a caller gave besides the matrices. */
typedef struct bsmm_request {
    bsmm_product product;
    bsmm_finish finish; /* what product.finish points to, if there is an epilogue */
    bsmm_groups groups; /* what product.groups points to, if there are groups */
    const char *device; /* never NULL */
    const char *kernel; /* NULL: the best that accepts */
} bsmm_request;

/* ---- devices (backend.c) ---- */

const bsmm_backend *bsmm_backend_at(uint32_t index); /* NULL past the last */

/* ---- products (describe.c) ---- */

/* Checks every field of desc but the memory behind the pointers of matrices and bias; the device is
 * not opened. */
bsmm_status bsmm_describe(const bsmm_matmul_desc *desc, bsmm_request *request);

/* Whether two pieces of memory share a byte. */
static inline bool bsmm_overlap(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes) {
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a && b && a_bytes && b_bytes && x < y + b_bytes && y < x + a_bytes;
}

/* Checks the memory of a product that is about to run: there, of the product's device, aligned as
 * formats and the kernel want it, D apart from A, B, C. */
bsmm_status bsmm_check_memory(const bsmm_product *product, const bsmm_kernel *kernel);

/* Checks that `bytes` at `memory`, which a caller brings for a kernel's use as `what`, touch
 * nothing that the run reads or writes. */
bsmm_status bsmm_check_room(const bsmm_product *product, const void *memory, uint64_t bytes,
                            const char *what);

/* One operand's memory. */
bsmm_status bsmm_check_operand(const bsmm_product *product, const bsmm_kernel *kernel,
                               const bsmm_operand *operand, const char *name);

/* D's data and scales must not touch what a run reads. */
bsmm_status bsmm_check_apart(const bsmm_operand *d, const void *read, uint64_t bytes,
                             const char *what);

/* `count` values of 4 bytes that a run reads: there, aligned, the device's, apart from D. */
bsmm_status bsmm_check_values(const bsmm_product *product, const void *values, int64_t count,
                              const char *what);

/* C and the residual: unscaled f32, f16 or bf16, and D itself or apart from it. step: of a stack,
 * else 0. */
bsmm_status bsmm_check_addend(const bsmm_operand *operand, const char *what);
bsmm_status bsmm_check_addend_place(const bsmm_product *product, const bsmm_operand *operand,
                                    uint64_t step, const char *what);

/* The row count that a run with any_rows is given. */
bsmm_status bsmm_check_rows(const bsmm_product *product);

/* As bsmm_check_memory for B alone, which is about to be packed. */
bsmm_status bsmm_check_b(const bsmm_product *product, const bsmm_kernel *kernel);

/* ---- epilogues (describe_epilogue.c) ---- */

bsmm_status bsmm_finish_take(const bsmm_epilogue *from, bsmm_finish *to);
bsmm_status bsmm_finish_check_memory(const bsmm_product *product, const bsmm_kernel *kernel);

/* ---- features (features.c) ---- */

/* The reason why a kernel lacks what a product asks for; NULL if it has all. */
const char *bsmm_features_refuse(const bsmm_kernel *kernel, const bsmm_product *product);

/* ---- the registry (registry.c) ---- */

const bsmm_kernel *bsmm_kernel_at(uint32_t index); /* NULL past the last */

/* Opens the request's device and finds the kernel: the forced one, or the first that accepts, which
 * fills `state` (BSMM_STATE_BYTES). */
bsmm_status bsmm_kernel_choose(bsmm_request *request, void *state, const bsmm_kernel **kernel);

/* Why a kernel does not take a request (wrong device, one that cannot be opened, or its own
 * reason); NULL if it does, and fills `state`. Opens the request's device where that is not done.
 */
const char *bsmm_kernel_refusal(const bsmm_kernel *kernel, bsmm_request *request, void *state,
                                char *why, size_t size);

/* Bytes of B packed ahead for the kernel, header included; 0: it takes B as it is stored. */
uint64_t bsmm_kernel_packed_b_bytes(const bsmm_kernel *kernel, const bsmm_product *product,
                                    const void *state);

#endif
