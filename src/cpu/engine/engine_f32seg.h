/* This file declares the f32seg engine, a multiply loop of the CPU kernels. The operands are packed
 * in panels of fp32 elements. Packing does not multiply elements by their scales, so the fp32
 * elements are exact. The scales are packed separately, one double for each row and segment. A
 * segment is a range of K in which the scales of both operands do not change. It has at most
 * BSMM_F32SEG_SEGMENT elements. */
#ifndef BSMM_CPU_ENGINE_F32SEG_H
#define BSMM_CPU_ENGINE_F32SEG_H

#include "core/epilogue.h"

enum {
    BSMM_F32SEG_MR = 4, /* BSMM_F32SEG_MR is the number of rows of A in a register tile. */
    /* BSMM_F32SEG_NR is the number of rows of B (columns of D) in a register tile. */
    BSMM_F32SEG_NR = 8,
    /* BSMM_F32SEG_MC is the number of rows of A in a packed cache block, a multiple of MR. */
    BSMM_F32SEG_MC = 128,
    /* BSMM_F32SEG_NC is the number of rows of B in a packed cache block, a multiple of NR. */
    BSMM_F32SEG_NC = 128,
    /* BSMM_F32SEG_KC is the number of columns of K in a packed cache block. */
    BSMM_F32SEG_KC = 512,
    /* BSMM_F32SEG_SEGMENT is the length in elements of the longest segment, i.e. of the longest
     * range of K without a change of scale. It limits the error of the fp32 sums. */
    BSMM_F32SEG_SEGMENT = 128,
};

/* This struct holds packed rows of one operand (a cache block) over a range of K. The rows are
 * packed in panels, i.e. several rows together. Rows of zeros fill up the last panel. */
typedef struct bsmm_f32seg_block {
    /* A panel is several rows that are packed together. `elements` holds the elements in the order
     * [panel][k][row of the panel]. For each k, the elements of all rows of a panel are therefore
     * adjacent. */
    float *elements;
    /* `scales` holds the scales in the order [segment][row], where a segment is a range of K
     * without a change of scale. Each entry is the block scale times the second-level scale (one
     * scale for the whole matrix). Padding rows have 1. */
    double *scales;
    /* `wide` has flags in the order [segment][row], where a segment is a range of K without a
     * change of scale. A flag is 1 if the segment's fp32 sums with this row could leave fp32's
     * range. */
    uint8_t *wide;
} bsmm_f32seg_block;

/* Returns the length of a segment in elements of K. A segment is a range of K in which neither A's
 * nor B's scales change. Its length is the greatest common divisor of both block lengths along K
 * and BSMM_F32SEG_SEGMENT. */
int64_t bsmm_f32seg_segment(const bsmm_operand *a, const bsmm_operand *b);

/* Packs columns [k0, k0 + k) of rows [row, row + rows) of an operand into panels of `panel` rows.
 * It packs `padded` rows, a multiple of `panel`; the rows past row + rows are padding. A segment is
 * a range of K of `segment` elements in which no scale changes. k0 must be the start of a segment.
 */
void bsmm_f32seg_pack(const bsmm_operand *o, int64_t row, int64_t rows, int64_t padded,
                      int64_t panel, int64_t k0, int64_t k, int64_t segment, bsmm_f32seg_block *to);

/* Multiplies two packed operands over `k` elements of K and adds the results to acc, a row-major
 * array of padded_m x padded_n doubles. The scales of both operands change only after each
 * `segment` elements of K. */
void bsmm_f32seg_engine(const bsmm_f32seg_block *a, int64_t padded_m, const bsmm_f32seg_block *b,
                        int64_t padded_n, int64_t k, int64_t segment, double *acc);

#endif
