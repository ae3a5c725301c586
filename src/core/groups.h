/* Groups of products: what a description says (describe_groups.c). parts.h runs them in host
 * memory. */
#ifndef BSMM_CORE_GROUPS_H
#define BSMM_CORE_GROUPS_H

#include "core/describe.h"

/* Checks every field on its own. `copy`: room for the caller's struct, whose steps are placed
 * later. */
bsmm_status bsmm_groups_take(const bsmm_group *from, bsmm_group *copy, bsmm_groups *to);

/* bsmm_operand_take of a matrix that groups share out, whose scales may be apart. */
bsmm_status bsmm_groups_take_operand(const bsmm_groups *groups, const bsmm_matrix *from,
                                     const char *what, bsmm_operand *to);

/* Checks what the groups ask of the product's matrices, and resolves steps. Sizes of stacks in
 * bytes become those of all matrices. finish: the product's own, or NULL. */
bsmm_status bsmm_groups_place(const bsmm_group *from, bsmm_groups *groups, bsmm_product *product,
                              bsmm_finish *finish);

/* Checks the arrays of a run. */
bsmm_status bsmm_groups_check_memory(const bsmm_product *product);

/* The rows of D in all groups together; those of D itself where there are none. */
int64_t bsmm_groups_rows(const bsmm_product *product);

#endif
