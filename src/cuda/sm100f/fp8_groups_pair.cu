/* Defines the kernel of pairs of thread blocks for e4m3 or e5m2 elements with fp32 scales. */
#define SCALED_NAME    fp8_groups_pair
#define SCALED_KIND    "f8f6f4"
#define SCALED_BLOCK   0
#define SCALED_PACKED  0
#define SCALED_SIGNED  0
#define SCALED_CTAS    2
#define SCALED_SMALL_M 0
#define SCALED_GROUPS  8
#include "cuda/sm100f/scaled_body.h"
