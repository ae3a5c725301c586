/* Declares functions that make operands and call a given check of packing for each of them. All
   tests of packing share these functions. Packing copies an operand into the layout that a kernel
   reads. */
#ifndef BSMM_TEST_PACK_CASES_H
#define BSMM_TEST_PACK_CASES_H

#include "operand.h"

/* Packs an operand as A and then as B of a product whose other operand has the format `other`.
 * Fails the test if a packed value differs from the operand's value. */
typedef void pack_check(const test_matrix *t, const char *other);

/* Calls `check` for one operand with the description `shape`. Some operands get a second-level
 * scale. */
void pack_check_matrix(pack_check *check, bsmm_matrix shape, const char *other, fill how, rng *r);

/* Each of these functions calls `check` for operands of all formats of a list. _lengths varies the
 * number of columns from 0 up. _every_code uses every code of up to 8 bits, with and without
 * scales, in `rows` rows. _leading_dimensions uses leading dimensions that are larger than the
 * rows. */
void pack_check_lengths(pack_check *check, const format_list *formats);
void pack_check_every_code(pack_check *check, const format_list *formats, int64_t rows);
void pack_check_leading_dimensions(pack_check *check, const format_list *formats);

/* Calls `check` for operands with every scale layout and every scale format. */
void pack_check_scale_layouts(pack_check *check);

#endif
