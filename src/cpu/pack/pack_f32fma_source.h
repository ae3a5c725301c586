/* What the two halves of the f32 engines' packing share: looking at rows (pack_f32fma_rows.c) and
 * writing panels (pack_f32fma.c). */
#ifndef BSMM_CPU_PACK_F32FMA_SOURCE_H
#define BSMM_CPU_PACK_F32FMA_SOURCE_H

#include "cpu/pack/pack_f32fma.h"

/* An operand that is packed, and where the scales of the SPAN columns that are looked at lie. */
typedef struct bsmm_f32fma_source {
    const bsmm_operand *o;
    const bsmm_pack_isa *isa;
    const bsmm_pack_table *table;
    bool folded;   /* scales, if there are any, go into the elements */
    int64_t block; /* columns with one scale: more than any row has where there are none */
    int64_t step;  /* of columns, from offset to offset; 0: scales are looked up one by one */
    int64_t offsets_of;
    uint64_t offsets[BSMM_PACK_STEPS];
} bsmm_f32fma_source;

/* How a row is packed: elements (with scales that are folded in) and scales that are not, each
 * divided by its largest power of two. */
typedef struct bsmm_f32fma_row {
    double element_factor, scale_factor;
    double factor; /* what the row's sums are multiplied by for it */
    uint64_t scale_offset;
    uint8_t span;
} bsmm_f32fma_row;

enum { BSMM_F32FMA_TOO_WIDE = UINT8_MAX };

enum { BSMM_F32FMA_MOST_ROWS = 64 }; /* of panels that are packed at once */

/* Looks at rows [r, r + rows), at most MOST_ROWS. */
void bsmm_f32fma_look_at(bsmm_f32fma_source *s, int64_t r, int64_t rows, bsmm_f32fma_row *plans);

/* Opens the span that column k lies in, and where its scales lie beside a row's scale_offset; NULL
 * where they are looked up one by one. */
const uint64_t *bsmm_f32fma_offsets(bsmm_f32fma_source *s, int64_t k);

/* The scale of one element. */
double bsmm_f32fma_scale_at(const bsmm_operand *o, int64_t r, int64_t k);

#endif
