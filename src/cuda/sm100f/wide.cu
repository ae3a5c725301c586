/* Defines the kernel for A and B with bf16 elements, or with f16 elements, without block
 * scales. */
#define SCALED_NAME    wide
#define SCALED_KIND    "f16"
#define SCALED_BLOCK   0
#define SCALED_PACKED  0
#define SCALED_SIGNED  0
#define SCALED_CTAS    1
#define SCALED_SMALL_M 0
#define SCALED_GROUPS  0
#include "cuda/sm100f/scaled_body.h"
