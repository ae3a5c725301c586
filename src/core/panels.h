/* Finds the layout of B's panels in packed weights of form wide. Panels are B's decoded values in
 * the order in which a kernel reads them. Their layout must not depend on the rest of a product, so
 * it is that of the plain product: the product of a row-major A, which has one row, with B. The D
 * of this product is fp32, and there is no C, bias, epilogue, group or flag. */
#ifndef BSMM_CORE_PANELS_H
#define BSMM_CORE_PANELS_H

#include "core/describe.h"

/* Describes the panels of one B, i.e. its values in the order in which a kernel multiplies them,
 * and names the kernel that packs them. */
typedef struct bsmm_panels {
    const bsmm_kernel *kernel;
    bsmm_product product; /* `product` is the plain product. */
    char name[BSMM_PANELS_NAME_BYTES];
    /* `state` is what the kernel computed when it accepted the plain product. The kernel's function
     * `make`, which completes a state, has not been called for it. */
    _Alignas(BSMM_STATE_ALIGNMENT) uint8_t state[BSMM_STATE_BYTES];
} bsmm_panels;

/* Finds the panels of packed weights. They are chosen for a plain product: a product of the same
 * formats with a row-major A and an fp32 D, and without C, bias, epilogue, groups and flags. The
 * first kernel that accepts the plain product and reads panels decides their layout. If `kernel` is
 * not NULL, only this kernel is considered, and if `name` is not NULL, only panels of this name.
 * Returns false if there is no such kernel. `b` describes the B from which panels are packed: on a
 * CPU the caller's B, on a GPU the row-major copy of B in the packed weights. The product's device
 * must be open. */
bool bsmm_panels_find(const bsmm_product *product, const bsmm_operand *b, const char *kernel,
                      const char *name, bsmm_panels *panels);

/* Decides, before a kernel is chosen, which part of packed weights of form wide the runs of a plan
 * read: the panels, or the copy of B that follows them. If a kernel accepts the product and reads
 * the panels of the plain product, runs read the panels, and only such kernels may be chosen.
 * Otherwise runs read the copy, as they read weights of form compact, and product.b_packed becomes
 * false. For other forms the function does nothing. The request's device must be open. */
void bsmm_panels_settle(bsmm_request *request);

#endif
