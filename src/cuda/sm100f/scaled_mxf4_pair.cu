/* Defines the kernel of pairs of thread blocks for A and B with e2m1 elements and e8m0 scales of 1
 * x 32. */
#define SCALED_NAME    scaled_mxf4_pair
#define SCALED_KIND    "mxf4.block_scale.block32"
#define SCALED_BLOCK   32
#define SCALED_PACKED  1
#define SCALED_SIGNED  0
#define SCALED_CTAS    2
#define SCALED_SMALL_M 0
#define SCALED_GROUPS  0
#include "cuda/sm100f/scaled_body.h"
