/* Defines the kernel for A and B with e2m1 elements and e4m3 scales of 1 x 16 (nvfp4). */
#define SCALED_NAME  scaled_nvf4
#define SCALED_BLOCK 16
#define SCALED_FORM                                                                                \
    "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
#define SCALED_SIGNED 1
#include "cuda/sm120f/scaled_body.h"
