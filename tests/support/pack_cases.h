/* What the packers' tests have in common: the operands that they pack. */
#ifndef BSMM_TEST_PACK_CASES_H
#define BSMM_TEST_PACK_CASES_H

#include "operand.h"

/* Packs an operand as either side of a product, the other side being of format `other`, and fails
 * the test where a packed value is not the operand's. */
typedef void pack_check(const test_matrix *t, const char *other);

/* One operand, made for a description, sometimes with a second-level scale. */
void pack_check_matrix(pack_check *check, bsmm_matrix shape, const char *other, fill how, rng *r);

/* Of all these formats: lengths from 0 up in both orders; every code of up to 8 bits, with and
 * without scales, of `rows` rows; leading dimensions. */
void pack_check_lengths(pack_check *check, const format_list *formats);
void pack_check_every_code(pack_check *check, const format_list *formats, int64_t rows);
void pack_check_leading_dimensions(pack_check *check, const format_list *formats);

/* Every scale layout of each kind of scale. */
void pack_check_scale_layouts(pack_check *check);

#endif
