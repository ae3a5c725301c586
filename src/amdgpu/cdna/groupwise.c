/* The kernels for FP8 groupwise GEMMs, which cdna/gemm_promoted_body.h implements. There are two
 * tile sizes (small, large). Kernels whose name contains _cols support one scale for every row of
 * B. Other kernels support scales of B for blocks of 128 x 128. Kernels whose name contains _turned
 * support column-major operands, and other kernels support row-major operands. */
#include "amdgpu/cdna/gemm_promoted_body.h"

/* 1 if e4m3 elements must be recoded to e4m3fnuz. The matrix cores of gfx950 multiply e4m3, but
 * those of gfx942 multiply only e4m3fnuz. */
#if defined(__gfx950__)
enum { RECODED = 0 };
#else
enum { RECODED = 1 };
#endif

BSMM_KERNEL(256) small_e4m3(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_small(RECODED, 0, 0));
}

BSMM_KERNEL(256) small_e4m3_cols(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_small(RECODED, 1, 0));
}

BSMM_KERNEL(512) large_e4m3(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_large(RECODED, 0, 0));
}

BSMM_KERNEL(512) large_e4m3_cols(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_large(RECODED, 1, 0));
}

BSMM_KERNEL(256) small_e4m3_turned(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_small(RECODED, 0, 1));
}

BSMM_KERNEL(256) small_e4m3_turned_cols(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_small(RECODED, 1, 1));
}

BSMM_KERNEL(512) large_e4m3_turned(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_large(RECODED, 0, 1));
}

BSMM_KERNEL(512) large_e4m3_turned_cols(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_large(RECODED, 1, 1));
}

#if !defined(__gfx950__)
BSMM_KERNEL(256) small_e4m3fnuz(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_small(0, 0, 0));
}

BSMM_KERNEL(256) small_e4m3fnuz_cols(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_small(0, 1, 0));
}

BSMM_KERNEL(512) large_e4m3fnuz(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_large(0, 0, 0));
}

BSMM_KERNEL(512) large_e4m3fnuz_cols(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_large(0, 1, 0));
}

BSMM_KERNEL(256) small_e4m3fnuz_turned(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_small(0, 0, 1));
}

BSMM_KERNEL(256) small_e4m3fnuz_turned_cols(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_small(0, 1, 1));
}

BSMM_KERNEL(512) large_e4m3fnuz_turned(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_large(0, 0, 1));
}

BSMM_KERNEL(512) large_e4m3fnuz_turned_cols(bsmm_cdna_gemm p) {
    gemm_promoted_run(&p, gemm_groups_large(0, 1, 1));
}
#endif
