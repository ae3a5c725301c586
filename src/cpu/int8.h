/* Packing for the int8 dot engines: e2m1 and e2m3 as small integers, so that a unit's sum is exact
 * in int32.
 *
 *     integer = element * 2 (e2m1, up to 12) or * 8 (e2m3, up to 60)
 *
 * The instructions multiply unsigned by signed bytes: B's integers are stored with their largest
 * magnitude added, A's as they are, and a unit's sum begins at -(that magnitude) * (sum of A's
 * unit).
 *
 * A unit of `width` rows and V of K: V/4 groups of width x 4 bytes; then, for A, width int32 where
 * the sums begin; then width scales of 4 bytes. With powers of two on both sides (V = 32) a scale
 * is an exponent, shifted to where fp32 has it, and B's carries the bias: adding A's to B's gives
 * the fp32 product. Otherwise (V = 16) it is an fp32 value. */
#ifndef BSMM_CPU_INT8_H
#define BSMM_CPU_INT8_H

#include "cpu/gemm.h"
#include "cpu/pack.h"

enum { BSMM_INT8_EXPONENT_UNIT = 32, BSMM_INT8_MULTIPLY_UNIT = 16 };

/* NULL if the int8 engines take both operands and D, else the reason. */
const char *bsmm_int8_refuse(const bsmm_product *p, char *why, size_t size);

/* Whether the product takes the exponent form. */
bool bsmm_int8_by_exponent(const bsmm_product *p);

/* Bytes of a unit, rounded up to 64. */
#define BSMM_INT8_UNIT_BYTES(width, unit, is_a)                                                    \
    (((width) * ((unit) + 4 + ((is_a) ? 4 : 0)) + 63) / 64 * 64)

/* Packs one panel of `width` rows in units of `unit`, by the best instruction set there is, or by
 * the one that is given; the bytes are the same. */
void bsmm_int8_pack(const bsmm_product *p, bool is_b, int64_t width, int64_t unit, int64_t row,
                    int64_t rows, bsmm_panel *to);
void bsmm_int8_pack_by(const bsmm_pack_isa *isa, const bsmm_product *p, bool is_b, int64_t width,
                       int64_t unit, int64_t row, int64_t rows, bsmm_panel *to);

#endif
