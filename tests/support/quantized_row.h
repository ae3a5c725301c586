/* Declares functions that quantize one row, so that tests can check each code. */
#ifndef BSMM_TEST_QUANTIZED_ROW_H
#define BSMM_TEST_QUANTIZED_ROW_H

#include "operand.h"

enum { MOST = 256 };

/* Holds the result of quantizing one row. */
typedef struct quantized {
    uint32_t codes[MOST];
    uint32_t scales[MOST];
    float global;
    bsmm_status status;
} quantized;

typedef struct choice {
    const char *recipe, *format;
    uint32_t flags, kind;
    const float *amax;
} choice;

/* Quantizes n values. n is at most MOST. */
quantized quantize_row(choice how, const float *values, int64_t n);

/* Returns the code of the scale of a block that has one value amax and zeros otherwise. */
uint32_t scale_of(const char *recipe, const char *format, float amax);

/* Returns the kind of second-level scale (bsmm_global) that a recipe makes. */
uint32_t kind_of(const char *recipe);

#endif
