/* Runs products whose number of rows each run chooses, and groups of products, on the CPU. Core
 * cuts such a product into parts. Each part is a plain product that any kernel accepts, so that CPU
 * kernels need no code for parts. */
#ifndef BSMM_CORE_PARTS_H
#define BSMM_CORE_PARTS_H

#include "core/groups.h"

/* The kernels of a product that is cut into parts. `few` is the best kernel for few rows, `many`
 * the plan's kernel. On the CPU both give bitwise identical rows (docs/NUMERICS.md, Determinism).
 * `empty` is the reference kernel; it stores a group without columns, which has nothing to sum. */
typedef struct bsmm_parts {
    const bsmm_kernel *few, *many, *empty; /* few is NULL if it would be the same as many */
    uint64_t gathered_bytes;  /* size of A's gathered rows, at the start of the workspace */
    uint64_t workspace_bytes; /* size of the workspace, gathered rows included */
} bsmm_parts;

static inline bool bsmm_has_parts(const bsmm_product *p) {
    return p->backend->host_memory && (p->any_rows || p->groups);
}

/* Makes the part with the largest extents that a run may have, without memory. A product that is
 * not cut into parts is its own widest part. */
void bsmm_part_widest(const bsmm_product *product, bsmm_product *part);

/* Chooses the kernels for the parts of a plan. `many` is the plan's kernel, and `state` its state
 * for the widest part. */
void bsmm_parts_make(const bsmm_request *request, const bsmm_kernel *many, const void *state,
                     bsmm_parts *parts);

/* packed_b: of a plan with b_packed, whose packed B `packed` describes. */
struct bsmm_packed;
bsmm_status bsmm_parts_run(const bsmm_parts *parts, const struct bsmm_packed *packed,
                           const void *packed_b, const bsmm_product *product, void *workspace);

/* Returns the number of matrices in the stack B. */
int64_t bsmm_parts_b_count(const bsmm_product *product);

/* ---- making single parts (parts_cut.c) ---- */

/* A part of a product: a copy of the product's structs with the pointers and extents of the
 * part. */
typedef struct bsmm_part {
    bsmm_product product;
    bsmm_finish finish; /* target of product.finish, if there is an epilogue */
} bsmm_part;

/* The end of the group before: its last row or column plus one and, if groups store their scales
 * separately, the end of its scales. */
typedef struct bsmm_part_cursor {
    int64_t end;
    uint64_t scales[2];
} bsmm_part_cursor;

/* Makes the part of the first `rows` rows of a product. */
void bsmm_part_take_rows(const bsmm_product *product, int64_t rows, bsmm_part *part);

/* Makes the part of group number `index`. Groups must be taken in order. Returns the group's first
 * row in the gather array. */
int64_t bsmm_part_take_group(const bsmm_product *product, int64_t index, bsmm_part_cursor *cursor,
                             bsmm_part *part);

/* Copies the gathered rows of A to `memory` and makes the copy the A of the part. */
void bsmm_part_gather(const bsmm_groups *groups, const int32_t *rows, void *memory,
                      bsmm_product *part);
uint64_t bsmm_part_gathered_bytes(const bsmm_groups *groups);

#endif
