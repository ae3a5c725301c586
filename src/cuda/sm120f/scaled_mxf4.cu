/* Defines the kernel for A and B with e2m1 elements and e8m0 scales of 1 x 32. */
#define SCALED_NAME  scaled_mxf4
#define SCALED_BLOCK 32
#define SCALED_FORM                                                                                \
    "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"
#define SCALED_SIGNED 0
#include "cuda/sm120f/scaled_body.h"
