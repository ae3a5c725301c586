/* The f32 engine's rooms. Operands are packed in panels of fp32 elements, unscaled and so exact,
 * and the scales stay beside them, one double per row and segment; a segment is a run of K in which
 * no operand changes its scale, at most BSMM_F32SEG_SEGMENT long. */
#ifndef BSMM_CPU_ENGINE_F32SEG_H
#define BSMM_CPU_ENGINE_F32SEG_H

#include "core/epilogue.h"

enum {
    BSMM_F32SEG_MR = 4,        /* rows of A in a register tile */
    BSMM_F32SEG_NR = 8,        /* rows of B (columns of D) in it */
    BSMM_F32SEG_MC = 128,      /* rows of A in a packed block, a multiple of MR */
    BSMM_F32SEG_NC = 128,      /* rows of B in a packed block, a multiple of NR */
    BSMM_F32SEG_KC = 512,      /* K in a packed block */
    BSMM_F32SEG_SEGMENT = 128, /* longest segment: bounds the fp32 sums */
};

/* A block of rows of one operand over part of K. Rows are padded with zeros to whole panels. */
typedef struct bsmm_f32seg_block {
    float *elements; /* panel by panel; in a panel, k by k, `panel` rows side by side */
    double *scales;  /* [segment][row]: block scale * global scale; 1 in padding rows */
    uint8_t *wide;   /* [segment][row]: fp32 sums of products may leave fp32's range */
} bsmm_f32seg_block;

/* The length of a segment for two operands. */
int64_t bsmm_f32seg_segment(const bsmm_operand *a, const bsmm_operand *b);

/* Packs rows [row, row + rows) x columns [k0, k0 + k), panels of `panel` rows; k0 begins a segment.
 * `padded` rows (a multiple of panel) are written. */
void bsmm_f32seg_pack(const bsmm_operand *o, int64_t row, int64_t rows, int64_t padded,
                      int64_t panel, int64_t k0, int64_t k, int64_t segment, bsmm_f32seg_block *to);

/* Adds the product of two packed blocks over k to acc, padded_m x padded_n doubles (row-major). */
void bsmm_f32seg_engine(const bsmm_f32seg_block *a, int64_t padded_m, const bsmm_f32seg_block *b,
                        int64_t padded_n, int64_t k, int64_t segment, double *acc);

#endif
