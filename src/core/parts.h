/* Runs two kinds of products on the CPU: products whose number of rows is chosen by each run, and
 * groups, which are several products in one plan. The code divides such a product into parts. Each
 * part is a plain product that the CPU kernels accept, so the kernels need no code for groups. */
#ifndef BSMM_CORE_PARTS_H
#define BSMM_CORE_PARTS_H

#include "core/groups.h"

/* On the CPU, a product with groups, or with a number of rows that each run chooses, is divided
 * into parts. A part is a plain product, for example that of one group. This struct holds the
 * kernels that run the parts. `few` and `many` compute bitwise identical rows of D
 * (docs/NUMERICS.md, Determinism). `empty` is the reference kernel. */
typedef struct bsmm_parts {
    /* `few` is the best kernel for a part with few rows of A. It is NULL if it is the same kernel
     * as `many`, which is the kernel of the plan. `empty` is the kernel for groups with K = 0. */
    const bsmm_kernel *few, *many, *empty;
    /* The rows of A that a group selects are gathered, i.e. copied one after another to the start
     * of the workspace. `gathered_bytes` is the size in bytes of this copy. */
    uint64_t gathered_bytes;
    /* `workspace_bytes` is the size of the workspace in bytes, including the rows of A that are
     * gathered to it (gathered_bytes). */
    uint64_t workspace_bytes;
} bsmm_parts;

static inline bool bsmm_has_parts(const bsmm_product *p) {
    return p->backend->host_memory && (p->any_rows || p->groups);
}

/* Describes the largest part of a product, for all runs of the plan. A part is a plain product,
 * such as the product of one group or of a portion (a range of D's rows that a GPU computes at a
 * time, portions.h). The pointers of the part's operands are NULL. If the product is not divided
 * into parts, the result is a copy of the product. */
void bsmm_part_widest(const bsmm_product *product, bsmm_product *part);

/* A plan with groups or with an unknown number of rows is computed in parts, i.e. plain products.
 * Chooses the kernels for these parts, which may have few or many rows, and computes the size of
 * the workspace. `many` is the plan's kernel, and `state` is what it computed for the plan when it
 * accepted the largest part. */
void bsmm_parts_make(const bsmm_request *request, const bsmm_kernel *many, const void *state,
                     bsmm_parts *parts);

/* Runs all parts (plain products) of a product. If the plan reads packed weights (B in the form
 * that bsmm_pack_b wrote), `packed_b` points to them and `packed` describes them. */
struct bsmm_packed;
bsmm_status bsmm_parts_run(const bsmm_parts *parts, const struct bsmm_packed *packed,
                           const void *packed_b, const bsmm_product *product, void *workspace);

/* Returns the number of matrices in packed weights B. It is 1 if all groups of the product share B
 * and its second-level scale. */
int64_t bsmm_parts_b_count(const bsmm_product *product);

/* The functions from here on are in parts_cut.c. They make single parts, i.e. plain products. */

/* A part is a copy of a product in which pointers and extents are those of the part. Its
 * product.epilogue points into the struct itself, so a bsmm_part must not be copied. */
typedef struct bsmm_part {
    bsmm_product product;
    /* `epilogue` is the part's epilogue. product.epilogue points to it if there is an epilogue. */
    bsmm_product_epilogue epilogue;
} bsmm_part;

/* Remembers where the previous group ended. `end` is the number of the first row or column after
 * the previous group. `scales` is used if each group has a separate array of scales. It then has
 * the numbers of scales before the end of the previous group's array. If the groups divide rows,
 * scales[0] is for A and scales[1] for D. If the groups divide columns, they are for A and B. */
typedef struct bsmm_part_cursor {
    int64_t end;
    uint64_t scales[2];
} bsmm_part_cursor;

/* Makes the part (a plain product) that consists of the first `rows` rows of A and D. */
void bsmm_part_take_rows(const bsmm_product *product, int64_t rows, bsmm_part *part);

/* Makes the part (a plain product) of group number `index`. The caller must make the groups in
 * ascending order with one cursor. The function returns the position of the group's first row in
 * the array `gather`. */
int64_t bsmm_part_take_group(const bsmm_product *product, int64_t index, bsmm_part_cursor *cursor,
                             bsmm_part *part);

/* Copies the rows of A that the array `rows` selects into `memory`, and makes the copy the operand
 * A of *part. */
void bsmm_part_gather(const bsmm_groups *groups, const int32_t *rows, void *memory,
                      bsmm_product *part);
uint64_t bsmm_part_gathered_bytes(const bsmm_groups *groups);

#endif
