/* Defines the kernels of gfx942/tall.h for FP8 groupwise products, whose tile of D is 256 x 128.
 * Kernels with the suffix _turned take column-major operands, and the other kernels take row-major
 * operands. */
#include "amdgpu/gfx942/tall.h"

BSMM_KERNEL(512) tall_e4m3(bsmm_cdna_gemm p) {
    tall_run(&p, tall_shape(1, 0));
}

BSMM_KERNEL(512) tall_e4m3_turned(bsmm_cdna_gemm p) {
    tall_run(&p, tall_shape(1, 1));
}

BSMM_KERNEL(512) tall_e4m3fnuz(bsmm_cdna_gemm p) {
    tall_run(&p, tall_shape(0, 0));
}

BSMM_KERNEL(512) tall_e4m3fnuz_turned(bsmm_cdna_gemm p) {
    tall_run(&p, tall_shape(0, 1));
}
