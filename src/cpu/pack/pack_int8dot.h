/* Packing for the int8 dot engines: e2m1 and e2m3 as small integers, so that a unit's sum is exact
 * in int32.
 *
 *     integer = element * 2 (e2m1, up to 12) or * 8 (e2m3, up to 60)
 *
 * The instructions multiply unsigned by signed bytes: B's integers are stored with their largest
 * magnitude added, A's as they are, and a unit's sum begins at -(that magnitude) * (sum of A's
 * unit).
 *
 * A unit of `width` rows and V of K: V/4 groups of width x 4 bytes; then words of 4 bytes for each
 * row, `width` of a kind after `width` of another:
 *
 *     B           scale
 *     A, summed   where the sum begins, scale
 *     A, floated  where the sum begins, scale, scale * BSMM_INT8_FLOATED
 *
 * With powers of two on both sides (V = 32) the scale of a summed A is an exponent, shifted to
 * where fp32 has it: adding it to B's gives the fp32 product. Otherwise (V = 16) scales are fp32
 * values.
 *
 * Floated: sums begin with the bits of the fp32 value FLOATED added, whose last place is 1, so that
 * the bits of a sum are those of the fp32 value FLOATED + sum, with no conversion. An FMA takes
 * scale * FLOATED off its product with the scale, exactly; another one multiplies by B's scale and
 * adds: the same sums, the same one rounding. */
#ifndef BSMM_CPU_PACK_INT8DOT_H
#define BSMM_CPU_PACK_INT8DOT_H

#include "cpu/engine/engine_gemm.h"
#include "cpu/pack/pack.h"

enum { BSMM_INT8_EXPONENT_UNIT = 32, BSMM_INT8_MULTIPLY_UNIT = 16 };
enum { BSMM_INT8_FLOATED = 3 << 22 };

/* Words of a row in a unit. */
typedef enum bsmm_int8_form {
    BSMM_INT8_B = 1,
    BSMM_INT8_A = 2,
    BSMM_INT8_A_FLOATED = 3
} bsmm_int8_form;

/* NULL if the int8 engines take both operands and D, else the reason. */
const char *bsmm_int8_refuse(const bsmm_product *p, char *why, size_t size);

/* Whether the product takes the exponent form. */
bool bsmm_int8_by_exponent(const bsmm_product *p);

/* Whether 16 bits do not carry the sums of products of bytes over a unit in pairs: both sides are
 * e2m3. */
bool bsmm_int8_is_wide(const bsmm_product *p);

static inline int64_t bsmm_int8_unit(const bsmm_product *p) {
    return bsmm_int8_by_exponent(p) ? BSMM_INT8_EXPONENT_UNIT : BSMM_INT8_MULTIPLY_UNIT;
}

/* Of a result, in terms of sum |a||b|. */
double bsmm_int8_bound(const bsmm_product *p, const void *state);

/* Bytes of a unit, rounded up to 64. */
#define BSMM_INT8_UNIT_BYTES(width, unit, form) (((width) * ((unit) + 4 * (form)) + 63) / 64 * 64)

/* Packs panels of `width` rows in units of `unit`, by the best instruction set there is, or by the
 * one that is given; the bytes are the same. */
void bsmm_int8_pack(const bsmm_product *p, bsmm_int8_form form, int64_t width, int64_t unit,
                    int64_t row, int64_t rows, bsmm_panel *to);
void bsmm_int8_pack_by(const bsmm_pack_isa *isa, const bsmm_product *p, bsmm_int8_form form,
                       int64_t width, int64_t unit, int64_t row, int64_t rows, bsmm_panel *to);

#endif
