/* Both halves of the f32 engines' packing share these declarations: pack_f32fma_rows.c examines
 * rows, and pack_f32fma.c writes panels. */
#ifndef BSMM_CPU_PACK_F32FMA_SOURCE_H
#define BSMM_CPU_PACK_F32FMA_SOURCE_H

#include "cpu/pack/pack_f32fma.h"

/* Describes an operand that is packed, and holds the offsets of the scales of the SPAN columns that
 * are read at present. */
typedef struct bsmm_f32fma_source {
    const bsmm_operand *o;
    const bsmm_pack_isa *isa;
    const bsmm_pack_table *table;
    bool folded;   /* scales, if there are any, are multiplied into the elements */
    int64_t block; /* columns with one scale; without scales, more than any row has */
    int64_t step;  /* columns from offset to offset; 0: scales are loaded one by one */
    int64_t offsets_of;
    uint64_t offsets[BSMM_PACK_STEPS];
} bsmm_f32fma_source;

/* Holds the factors with which a row is packed. Its elements (with the scales that are folded in)
 * and its separate scales are each divided by their largest power of two. */
typedef struct bsmm_f32fma_row {
    double element_factor, scale_factor;
    /* Factor that multiplies the row's sums, because its reciprocal multiplied the elements. */
    double factor;
    uint64_t scale_offset;
    uint8_t span;
} bsmm_f32fma_row;

enum { BSMM_F32FMA_TOO_WIDE = UINT8_MAX };

enum { BSMM_F32FMA_MOST_ROWS = 64 }; /* rows of the panels that are packed at once, at most */

/* Chooses the factors of rows [r, r + rows), at most MOST_ROWS. */
void bsmm_f32fma_look_at(bsmm_f32fma_source *s, int64_t r, int64_t rows, bsmm_f32fma_row *plans);

/* Loads the offsets of the span that holds column k. Returns those from column k on, which are
 * relative to a row's scale_offset; NULL if scales are loaded one by one. */
const uint64_t *bsmm_f32fma_offsets(bsmm_f32fma_source *s, int64_t k);

/* Returns the scale of one element. */
double bsmm_f32fma_scale_at(const bsmm_operand *o, int64_t r, int64_t k);

#endif
