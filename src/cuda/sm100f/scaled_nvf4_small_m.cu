/* Defines the kernel for few rows of A, for A and B with e2m1 elements and e4m3 scales of 1 x 16
 * (nvfp4). */
#define SCALED_NAME    scaled_nvf4_small_m
#define SCALED_KIND    "mxf4nvf4.block_scale.block16"
#define SCALED_BLOCK   16
#define SCALED_PACKED  1
#define SCALED_SIGNED  1
#define SCALED_CTAS    1
#define SCALED_SMALL_M 1
#define SCALED_GROUPS  0
#include "cuda/sm100f/scaled_body.h"
