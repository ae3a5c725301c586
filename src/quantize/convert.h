/* Lossless conversions between formats. */
#ifndef BSMM_QUANTIZE_CONVERT_H
#define BSMM_QUANTIZE_CONVERT_H

#include "quantize/recipe.h"

/* A conversion, which is a row of the table in convert.c. All checks come first: `run` writes dst
 * only when nothing can fail any more. */
typedef struct bsmm_conversion {
    const char *name; /* name of the conversion, for messages */
    bool (*takes)(const bsmm_format *src, const bsmm_format *dst);
    bsmm_status (*run)(const bsmm_operand *src, const bsmm_operand *dst, const bsmm_place *place);
} bsmm_conversion;

/* The conversions of e2m1 with e8m0 scales to e2m1 with e4m3 scales (nvfp4), and to e4m3 with f32
 * scales (fp8). */
extern const bsmm_conversion bsmm_convert_mxfp4_nvfp4, bsmm_convert_mxfp4_fp8;

/* Copies all codes to another order or pitch. */
bsmm_status bsmm_codes_copy(const bsmm_operand *src, const bsmm_operand *dst,
                            const bsmm_place *place);

#endif
