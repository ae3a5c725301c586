/* Defines the constants that the kernels of the bf16 product (bf16.c) share with their host code.
 */
#ifndef BSMM_AMDGPU_CDNA_BF16_PARAMS_H
#define BSMM_AMDGPU_CDNA_BF16_PARAMS_H

#include "gpu/bf16_product.h"

enum {
    BSMM_CDNA_BF16_TILE = 64,     /* rows of A and rows of B of a workgroup */
    BSMM_CDNA_BF16_THREADS = 256, /* four waves; each computes 32 x 32 results */
    /* Row stride of a step in LDS. It has 16 bytes of padding, so that neighbouring rows begin in
     * different banks. */
    BSMM_CDNA_BF16_PITCH = 2 * BSMM_BF16_K + 16,
    BSMM_CDNA_BF16_PLANE = BSMM_CDNA_BF16_TILE * BSMM_CDNA_BF16_PITCH,
    /* After the main loop, the fp32 tile overwrites the planes. */
    BSMM_CDNA_BF16_STRIP = BSMM_CDNA_BF16_TILE * BSMM_CDNA_BF16_TILE * 4,
};

#endif
