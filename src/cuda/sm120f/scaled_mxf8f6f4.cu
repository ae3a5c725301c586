/* The kernel for elements of 4, 6 and 8 bits in any pair, with e8m0 scales of 1 x 32. */
#define SCALED_NAME   scaled_mxf8f6f4
#define SCALED_BLOCK  32
#define SCALED_SIGNED 0
#include "cuda/sm120f/scaled_body.h"
