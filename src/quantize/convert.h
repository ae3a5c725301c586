/* Conversions that keep every value. */
#ifndef BSMM_QUANTIZE_CONVERT_H
#define BSMM_QUANTIZE_CONVERT_H

#include "quantize/recipe.h"

/* One conversion: a row of the table in convert.c. Checks come first: run writes dst only after
 * nothing can fail any more. */
typedef struct bsmm_conversion {
    const char *name; /* as text for messages */
    bool (*takes)(const bsmm_format *src, const bsmm_format *dst);
    bsmm_status (*run)(const bsmm_operand *src, const bsmm_operand *dst);
} bsmm_conversion;

/* e2m1 with e8m0 scales to e2m1 with e4m3 scales, and to e4m3 with f32 scales. */
extern const bsmm_conversion bsmm_convert_mxfp4_nvfp4, bsmm_convert_mxfp4_fp8;

/* Copies all codes between orders and pitches. */
void bsmm_codes_copy(const bsmm_operand *src, const bsmm_operand *dst);

#endif
