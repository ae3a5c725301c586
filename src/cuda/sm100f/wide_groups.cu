/* Defines the kernel for bf16 or f16 elements where A, B or both have fp32 scales. */
#define SCALED_NAME    wide_groups
#define SCALED_KIND    "f16"
#define SCALED_BLOCK   0
#define SCALED_PACKED  0
#define SCALED_SIGNED  0
#define SCALED_CTAS    1
#define SCALED_SMALL_M 0
#define SCALED_GROUPS  16
#include "cuda/sm100f/scaled_body.h"
