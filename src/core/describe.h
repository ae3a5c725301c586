/* Turns a caller's description into a validated product. Matmul, plans, explain and the
 * speed-of-light estimate all use it. */
#ifndef BSMM_DESCRIBE_H
#define BSMM_DESCRIBE_H

#include "core/kernel.h"

/* A validated description: the product, and the device and kernel that the caller named. */
typedef struct bsmm_request {
    bsmm_product product;
    bsmm_finish finish; /* target of product.finish, if there is an epilogue */
    bsmm_groups groups; /* target of product.groups, if there are groups */
    const char *device; /* name of the device, such as "cuda:0"; never NULL */
    const char *kernel; /* kernel's name; NULL: the best that accepts */
} bsmm_request;

/* ---- devices (backend.c) ---- */

/* Returns NULL if index is past the last backend. */
const bsmm_backend *bsmm_backend_at(uint32_t index);

/* ---- products (describe.c, describe_memory.c) ---- */

/* Checks every field of desc. It does not check the memory of matrices and bias, and does not open
 * the device. */
bsmm_status bsmm_describe(const bsmm_matmul_desc *desc, bsmm_request *request);

/* Tells whether two ranges of memory share a byte. */
static inline bool bsmm_overlap(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes) {
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a && b && a_bytes && b_bytes && x < y + b_bytes && y < x + a_bytes;
}

/* Checks the memory of a product that is about to run. Each buffer must be present, belong to the
 * product's device, and be aligned as the format and the kernel need it. D must not overlap A, B or
 * C. */
bsmm_status bsmm_check_memory(const bsmm_product *product, const bsmm_kernel *kernel);

/* Refuses buffers that the plan does not use. If they were ignored silently, the wrong result would
 * look right. */
bsmm_status bsmm_check_surplus(const bsmm_product *product, const bsmm_buffers *buffers);

/* Checks that memory which a caller provides for the kernel (workspace or packed B) does not
 * overlap anything that the run reads or writes. `what` names the memory in messages. */
bsmm_status bsmm_check_room(const bsmm_product *product, const void *memory, uint64_t bytes,
                            const char *what);

/* Checks the format of a matrix that is added, C or the residual: unscaled f32, f16 or bf16. */
bsmm_status bsmm_check_addend(const bsmm_operand *operand, const char *what);

/* Checks the number of rows that a run of a BSMM_MATMUL_ANY_ROWS plan gives. */
bsmm_status bsmm_check_rows(const bsmm_product *product);

/* Checks the memory of B alone, before B is packed. */
bsmm_status bsmm_check_b(const bsmm_product *product, const bsmm_kernel *kernel);

/* ---- epilogues (describe_epilogue.c) ---- */

bsmm_status bsmm_finish_take(const bsmm_epilogue *from, bsmm_finish *to);

/* ---- features (features.c) ---- */

/* Returns the reason why a kernel lacks a feature that the product needs, or NULL if it has all of
 * them. */
const char *bsmm_features_refuse(const bsmm_kernel *kernel, const bsmm_product *product);

/* ---- the registry (registry.c) ---- */

/* Returns NULL if index is past the last kernel. */
const bsmm_kernel *bsmm_kernel_at(uint32_t index);

/* Opens the request's device and chooses the kernel: the one that the caller named, or else the
 * first that accepts. The kernel fills `state` (BSMM_STATE_BYTES bytes). */
bsmm_status bsmm_kernel_choose(bsmm_request *request, void *state, const bsmm_kernel **kernel);

/* Returns the reason why a kernel does not accept a request: the wrong device, a device that cannot
 * be opened, or the kernel's own reason. It returns NULL if the kernel accepts; the kernel has then
 * filled `state`. The request's device is opened if it is not open yet. */
const char *bsmm_kernel_refusal(const bsmm_kernel *kernel, bsmm_request *request, void *state,
                                char *why, size_t size);

#endif
