/* Defines kernels for operands with an e8m0 scale for each 32 elements along K.
 * cdna/gemm_scaled_body.h implements the kernels. A file that includes this file first defines
 * A_TYPE, the type of A's elements (BSMM_F8F6F4_...). This file then defines a kernel with a small
 * tile for each type of B's elements. With the macro LARGE it also defines kernels with a large
 * tile. */
#include "amdgpu/cdna/gemm_scaled_body.h"

/* These macros define a kernel for B with elements of type `TYPE`. The name of the kernel ends in
 * `type`. */
#define SMALL(type, TYPE)                                                                          \
    BSMM_KERNEL(256) small_##type(bsmm_cdna_gemm p) {                                              \
        gemm_scaled_run(&p, gemm_small(A_TYPE, BSMM_F8F6F4_##TYPE));                               \
    }
#define LARGE(type, TYPE)                                                                          \
    BSMM_KERNEL(512) large_##type(bsmm_cdna_gemm p) {                                              \
        gemm_scaled_run(&p, gemm_large(A_TYPE, BSMM_F8F6F4_##TYPE));                               \
    }

SMALL(e4m3, E4M3)
SMALL(e5m2, E5M2)
SMALL(e2m3, E2M3)
SMALL(e3m2, E3M2)
SMALL(e2m1, E2M1)
