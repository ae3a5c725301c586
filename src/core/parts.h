/* Products whose extents each run chooses, and groups of products, in host memory. Core cuts them
 * into parts, each a product of its own that any kernel takes, so that no kernel of the CPU knows
 * of them. */
#ifndef BSMM_CORE_PARTS_H
#define BSMM_CORE_PARTS_H

#include "core/groups.h"

/* Kernels for a part: `few` is the best for few rows, `many` the plan's. On the CPU both give a row
 * the same bits (docs/NUMERICS.md, Determinism). A group of no columns has no sums: `empty`, the
 * reference, stores it. */
typedef struct bsmm_parts {
    const bsmm_kernel *few, *many, *empty; /* few: NULL if there is no other than many */
    uint64_t gathered_bytes;  /* of the workspace: gathered rows of A, before the kernel's */
    uint64_t workspace_bytes; /* with these */
    uint64_t packed_bytes;    /* of each packed B of a stack */
} bsmm_parts;

static inline bool bsmm_has_parts(const bsmm_product *p) {
    return p->backend->host_memory && (p->any_rows || p->groups);
}

/* The part of the largest extents that a run may have, without memory. Of a product without parts:
 * the product itself. */
void bsmm_part_widest(const bsmm_product *product, bsmm_product *part);

/* Chooses the kernels of a plan whose kernel and its state for the widest part are given. */
void bsmm_parts_make(const bsmm_request *request, const bsmm_kernel *many, const void *state,
                     bsmm_parts *parts);

bsmm_status bsmm_parts_run(const bsmm_parts *parts, const bsmm_product *product, void *workspace);

/* The matrices of a stack that B is, and their packing, by the plan's state. */
int64_t bsmm_parts_b_count(const bsmm_product *product);
bsmm_status bsmm_parts_pack_b(const bsmm_parts *parts, const bsmm_product *product,
                              const void *state, void *packed);

/* ---- parts_cut.c ---- */

/* A part of a product: the products's structs with the part's pointers and extents. */
typedef struct bsmm_part {
    bsmm_product product;
    bsmm_finish finish; /* what product.finish points to, if there is an epilogue */
} bsmm_part;

/* Where the group before ended: its last row or column, and its scales where they are apart. */
typedef struct bsmm_part_cursor {
    int64_t end;
    uint64_t scales[2];
} bsmm_part_cursor;

/* The first rows of a product. */
void bsmm_part_take_rows(const bsmm_product *product, int64_t rows, bsmm_part *part);

/* Group number `index`, which must follow the one before. Returns the first of D's rows that index
 * the gather. */
int64_t bsmm_part_take_group(const bsmm_product *product, int64_t index, bsmm_part_cursor *cursor,
                             bsmm_part *part);

/* Copies rows of A to `memory` and makes them the part's A. */
void bsmm_part_gather(const bsmm_groups *groups, const int32_t *rows, void *memory,
                      bsmm_product *part);
uint64_t bsmm_part_gathered_bytes(const bsmm_groups *groups);

#endif
