/* Declares the packing for the int8 engines. Elements of e2m1 and e2m3 are packed as small
 * integers, so a unit's sum is exact in 32 bits:
 *
 *     integer = element * 2 (e2m1, up to 12) or * 8 (e2m3, up to 60)
 *
 * The dot product instructions multiply unsigned bytes by signed bytes. B's integers are therefore
 * packed with their largest magnitude added, so that none is negative, and A's integers are packed
 * as they are. To compensate, the sum of a unit begins at -(largest magnitude of B) * (sum of A's
 * integers in the unit).
 *
 * A group is 4 elements of K. A unit of `width` rows and V elements of K consists of V / 4 groups
 * of `width` x 4 bytes, followed by 4-byte values for each row:
 *
 *     B           the scales
 *     A, summed   the initial sums, then the scales
 *     A, floated  the initial sums, the scales, then scale * BSMM_INT8_FLOATED
 *
 * If the scales of both operands are powers of two, V is 32. The scale of a summed A is then an
 * exponent in the position of fp32's exponent bits, and its integer sum with B's scale is the fp32
 * product of the scales. Otherwise V is 16, and scales are fp32 values.
 *
 * In the floated layout, sums begin at the initial sum plus the bits of the fp32 value
 * BSMM_INT8_FLOATED, whose last mantissa bit has the value 1. The bits of an integer sum are then
 * the bits of the fp32 value FLOATED + sum, so no conversion is necessary. One FMA multiplies that
 * value by A's scale and subtracts scale * FLOATED, which is exact. A second FMA multiplies by B's
 * scale and adds to the accumulator. The results have the same bits as those of the summed layout,
 * because both round only once. */
#ifndef BSMM_CPU_PACK_INT8DOT_H
#define BSMM_CPU_PACK_INT8DOT_H

#include "cpu/engine/engine_gemm.h"
#include "cpu/pack/pack.h"

enum { BSMM_INT8_EXPONENT_UNIT = 32, BSMM_INT8_MULTIPLY_UNIT = 16 };
enum { BSMM_INT8_FLOATED = 3 << 22 };

/* `bsmm_int8_form` holds the layouts of a packed unit, i.e. of 16 or 32 elements of K of each row
 * of a panel. Each value is the number of 4-byte values (scales and initial sums) that a unit
 * contains for each row. */
typedef enum bsmm_int8_form {
    BSMM_INT8_B = 1,
    BSMM_INT8_A = 2,
    BSMM_INT8_A_FLOATED = 3
} bsmm_int8_form;

bsmm_pack_refuser bsmm_int8_refuse; /* checks that the int8 engines can pack an operand */

/* Returns true if the scales of both operands are powers of two. Packed units then have 32 elements
 * of K, else 16. */
bool bsmm_int8_by_exponent(const bsmm_product *p);

/* Returns true if the sums of the products of 32 elements of K do not fit 16 bits. They fit unless
 * both operands are e2m3. */
bool bsmm_int8_is_wide(const bsmm_product *p);

static inline int64_t bsmm_int8_unit(const bsmm_product *p) {
    return bsmm_int8_by_exponent(p) ? BSMM_INT8_EXPONENT_UNIT : BSMM_INT8_MULTIPLY_UNIT;
}

/* Returns the error bound of a result, as a multiple of sum |a * b|. */
double bsmm_int8_bound(const bsmm_product *p, const void *state);

/* BSMM_INT8_UNIT_BYTES is the size in bytes of a packed unit with `width` rows and `unit` elements
 * of K, rounded up to a multiple of 64. `form` is the number of 4-byte values (scales and initial
 * sums) for each row. */
#define BSMM_INT8_UNIT_BYTES(width, unit, form) (((width) * ((unit) + 4 * (form)) + 63) / 64 * 64)

/* These functions pack rows [row, row + rows) into panels of `width` rows and units of `unit`
 * elements of K. bsmm_int8_pack uses the best instruction set of the processor, bsmm_int8_pack_by
 * the given one. The bytes are the same. */
void bsmm_int8_pack(const bsmm_product *p, bsmm_int8_form form, int64_t width, int64_t unit,
                    int64_t row, int64_t rows, bsmm_panel *to);
void bsmm_int8_pack_by(const bsmm_pack_isa *isa, const bsmm_product *p, bsmm_int8_form form,
                       int64_t width, int64_t unit, int64_t row, int64_t rows, bsmm_panel *to);

#endif
