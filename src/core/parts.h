/* Products whose extents each run chooses, in host memory. Core cuts such a product into parts,
 * each a product of its own that any kernel takes, so that no kernel of the CPU knows of them. */
#ifndef BSMM_CORE_PARTS_H
#define BSMM_CORE_PARTS_H

#include "core/describe.h"

/* Kernels for a part, tried in this order: `few` is the best for few rows, `many` the plan's. On
 * the CPU both give a row the same bits (docs/NUMERICS.md, Determinism). */
typedef struct bsmm_parts {
    const bsmm_kernel *few, *many; /* few: NULL if there is no other than many */
} bsmm_parts;

static inline bool bsmm_has_parts(const bsmm_product *p) {
    return p->backend->host_memory && p->any_rows;
}

/* Chooses the kernels of a plan whose kernel for the whole product is `many`, which needs
 * workspace_bytes; returns what the plan needs. */
uint64_t bsmm_parts_make(const bsmm_request *request, const bsmm_kernel *many,
                         uint64_t workspace_bytes, bsmm_parts *parts);

bsmm_status bsmm_parts_run(const bsmm_parts *parts, const bsmm_product *product, void *workspace);

#endif
