/* Declares the functions that validate groups (describe_groups.c). Groups are several products that
 * run as one plan, such as the experts of a mixture-of-experts layer. parts.h runs them on the
 * CPU. */
#ifndef BSMM_CORE_GROUPS_H
#define BSMM_CORE_GROUPS_H

#include "core/describe.h"

/* Checks every field of a bsmm_group without looking at the matrices, and fills *to. It also copies
 * the caller's struct to *copy. bsmm_groups_place later reads the strides between the matrices of
 * different groups from this copy. */
bsmm_status bsmm_groups_take(const bsmm_group *from, bsmm_group *copy, bsmm_groups *to);

/* Validates a matrix of a grouped product in which each group owns a range of the rows or columns.
 * The scales of each group may be stored separately. */
bsmm_status bsmm_groups_take_operand(const bsmm_groups *groups, const bsmm_matrix *from,
                                     const char *what, bsmm_operand *to);

/* Checks that the product's matrices fit the groups. For each operand that is a stack, i.e. has one
 * matrix per group, the function computes the stride between these matrices. It also sets the
 * operand's sizes in bytes to those of the whole stack. `epilogue` is the epilogue to which
 * product->epilogue points, or NULL. */
bsmm_status bsmm_groups_place(const bsmm_group *from, bsmm_groups *groups, bsmm_product *product,
                              bsmm_product_epilogue *epilogue);

/* Returns the total number of rows of D over all groups. Without groups it is D's number of
 * rows. */
int64_t bsmm_groups_rows(const bsmm_product *product);

#endif
