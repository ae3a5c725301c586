/* Defines the kernel for A and B with e8m0 scales of 1 x 32 and elements of 4, 6 or 8 bits. The
 * element types of A and B may differ. */
#define SCALED_NAME    scaled_mxf8f6f4
#define SCALED_KIND    "mxf8f6f4.block_scale.block32"
#define SCALED_BLOCK   32
#define SCALED_PACKED  0
#define SCALED_SIGNED  0
#define SCALED_CTAS    1
#define SCALED_SMALL_M 0
#define SCALED_GROUPS  0
#include "cuda/sm100f/scaled_body.h"
