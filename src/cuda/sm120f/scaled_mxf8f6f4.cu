/* Defines the kernel for A and B with e8m0 scales of 1 x 32 and elements of 4, 6 or 8 bits. The
 * element types of A and B may differ. */
#define SCALED_NAME   scaled_mxf8f6f4
#define SCALED_BLOCK  32
#define SCALED_SIGNED 0
#include "cuda/sm120f/scaled_body.h"
