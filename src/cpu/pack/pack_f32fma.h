/* The f32 engines multiply any two formats by fp32 multiply-add, with vectors of any width.
 *
 * Elements are packed as fp32, with their scales folded in, exactly: powers of two keep every bit,
 * and e4m3 scales (4 significant bits) keep those of elements of up to 20 bits. In the folded form,
 * a unit is 32 of K and holds elements only: for each k, `width` rows side by side. If an operand
 * has fp32 scales of 128 (or a multiple) along K, both take the segmented form: a unit is 128 of K,
 * its elements are not multiplied by these scales, and it ends in `width` fp32 scales.
 *
 * pack_f32fma_rows.c says which rows fp32 can hold. */
#ifndef BSMM_CPU_PACK_F32FMA_H
#define BSMM_CPU_PACK_F32FMA_H

#include "cpu/engine/engine_gemm.h"
#include "cpu/pack/pack.h"

enum {
    BSMM_F32FMA_FOLDED_UNIT = 32,
    BSMM_F32FMA_SEGMENT_UNIT = 128,
    BSMM_F32FMA_SPAN_LIMIT = 202, /* an engine's wide_limit; the bound holds up to 208 */
};

/* Returns NULL if the f32 engines take both operands, else the reason. */
const char *bsmm_f32fma_refuse(const bsmm_product *p, char *why, size_t size);

/* Returns true if the GEMM takes the segmented form. */
bool bsmm_f32fma_by_segment(const bsmm_product *p);

/* See bsmm_kernel. The bound counts additions alone, as products are exact inside a
 * multiply-add. */
double bsmm_f32fma_bound(const bsmm_product *p, const void *state);

/* Counts the bytes of a unit of `width` rows, rounded up to 64. */
#define BSMM_F32FMA_UNIT_BYTES(width, unit)                                                        \
    (((width) * ((unit) + ((unit) == BSMM_F32FMA_SEGMENT_UNIT ? 1 : 0)) * 4 + 63) / 64 * 64)

/* Packs rows [first, first + count) into panels of `width` rows, at most 64, by the best
 * instruction set of the processor or by the given one. The bytes are the same. */
void bsmm_f32fma_pack(const bsmm_product *p, bool is_b, int64_t width, int64_t first, int64_t count,
                      bsmm_panel *to);
void bsmm_f32fma_pack_by(const bsmm_pack_isa *isa, const bsmm_product *p, bool is_b, int64_t width,
                         int64_t first, int64_t count, bsmm_panel *to);

#endif
