/* Defines constants that the kernels of the bf16 product (bf16.c) share with the host code that
 * launches them. */
#ifndef BSMM_AMDGPU_CDNA_BF16_PARAMS_H
#define BSMM_AMDGPU_CDNA_BF16_PARAMS_H

#include "gpu/bf16_product.h"

enum {
    /* BSMM_CDNA_BF16_TILE is the number of rows of A, and of rows of B, in a workgroup's tile. */
    BSMM_CDNA_BF16_TILE = 64,
    /* BSMM_CDNA_BF16_THREADS is the number of threads of a workgroup: four waves, each of which
     * computes 32 x 32 elements of D. */
    BSMM_CDNA_BF16_THREADS = 256,
    /* BSMM_CDNA_BF16_PITCH is the number of bytes from one row of A or B to the next in LDS. A row
     * holds 32 bf16 elements along K. The 16 bytes of padding make neighbouring rows begin in
     * different banks. */
    BSMM_CDNA_BF16_PITCH = 2 * BSMM_BF16_K + 16,
    BSMM_CDNA_BF16_PLANE = BSMM_CDNA_BF16_TILE * BSMM_CDNA_BF16_PITCH,
    /* BSMM_CDNA_BF16_STRIP is the number of bytes of the 64 x 64 fp32 sums of a tile of D. After
     * the main loop the sums overwrite the bf16 values in LDS. */
    BSMM_CDNA_BF16_STRIP = BSMM_CDNA_BF16_TILE * BSMM_CDNA_BF16_TILE * 4,
};

#endif
