/* Validation of groups (describe_groups.c). A group is one of several products that run as one
 * plan. On the CPU, parts.h runs the groups. */
#ifndef BSMM_CORE_GROUPS_H
#define BSMM_CORE_GROUPS_H

#include "core/describe.h"

/* Checks every field of a bsmm_group on its own. The caller's struct is copied to `copy`;
 * bsmm_groups_place resolves its steps later. */
bsmm_status bsmm_groups_take(const bsmm_group *from, bsmm_group *copy, bsmm_groups *to);

/* Takes an operand that groups divide (each group owns a range of its rows or columns). Its scales
 * may be stored separately for each group. */
bsmm_status bsmm_groups_take_operand(const bsmm_groups *groups, const bsmm_matrix *from,
                                     const char *what, bsmm_operand *to);

/* Checks that the product's matrices fit the groups, and resolves the steps of stacks. The
 * operands' sizes in bytes become those of whole stacks. `finish` is the product's own epilogue, or
 * NULL. */
bsmm_status bsmm_groups_place(const bsmm_group *from, bsmm_groups *groups, bsmm_product *product,
                              bsmm_finish *finish);

/* Returns the number of rows of D in all groups together, or of D itself without groups. */
int64_t bsmm_groups_rows(const bsmm_product *product);

#endif
