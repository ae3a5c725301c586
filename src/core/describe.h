/* Turns a caller's bsmm_matmul_desc into a validated product. bsmm_matmul, plans, bsmm_explain and
 * the speed-of-light estimate all call bsmm_describe. */
#ifndef BSMM_DESCRIBE_H
#define BSMM_DESCRIBE_H

#include "core/kernel.h"

enum {
    /* BSMM_PANELS_NAME_BYTES is the size of the name of a layout of panels, with the NUL after it.
     */
    BSMM_PANELS_NAME_BYTES = 16,
};

/* This struct holds a validated description: the product, and the device and kernel that the caller
 * named. */
typedef struct bsmm_request {
    bsmm_product product;
    /* `epilogue` is the validated epilogue. product.epilogue points to it if there is an epilogue.
     */
    bsmm_product_epilogue epilogue;
    /* `groups` holds the validated groups. product.groups points to it if there are groups. */
    bsmm_groups groups;
    /* `device` is the name of the device, such as "cuda:0". It is never NULL. */
    const char *device;
    /* `kernel` is the name of the kernel to use. NULL means the first kernel of kernels.def that
     * accepts the product. */
    const char *kernel;
    /* `panels` is the name of the layout of B's panels in packed weights of form wide
     * (docs/PACKING.md), if the caller has named one. NULL means the layout that is fastest for the
     * formats of A and B. */
    const char *panels;
    /* `settled_panels` is the name of the layout of B's panels in packed weights of form wide. It
     * is empty before bsmm_panels_settle (panels.h) has found the name, and for all other forms. */
    char settled_panels[BSMM_PANELS_NAME_BYTES];
} bsmm_request;

/* The functions from here on are in backend.c. They find devices. */

/* Returns backend number `index` of backends.def, or NULL if `index` is past the last backend. */
const bsmm_backend *bsmm_backend_at(uint32_t index);

/* The functions from here on are in describe.c and describe_memory.c. They validate products. */

/* Validates every field of *desc and fills *request. It neither reads nor checks the memory that
 * matrices and bias point to, and it does not open the device. */
bsmm_status bsmm_describe(const bsmm_matmul_desc *desc, bsmm_request *request);

/* Tells whether two ranges of memory share a byte. */
static inline bool bsmm_overlap(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes) {
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a && b && a_bytes && b_bytes && x < y + b_bytes && y < x + a_bytes;
}

/* Checks the memory of a product that is about to run. Each buffer must be given, must belong to
 * the product's device, and must have the alignment that its format and the kernel need. D must not
 * overlap A, B, the bias or any other input. C and the residual may be D itself, but may not
 * overlap it otherwise. */
bsmm_status bsmm_check_memory(const bsmm_product *product, const bsmm_kernel *kernel);

/* Refuses buffers that the plan does not use, such as a bias for a plan without one. If the library
 * ignored such a buffer, the caller would get an unexpected result without an error. */
bsmm_status bsmm_check_surplus(const bsmm_product *product, const bsmm_buffers *buffers);

/* Checks that `bytes` bytes at `memory` overlap no buffer that the run reads or writes. `memory` is
 * the workspace or packed B, which the caller provides in addition to the matrices. `what` is the
 * name of the memory in messages. */
bsmm_status bsmm_check_room(const bsmm_product *product, const void *memory, uint64_t bytes,
                            const char *what);

/* Checks the format of C or of the residual, the two matrices that are added to the product. The
 * format must be f32, f16 or bf16, without scales. */
bsmm_status bsmm_check_addend(const bsmm_operand *operand, const char *what);

/* Checks the number of rows that a caller gives to one run of a plan with BSMM_MATMUL_ANY_ROWS. */
bsmm_status bsmm_check_rows(const bsmm_product *product);

/* Checks only the memory of B. bsmm_pack_b calls it before it packs B. */
bsmm_status bsmm_check_b(const bsmm_product *product, const bsmm_kernel *kernel);

/* The functions from here on are in describe_epilogue.c. They validate epilogues. */

bsmm_status bsmm_epilogue_take(const bsmm_epilogue *from, bsmm_product_epilogue *to);

/* The functions from here on are in features.c. They compare a product with the features of a
 * kernel. */

/* Returns the reason why a kernel cannot run the product: the name of a feature that the product
 * needs and the kernel lacks. It returns NULL if the kernel has all necessary features. */
const char *bsmm_features_refuse(const bsmm_kernel *kernel, const bsmm_product *product);

/* The functions from here on are in registry.c. They read the table of kernels. */

/* Returns kernel number `index` of kernels.def, or NULL if `index` is past the last kernel. */
const bsmm_kernel *bsmm_kernel_at(uint32_t index);

/* Returns true if the kernel runs on the devices of the backend. A backend may run the kernels of
 * another one: "sim:gfx950" runs the kernels of "hip". */
bool bsmm_kernel_runs_on(const bsmm_kernel *kernel, const bsmm_backend *backend);

/* Opens the request's device and chooses the kernel. This is the kernel that the caller named, or
 * else the first kernel of kernels.def that accepts the product. The chosen kernel stores what it
 * computes once per plan in `state`, which has BSMM_STATE_BYTES bytes. Packed weights of form wide
 * contain decoded panels of B and a copy of B. For this form, the function first decides whether
 * runs read the panels or the copy (bsmm_panels_settle). */
bsmm_status bsmm_kernel_choose(bsmm_request *request, void *state, const bsmm_kernel **kernel);

/* Checks whether a kernel accepts a request. If it accepts, the function returns NULL, and the
 * kernel has stored what it computes once per plan in `state`. Otherwise the function returns the
 * reason: the kernel runs on another kind of device, the device cannot be opened, or the reason
 * that the kernel itself gives. The function opens the request's device if it is not open yet. */
const char *bsmm_kernel_refusal(const bsmm_kernel *kernel, bsmm_request *request, void *state,
                                char *why, size_t size);

#endif
