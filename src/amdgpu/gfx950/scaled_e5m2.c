/* Kernels for A of e5m2 and B of each type, with e8m0 scales. cdna/gemm_scaled_body.h implements
 * them. */
#include "amdgpu/cdna/gemm_scaled_body.h"

BSMM_KERNEL(256) small_e4m3(bsmm_cdna_gemm p) {
    gemm_scaled_run(&p, gemm_small(BSMM_F8F6F4_E5M2, BSMM_F8F6F4_E4M3));
}

BSMM_KERNEL(256) small_e5m2(bsmm_cdna_gemm p) {
    gemm_scaled_run(&p, gemm_small(BSMM_F8F6F4_E5M2, BSMM_F8F6F4_E5M2));
}

BSMM_KERNEL(256) small_e2m3(bsmm_cdna_gemm p) {
    gemm_scaled_run(&p, gemm_small(BSMM_F8F6F4_E5M2, BSMM_F8F6F4_E2M3));
}

BSMM_KERNEL(256) small_e3m2(bsmm_cdna_gemm p) {
    gemm_scaled_run(&p, gemm_small(BSMM_F8F6F4_E5M2, BSMM_F8F6F4_E3M2));
}

BSMM_KERNEL(256) small_e2m1(bsmm_cdna_gemm p) {
    gemm_scaled_run(&p, gemm_small(BSMM_F8F6F4_E5M2, BSMM_F8F6F4_E2M1));
}

BSMM_KERNEL(512) large_e5m2(bsmm_cdna_gemm p) {
    gemm_scaled_run(&p, gemm_large(BSMM_F8F6F4_E5M2, BSMM_F8F6F4_E5M2));
}
