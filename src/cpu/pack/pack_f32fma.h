/* Declares the packing for the f32fma engines, i.e. the loops of CPU kernels that multiply operands
 * of almost any formats by fp32 FMA. Their vectors may have any width. There are two layouts of
 * packed operands.
 *
 * In the folded layout, elements are multiplied by their scales and stored as fp32. The products
 * are exact: scales that are powers of two change only exponents, and e4m3 scales have 4
 * significant bits, which fit beside elements of up to 20 significant bits. A unit is 32 elements
 * of K. For each k it has the elements of `width` rows.
 *
 * If one of the two operands has fp32 scales (whose blocks are a multiple of 128 along K), both use
 * the segmented layout. A unit is then 128 elements of K, which are not multiplied by fp32 scales.
 * They are followed by the fp32 scales of the `width` rows.
 *
 * pack_f32fma_rows.c determines which rows fp32 can represent. */
#ifndef BSMM_CPU_PACK_F32FMA_H
#define BSMM_CPU_PACK_F32FMA_H

#include "cpu/engine/engine_gemm.h"
#include "cpu/pack/pack.h"

enum {
    BSMM_F32FMA_FOLDED_UNIT = 32,
    BSMM_F32FMA_SEGMENT_UNIT = 128,
    /* BSMM_F32FMA_SPAN_LIMIT limits the sum of the spans of a row of A and a row of B for which
     * fp32 sums are used. A row's span is the difference between the exponents of its largest and
     * its smallest nonzero value. Above this limit the result is summed in double. The error bound
     * would hold up to a limit of 208. */
    BSMM_F32FMA_SPAN_LIMIT = 202,
};

/* If the packed elements already contain their scales, an engine divides K into chunks, sums each
 * chunk from 0 in fp32, and adds this sum to the total (bsmm_gemm_chunk). Shorter chunks have
 * smaller rounding errors. If B has elements of more than 8 bits, a chunk has at most
 * BSMM_F32FMA_SHORT_CHUNK elements of K, so that results are about as accurate as OpenBLAS's. If B
 * has elements of at most 8 bits, a chunk has at most BSMM_F32FMA_CHUNK elements, because short
 * chunks would make the kernel for few rows 5% slower. */
enum { BSMM_F32FMA_CHUNK = 512, BSMM_F32FMA_SHORT_CHUNK = 128 };

/* Returns NULL if an operand can be packed to fp32, else the reason why it cannot. */
bsmm_pack_refuser bsmm_f32fma_refuse;

/* Returns true if the product's operands are packed in the segmented layout, i.e. with fp32 scales
 * after each 128 elements of K. */
bool bsmm_f32fma_by_segment(const bsmm_product *p);

/* Returns the largest number of elements of K in a chunk, i.e. in a range of K that is summed by
 * itself. The function applies to operands whose packed elements are already multiplied by their
 * scales. */
int64_t bsmm_f32fma_longest_chunk(const bsmm_product *p);

/* Returns the error bound of a result, as a multiple of sum |a * b|. Only additions round, because
 * the products inside an FMA are exact. */
double bsmm_f32fma_bound(const bsmm_product *p, const void *state);

/* BSMM_F32FMA_UNIT_BYTES is the size in bytes of a packed unit, i.e. of `width` rows and `unit`
 * elements of K, rounded up to a multiple of 64. */
#define BSMM_F32FMA_UNIT_BYTES(width, unit)                                                        \
    (((width) * ((unit) + ((unit) == BSMM_F32FMA_SEGMENT_UNIT ? 1 : 0)) * 4 + 63) / 64 * 64)

/* These functions pack rows [first, first + count) into panels of `width` rows, at most 64.
 * bsmm_f32fma_pack uses the best instruction set of the processor, bsmm_f32fma_pack_by the given
 * one. Both write the same bytes. */
void bsmm_f32fma_pack(const bsmm_product *p, bool is_b, int64_t width, int64_t first, int64_t count,
                      bsmm_panel *to);
void bsmm_f32fma_pack_by(const bsmm_pack_isa *isa, const bsmm_product *p, bool is_b, int64_t width,
                         int64_t first, int64_t count, bsmm_panel *to);

#endif
