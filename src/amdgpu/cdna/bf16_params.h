/* What the bf16 product's kernels (bf16.c) share with their host side. */
#ifndef BSMM_AMDGPU_CDNA_BF16_PARAMS_H
#define BSMM_AMDGPU_CDNA_BF16_PARAMS_H

#include "gpu/bf16_product.h"

enum {
    BSMM_CDNA_BF16_TILE = 64,     /* rows of A and rows of B of a workgroup */
    BSMM_CDNA_BF16_THREADS = 256, /* four waves, each of 32 x 32 results */
    /* A row of a step in LDS: 16 bytes more than its values take, so that rows begin in other banks
     */
    BSMM_CDNA_BF16_PITCH = 2 * BSMM_BF16_K + 16,
    BSMM_CDNA_BF16_PLANE = BSMM_CDNA_BF16_TILE * BSMM_CDNA_BF16_PITCH,
    /* In the end the tile in fp32 takes the planes' place. */
    BSMM_CDNA_BF16_STRIP = BSMM_CDNA_BF16_TILE * BSMM_CDNA_BF16_TILE * 4,
};

#endif
