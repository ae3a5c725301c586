/* The kernel for e2m1 elements on both sides, with e4m3 scales of 1 x 16. */
#define SCALED_NAME   scaled_nvf4
#define SCALED_KIND   "mxf4nvf4.block_scale.block16"
#define SCALED_BLOCK  16
#define SCALED_PACKED 1
#define SCALED_SIGNED 1
#include "cuda/sm100f/scaled_body.h"
