/* Declares the packing for the bf16 engines, i.e. the loops of CPU kernels that multiply by bf16
 * dot products. They accept all formats that are exact in bf16. Block scales that are powers of two
 * are folded into the elements, i.e. the packed elements are multiplied by them. e4m3 scales are
 * folded too if every product of an element and a scale has at most 8 significant bits.
 *
 * Packing divides a row by a power of two: that of the row's largest block scale if the scales are
 * e8m0 or fp32, and that of the row's largest element if the elements are bf16. Other rows are not
 * divided. The power of two becomes the row's factor, by which the results are multiplied. If
 * another scale or element of the row is too small compared with the largest one, the row is marked
 * wide, i.e. its results are summed in double (pack_bf16dot.c).
 *
 * A packed unit has one of two layouts. In the folded layout, a unit is 32 elements of K of `width`
 * rows, without scales. The segmented layout is for an operand with fp32 scales whose blocks are a
 * multiple of 128 along K. A unit is then 128 elements of K of `width` rows, followed by `width`
 * fp32 scales. The elements of a unit are stored as pairs along K: first the first pair of each of
 * the `width` rows, then the second pair of each row, and so on. */
#ifndef BSMM_CPU_PACK_BF16DOT_H
#define BSMM_CPU_PACK_BF16DOT_H

#include "cpu/engine/engine_gemm.h"
#include "cpu/pack/pack.h"

enum {
    BSMM_BF16_FOLDED_UNIT = 32,
    BSMM_BF16_SEGMENT_UNIT = 128,
    /* An engine divides K into chunks and sums each chunk by itself (bsmm_gemm_chunk).
     * BSMM_BF16_CHUNK is the largest number of elements of K in a chunk in the folded layout, in
     * which packing multiplies the elements by their scales. */
    BSMM_BF16_CHUNK = 512,
};

/* Returns NULL if an operand can be packed to bf16, else the reason why it cannot. */
bsmm_pack_refuser bsmm_bf16_refuse;

/* Returns true if the product's operands are packed in the segmented layout, i.e. with fp32 scales
 * after each 128 elements of K. */
bool bsmm_bf16_by_segment(const bsmm_product *p);

/* Returns the error bound of a result, as a multiple of sum |a * b|. */
double bsmm_bf16_bound(const bsmm_product *p, const void *state);

/* BSMM_BF16_UNIT_BYTES is the size in bytes of a packed unit, i.e. of `width` rows and `unit`
 * elements of K, rounded up to a multiple of 64. */
#define BSMM_BF16_UNIT_BYTES(width, unit)                                                          \
    (((width) * ((unit)*2 + ((unit) == BSMM_BF16_SEGMENT_UNIT ? 4 : 0)) + 63) / 64 * 64)

/* BSMM_BF16_WIDE_UNIT_BYTES is the size in bytes of a packed unit of A whose bf16 elements are
 * stored as fp32. A unit is `width` rows and `unit` elements of K. For each pair of elements along
 * K, the odd elements of all `width` rows are stored first, and then the even ones. */
#define BSMM_BF16_WIDE_UNIT_BYTES(width, unit)                                                     \
    (BSMM_BF16_UNIT_BYTES(width, unit) + (width) * (unit)*2)

typedef enum bsmm_bf16_form { BSMM_BF16_A, BSMM_BF16_A_WIDE, BSMM_BF16_B } bsmm_bf16_form;

/* These functions pack rows [row, row + rows) into panels of `width` rows. bsmm_bf16_pack uses the
 * best instruction set of the processor, bsmm_bf16_pack_by the given one. Both write the same
 * bytes. */
void bsmm_bf16_pack(const bsmm_product *p, bsmm_bf16_form form, int64_t width, int64_t row,
                    int64_t rows, bsmm_panel *to);
void bsmm_bf16_pack_by(const bsmm_pack_isa *isa, const bsmm_product *p, bsmm_bf16_form form,
                       int64_t width, int64_t row, int64_t rows, bsmm_panel *to);

#endif
