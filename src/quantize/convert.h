/* Declares lossless conversions from one quantized format to another. */
#ifndef BSMM_QUANTIZE_CONVERT_H
#define BSMM_QUANTIZE_CONVERT_H

#include "quantize/recipe.h"

/* This struct is an entry of the table of conversions in convert.c. `run` makes all checks before
 * it writes anything, so a `run` that fails has not changed dst. */
typedef struct bsmm_conversion {
    const char *name; /* `name` is the name of the conversion in messages. */
    bool (*takes)(const bsmm_format *src, const bsmm_format *dst);
    bsmm_status (*run)(const bsmm_operand *src, const bsmm_operand *dst, const bsmm_place *place);
} bsmm_conversion;

/* These are conversions of mxfp4 (e2m1 with e8m0 scales): to nvfp4 (e2m1 with e4m3 scales), and to
 * fp8 (e4m3 with f32 scales). */
extern const bsmm_conversion bsmm_convert_mxfp4_nvfp4, bsmm_convert_mxfp4_fp8;

/* Copies all element codes of src to dst, which may have another storage order or leading
 * dimension. */
bsmm_status bsmm_codes_copy(const bsmm_operand *src, const bsmm_operand *dst,
                            const bsmm_place *place);

#endif
