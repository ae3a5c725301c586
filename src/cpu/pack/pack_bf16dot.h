/* This file declares the packing for the bf16 dot engines. They take every format that is exact in
 * bf16. Block scales that are powers of two are folded into the elements. So are e4m3 scales, if
 * element * scale has at most 8 significant bits.
 *
 * A row's largest block exponent is divided out and becomes the row's factor, so that no packed
 * value exceeds an element's magnitude. Blocks too far below that exponent make the row wide
 * (pack_bf16dot.c).
 *
 * There are two forms. In the folded form, a unit is 32 of K and holds elements only. The segmented
 * form is for an operand with fp32 scales of 128 (or a multiple) along K: a unit is 128 of K and
 * ends in `width` fp32 scales. Elements are stored in pairs along K: unit/2 groups of width x 2
 * bf16. */
#ifndef BSMM_CPU_PACK_BF16DOT_H
#define BSMM_CPU_PACK_BF16DOT_H

#include "cpu/engine/engine_gemm.h"
#include "cpu/pack/pack.h"

enum { BSMM_BF16_FOLDED_UNIT = 32, BSMM_BF16_SEGMENT_UNIT = 128 };

/* Returns NULL if the bf16 engines take both operands and D, else the reason. */
const char *bsmm_bf16_refuse(const bsmm_product *p, char *why, size_t size);

/* Returns true if the GEMM takes the segmented form. */
bool bsmm_bf16_by_segment(const bsmm_product *p);

/* Returns the error bound of a result, as a multiple of sum |a||b|. */
double bsmm_bf16_bound(const bsmm_product *p, const void *state);

/* Counts the bytes of a unit of `width` rows, rounded up to 64. */
#define BSMM_BF16_UNIT_BYTES(width, unit)                                                          \
    (((width) * ((unit)*2 + ((unit) == BSMM_BF16_SEGMENT_UNIT ? 4 : 0)) + 63) / 64 * 64)

/* Counts the bytes of a unit of A whose elements are stored as fp32. Each pair of K is stored as
 * `width` odd elements and then `width` even ones. */
#define BSMM_BF16_WIDE_UNIT_BYTES(width, unit)                                                     \
    (BSMM_BF16_UNIT_BYTES(width, unit) + (width) * (unit)*2)

typedef enum bsmm_bf16_form { BSMM_BF16_A, BSMM_BF16_A_WIDE, BSMM_BF16_B } bsmm_bf16_form;

/* Packs panels of `width` rows, by the best instruction set of the processor or by the given one.
 * The bytes are the same. */
void bsmm_bf16_pack(const bsmm_product *p, bsmm_bf16_form form, int64_t width, int64_t row,
                    int64_t rows, bsmm_panel *to);
void bsmm_bf16_pack_by(const bsmm_pack_isa *isa, const bsmm_product *p, bsmm_bf16_form form,
                       int64_t width, int64_t row, int64_t rows, bsmm_panel *to);

#endif
