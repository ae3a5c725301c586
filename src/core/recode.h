/* Declares the description of a conversion between matrices in device memory, such as quantization.
 * A backend runs such a conversion. */
#ifndef BSMM_CORE_RECODE_H
#define BSMM_CORE_RECODE_H

#include "format/format.h"

/* This struct describes a validated conversion between matrices in device memory. The conversions
 * are quantize, dequantize, relayout (copy scales to another layout), amax (find the largest
 * magnitude) and move_codes (copy element codes to row-major order). Second-level scales (one scale
 * for a whole matrix) and the result of amax are in device memory too. Some fields are used by only
 * one of the conversions. */
typedef struct bsmm_recode {
    const void *device;
    void *stream;
    /* `src` is the source and `dst` the destination. The conversion amax has no destination. */
    bsmm_operand src, dst;
    /* Only quantize uses `recipe`, the name of the recipe, such as "ocp". For quantize it is never
     * NULL. */
    const char *recipe;
    /* Only quantize uses `steps`, the recipe's rule as a list of coded steps (recipe/step.h). */
    const struct bsmm_recipe_steps *steps;
    /* Only quantize uses `flags`, the caller's bsmm_quantize_flags. */
    uint32_t flags;
    /* Only quantize uses `two_level`. It is true if the conversion must compute the second-level
     * scale (one scale for the whole matrix) and store it in *dst.m.global_scale. */
    bool two_level;
    /* Only quantize uses `given_level`. It is true if *dst.m.global_scale is an input: the
     * second-level scale (one scale for the whole matrix) that the caller chose. */
    bool given_level;
    /* Only quantize uses `keeps_padding`. It is true if the conversion must not write the padding
     * of dst's scales, because dst is a part of a matrix. */
    bool keeps_padding;
    /* Only quantize uses `amax`, the largest magnitude of src, from the caller. NULL means that the
     * conversion computes it. */
    const float *amax;
    float *result; /* Only the conversion amax uses `result`, the address of its result. */
} bsmm_recode;

#endif
