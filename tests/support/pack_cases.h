/* The operands that are common to all tests of packing. */
#ifndef BSMM_TEST_PACK_CASES_H
#define BSMM_TEST_PACK_CASES_H

#include "operand.h"

/* Packs an operand as A and as B of a product whose second operand has the format `other`. Fails
 * the test if a packed value differs from the operand's. */
typedef void pack_check(const test_matrix *t, const char *other);

/* Checks one operand with a description, sometimes with a second-level scale. */
void pack_check_matrix(pack_check *check, bsmm_matrix shape, const char *other, fill how, rng *r);

/* These functions check operands of all formats of a list. The first one checks rows of several
 * lengths from 0 up, in both orders. The second one checks every code of up to 8 bits, with and
 * without scales, in `rows` rows. The third one checks leading dimensions that are larger than the
 * extent.
 */
void pack_check_lengths(pack_check *check, const format_list *formats);
void pack_check_every_code(pack_check *check, const format_list *formats, int64_t rows);
void pack_check_leading_dimensions(pack_check *check, const format_list *formats);

/* Checks every scale layout of each kind of scale. */
void pack_check_scale_layouts(pack_check *check);

#endif
