/* This is the interface of the f32seg engine. Operands are packed in panels of fp32 elements. The
 * elements are not scaled, and so they are exact. The scales stay beside them, one double per row
 * and segment. A segment is a run of K in which neither operand changes its scale; it is at most
 * BSMM_F32SEG_SEGMENT long. */
#ifndef BSMM_CPU_ENGINE_F32SEG_H
#define BSMM_CPU_ENGINE_F32SEG_H

#include "core/epilogue.h"

enum {
    BSMM_F32SEG_MR = 4,        /* rows of A in a register tile */
    BSMM_F32SEG_NR = 8,        /* rows of B (columns of D) in a register tile */
    BSMM_F32SEG_MC = 128,      /* rows of A in a packed block, a multiple of MR */
    BSMM_F32SEG_NC = 128,      /* rows of B in a packed block, a multiple of NR */
    BSMM_F32SEG_KC = 512,      /* columns of K in a packed block */
    BSMM_F32SEG_SEGMENT = 128, /* longest segment: it bounds the error of the fp32 sums */
};

/* A block holds rows of one operand over part of K. Rows of zeros pad it to whole panels. */
typedef struct bsmm_f32seg_block {
    /* Packed elements in the order [panel][k][row of the panel]: the rows of a panel are adjacent
     * for each k. */
    float *elements;
    /* Scales in the order [segment][row]: block scale * global scale, or 1 in padding rows. */
    double *scales;
    /* Flags in the order [segment][row]: 1 if fp32 sums of products may leave fp32's range. */
    uint8_t *wide;
} bsmm_f32seg_block;

/* Returns the length of a segment for two operands. */
int64_t bsmm_f32seg_segment(const bsmm_operand *a, const bsmm_operand *b);

/* Packs rows [row, row + rows) x columns [k0, k0 + k) into panels of `panel` rows. k0 is the start
 * of a segment. The packer writes `padded` rows, a multiple of `panel`. */
void bsmm_f32seg_pack(const bsmm_operand *o, int64_t row, int64_t rows, int64_t padded,
                      int64_t panel, int64_t k0, int64_t k, int64_t segment, bsmm_f32seg_block *to);

/* Adds the GEMM of two packed blocks over k to acc, which holds padded_m x padded_n doubles
 * (row-major). */
void bsmm_f32seg_engine(const bsmm_f32seg_block *a, int64_t padded_m, const bsmm_f32seg_block *b,
                        int64_t padded_n, int64_t k, int64_t segment, double *acc);

#endif
