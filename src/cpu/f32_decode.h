/* Runs of elements of any format as fp32, exactly. */
#ifndef BSMM_CPU_F32_DECODE_H
#define BSMM_CPU_F32_DECODE_H

#include "format/format.h"

typedef struct bsmm_f32_decoder {
    uint32_t elem, bits;
    float table[256]; /* by code, for formats of up to 8 bits */
} bsmm_f32_decoder;

void bsmm_f32_decoder_make(bsmm_f32_decoder *decoder, uint32_t elem);

/* Elements of row r, columns [k, k + n), unscaled. The operand's elements are the decoder's. */
void bsmm_f32_decode(const bsmm_f32_decoder *decoder, const bsmm_operand *o, int64_t r, int64_t k,
                     int64_t n, float *to);

#endif
