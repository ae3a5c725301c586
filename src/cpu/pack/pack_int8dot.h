/* This file declares the packing for the int8 dot engines. e2m1 and e2m3 become small integers, so
 * that a unit's sum is exact in int32.
 *
 *     integer = element * 2 (e2m1, up to 12) or * 8 (e2m3, up to 60)
 *
 * The instructions multiply unsigned by signed bytes. B's integers are therefore stored with their
 * largest magnitude added, and A's as they are. A unit's sum begins at -(that magnitude) * (sum of
 * A's unit) to make up for it.
 *
 * A unit of `width` rows and V of K holds V/4 groups. A group is 4 of K of each row: width x 4
 * bytes. After the groups come values of 4 bytes for each row, `width` of the first kind, then
 * `width` of the next:
 *
 *     B           scale
 *     A, summed   initial sum, scale
 *     A, floated  initial sum, scale, scale * BSMM_INT8_FLOATED
 *
 * If the scales of both operands are powers of two (V = 32), the scale of a summed A is an
 * exponent, shifted to its position in fp32: adding it to B's scale gives the fp32 product.
 * Otherwise (V = 16) scales are fp32 values.
 *
 * Floated sums begin at the initial sum plus the bits of the fp32 value FLOATED. The lowest bit of
 * its mantissa stands for 1. The bits of a sum are then those of the fp32 value FLOATED + sum,
 * without any conversion. An FMA multiplies that value by A's scale and subtracts scale * FLOATED,
 * exactly. A second FMA multiplies by B's scale and adds to the accumulator. The results are
 * bitwise identical to the summed form's, with the same single rounding. */
#ifndef BSMM_CPU_PACK_INT8DOT_H
#define BSMM_CPU_PACK_INT8DOT_H

#include "cpu/engine/engine_gemm.h"
#include "cpu/pack/pack.h"

enum { BSMM_INT8_EXPONENT_UNIT = 32, BSMM_INT8_MULTIPLY_UNIT = 16 };
enum { BSMM_INT8_FLOATED = 3 << 22 };

/* The value is the number of 4-byte values that a unit holds for each row. */
typedef enum bsmm_int8_form {
    BSMM_INT8_B = 1,
    BSMM_INT8_A = 2,
    BSMM_INT8_A_FLOATED = 3
} bsmm_int8_form;

/* Returns NULL if the int8 engines take both operands and D, else the reason. */
const char *bsmm_int8_refuse(const bsmm_product *p, char *why, size_t size);

/* Returns true if the GEMM takes the exponent form. */
bool bsmm_int8_by_exponent(const bsmm_product *p);

/* Returns true if 16 bits cannot hold a unit's products, summed in pairs of bytes: both operands
 * are e2m3. */
bool bsmm_int8_is_wide(const bsmm_product *p);

static inline int64_t bsmm_int8_unit(const bsmm_product *p) {
    return bsmm_int8_by_exponent(p) ? BSMM_INT8_EXPONENT_UNIT : BSMM_INT8_MULTIPLY_UNIT;
}

/* Returns the error bound of a result, as a multiple of sum |a||b|. */
double bsmm_int8_bound(const bsmm_product *p, const void *state);

/* Counts the bytes of a unit, rounded up to 64. */
#define BSMM_INT8_UNIT_BYTES(width, unit, form) (((width) * ((unit) + 4 * (form)) + 63) / 64 * 64)

/* Packs panels of `width` rows in units of `unit`, by the best instruction set of the processor or
 * by the given one. The bytes are the same. */
void bsmm_int8_pack(const bsmm_product *p, bsmm_int8_form form, int64_t width, int64_t unit,
                    int64_t row, int64_t rows, bsmm_panel *to);
void bsmm_int8_pack_by(const bsmm_pack_isa *isa, const bsmm_product *p, bsmm_int8_form form,
                       int64_t width, int64_t unit, int64_t row, int64_t rows, bsmm_panel *to);

#endif
