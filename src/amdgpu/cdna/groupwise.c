/* FP8 groupwise products: cdna/gemm_promoted_body.h says how. Of each tile one kernel for B in
 * blocks of 128 x 128, and one (_cols) for a scale in every row of B; of each of these one for
 * row-major operands, and one (_turned) for column-major ones. */
#include "amdgpu/cdna/gemm_promoted_body.h"

/* e4m3 is read as it is by gfx950; gfx942 has e4m3fnuz alone. */
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
