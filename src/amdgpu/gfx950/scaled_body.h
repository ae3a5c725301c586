/* Kernels for elements with e8m0 scales for blocks of 32 elements along K. A file that includes
 * this one defines A_TYPE, the type of A's elements (BSMM_F8F6F4_...), and gets a kernel with a
 * small tile for each type of B's elements. It then adds kernels with a large tile by LARGE.
 * cdna/gemm_scaled_body.h implements them. */
#include "amdgpu/cdna/gemm_scaled_body.h"

/* Defines a kernel for B of `TYPE`, whose name ends in `type`. */
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
