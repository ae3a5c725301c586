/* This file has declarations for the two files that pack operands for multiplication by fp32 FMA on
 * the CPU. pack_f32fma_rows.c measures rows and chooses their factors, and pack_f32fma.c writes
 * panels. */
#ifndef BSMM_CPU_PACK_F32FMA_SOURCE_H
#define BSMM_CPU_PACK_F32FMA_SOURCE_H

#include "cpu/pack/pack_f32fma.h"

/* `bsmm_f32fma_source` describes an operand that is being packed, and holds the offsets of its
 * scales in the current span of K, i.e. in up to BSMM_PACK_SPAN columns. */
typedef struct bsmm_f32fma_source {
    const bsmm_operand *o;
    const bsmm_pack_isa *isa;
    const bsmm_pack_table *table;
    /* `folded` is true if block scales are multiplied into the packed elements, or if there are no
     * block scales. */
    bool folded;
    /* `block` is the number of columns that share a scale. Without scales, it is a number larger
     * than the number of columns of any matrix. */
    int64_t block;
    /* The offset of a scale in the operand's buffer is the sum of a term for its row and a term for
     * its column. `offsets` holds the terms for the columns of the current span, i.e. of the range
     * of K that is packed now. Consecutive entries are for columns that lie `step` columns apart.
     * If `step` is 0, `offsets` is not used, and the packer finds the offset of each scale by
     * itself. */
    int64_t step;
    int64_t offsets_of;
    uint64_t offsets[BSMM_PACK_STEPS];
} bsmm_f32fma_source;

/* `bsmm_f32fma_row` holds the powers of two by which packing multiplies a row. All elements are
 * multiplied by element_factor. Block scales that are powers of two or e4m3 are multiplied into the
 * elements too (the folded layout). fp32 scales are stored beside the elements (the segmented
 * layout), and each is multiplied by scale_factor. */
typedef struct bsmm_f32fma_row {
    double element_factor, scale_factor;
    /* `factor` is 1 / (element_factor * scale_factor). The epilogue multiplies the row's sums by
     * it. */
    double factor;
    uint64_t scale_offset;
    uint8_t span;
} bsmm_f32fma_row;

enum { BSMM_F32FMA_TOO_WIDE = UINT8_MAX };

/* BSMM_F32FMA_MOST_ROWS is the largest number of rows that are packed together. */
enum { BSMM_F32FMA_MOST_ROWS = 64 };

/* Chooses for each of the rows [r, r + rows) the power of two by which packing multiplies the row,
 * and stores it in `plans`. There may be at most MOST_ROWS rows. */
void bsmm_f32fma_look_at(bsmm_f32fma_source *s, int64_t r, int64_t rows, bsmm_f32fma_row *plans);

/* The offset of a scale is the sum of a term that depends only on its row (scale_offset) and a term
 * that depends only on its column. Returns the terms for columns k, k + s->step and so on up to
 * the end of the span of K that contains k. If s->step is 0, returns NULL, and the caller must find
 * the offset of each scale by itself. */
const uint64_t *bsmm_f32fma_offsets(bsmm_f32fma_source *s, int64_t k);

/* Returns the block scale of element (r, k). */
double bsmm_f32fma_scale_at(const bsmm_operand *o, int64_t r, int64_t k);

#endif
