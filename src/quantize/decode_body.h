/* Selects the compiled decoding loop for a job. decode_avx2.c and decode_avx512.c include this file
 * after they have defined:
 * - INLINE and TARGET, the function attributes;
 * - the struct `shape`: bits of a code, destination format, and which products with scales are
 *   rounded;
 * - decode_row, which decodes a row with a given shape.
 *
 * After the include, these two files define decode_kinds, which calls decode_to with each kind of
 * rounding that the file supports. */
#ifndef BSMM_QUANTIZE_DECODE_BODY_H
#define BSMM_QUANTIZE_DECODE_BODY_H

#include "quantize/strip.h"

INLINE void decode_to(uint32_t bits, uint32_t kind, const bsmm_decode_job *job,
                      const uint8_t *codes, int64_t cols, const float *scales, void *to) {
    if (job->to_elem == BSMM_ELEM_F32)
        decode_row((shape){bits, BSMM_ELEM_F32, kind}, job, codes, cols, scales, to);
    else if (job->to_elem == BSMM_ELEM_F16)
        decode_row((shape){bits, BSMM_ELEM_F16, kind}, job, codes, cols, scales, to);
    else
        decode_row((shape){bits, BSMM_ELEM_BF16, kind}, job, codes, cols, scales, to);
}

INLINE void decode_kinds(uint32_t bits, const bsmm_decode_job *job, const uint8_t *codes,
                         int64_t cols, const float *scales, void *to);

INLINE void decode_job(const bsmm_decode_job *job, const uint8_t *codes, int64_t cols,
                       const float *scales, void *to) {
    if (job->bits == 4)
        decode_kinds(4, job, codes, cols, scales, to);
    else if (job->bits == 6)
        decode_kinds(6, job, codes, cols, scales, to);
    else
        decode_kinds(8, job, codes, cols, scales, to);
}

#endif
