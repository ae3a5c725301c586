/* Kernels for A of e2m1 and B of e4m3, e5m2, e2m3, e3m2 or e2m1, with e8m0 scales for blocks of 32
 * elements along K. cdna/gemm_scaled_body.h implements them. */
#include "amdgpu/cdna/gemm_scaled_body.h"

BSMM_KERNEL(256) small_e4m3(bsmm_cdna_gemm p) {
    gemm_scaled_run(&p, gemm_small(BSMM_F8F6F4_E2M1, BSMM_F8F6F4_E4M3));
}

BSMM_KERNEL(256) small_e5m2(bsmm_cdna_gemm p) {
    gemm_scaled_run(&p, gemm_small(BSMM_F8F6F4_E2M1, BSMM_F8F6F4_E5M2));
}

BSMM_KERNEL(256) small_e2m3(bsmm_cdna_gemm p) {
    gemm_scaled_run(&p, gemm_small(BSMM_F8F6F4_E2M1, BSMM_F8F6F4_E2M3));
}

BSMM_KERNEL(256) small_e3m2(bsmm_cdna_gemm p) {
    gemm_scaled_run(&p, gemm_small(BSMM_F8F6F4_E2M1, BSMM_F8F6F4_E3M2));
}

BSMM_KERNEL(256) small_e2m1(bsmm_cdna_gemm p) {
    gemm_scaled_run(&p, gemm_small(BSMM_F8F6F4_E2M1, BSMM_F8F6F4_E2M1));
}

BSMM_KERNEL(512) large_e2m1(bsmm_cdna_gemm p) {
    gemm_scaled_run(&p, gemm_large(BSMM_F8F6F4_E2M1, BSMM_F8F6F4_E2M1));
}
