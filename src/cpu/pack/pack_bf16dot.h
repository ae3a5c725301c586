/* Packing for the bf16 dot engines: whatever is exact in bf16, block scales of powers of two (and
 * e4m3 ones, where element * scale has at most 8 significant bits) folded in.
 *
 * A row's largest block exponent leaves it as the row's factor, so that what is packed is at most
 * an element's magnitude; blocks that lie too far below it make the row wide (pack_bf16dot.c).
 *
 * Two forms. Folded: a unit is 32 of K, nothing but elements. Segmented, when a side has fp32
 * scales of 128 (or a multiple) along K: a unit is 128 of K and ends in `width` fp32 scales.
 * Elements lie in pairs along K: unit/2 groups of width x 2 bf16. */
#ifndef BSMM_CPU_PACK_BF16DOT_H
#define BSMM_CPU_PACK_BF16DOT_H

#include "cpu/engine/engine_gemm.h"
#include "cpu/pack/pack.h"

#include <string.h>

enum { BSMM_BF16_FOLDED_UNIT = 32, BSMM_BF16_SEGMENT_UNIT = 128 };

/* 2^exponent of a normal double. */
static inline double bsmm_double_pow2(int exponent) {
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* NULL if the bf16 engines take both operands and D, else the reason. */
const char *bsmm_bf16_refuse(const bsmm_product *p, char *why, size_t size);

/* Whether the product takes the segmented form. */
bool bsmm_bf16_by_segment(const bsmm_product *p);

/* Of a result, in terms of sum |a||b|. */
double bsmm_bf16_bound(const bsmm_product *p, const void *state);

/* Bytes of a unit of `width` rows, rounded up to 64. */
#define BSMM_BF16_UNIT_BYTES(width, unit)                                                          \
    (((width) * ((unit)*2 + ((unit) == BSMM_BF16_SEGMENT_UNIT ? 4 : 0)) + 63) / 64 * 64)

/* The same of A with fp32 elements: of each pair, `width` odd ones and then `width` even ones. */
#define BSMM_BF16_WIDE_UNIT_BYTES(width, unit)                                                     \
    (BSMM_BF16_UNIT_BYTES(width, unit) + (width) * (unit)*2)

typedef enum bsmm_bf16_form { BSMM_BF16_A, BSMM_BF16_A_WIDE, BSMM_BF16_B } bsmm_bf16_form;

/* Packs panels of `width` rows, by the best instruction set there is, or by the one that is given;
 * the bytes are the same. */
void bsmm_bf16_pack(const bsmm_product *p, bsmm_bf16_form form, int64_t width, int64_t row,
                    int64_t rows, bsmm_panel *to);
void bsmm_bf16_pack_by(const bsmm_pack_isa *isa, const bsmm_product *p, bsmm_bf16_form form,
                       int64_t width, int64_t row, int64_t rows, bsmm_panel *to);

#endif
