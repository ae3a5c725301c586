/* Defines the kernels for FP8 groupwise GEMMs, which cdna/gemm_promoted_body.h implements. There
 * are two tile sizes (small, large). Kernels whose name contains _cols support one scale for every
 * row of B. Other kernels support scales of B for blocks of 128 x 128. Kernels whose name contains
 * _turned support column-major operands, and other kernels support row-major operands. */
#include "amdgpu/cdna/gemm_promoted_body.h"

/* RECODED is 1 if e4m3 elements must be recoded to e4m3fnuz. The matrix cores of gfx950 multiply
 * e4m3, but the matrix cores of gfx942 multiply only e4m3fnuz. */
#if defined(__gfx950__)
enum { RECODED = 0 };
#else
enum { RECODED = 1 };
#endif

#define KERNEL(threads, name, shape)                                                               \
    BSMM_KERNEL(threads) name(bsmm_cdna_gemm p) {                                                  \
        gemm_promoted_run(&p, shape);                                                              \
    }
/* Defines the kernels for elements of the type `elem`. */
#define KERNELS(elem, recoded)                                                                     \
    KERNEL(256, small_##elem, gemm_groups_small(recoded, 0, 0))                                    \
    KERNEL(256, small_##elem##_cols, gemm_groups_small(recoded, 1, 0))                             \
    KERNEL(512, large_##elem, gemm_groups_large(recoded, 0, 0))                                    \
    KERNEL(512, large_##elem##_cols, gemm_groups_large(recoded, 1, 0))                             \
    KERNEL(256, small_##elem##_turned, gemm_groups_small(recoded, 0, 1))                           \
    KERNEL(256, small_##elem##_turned_cols, gemm_groups_small(recoded, 1, 1))                      \
    KERNEL(512, large_##elem##_turned, gemm_groups_large(recoded, 0, 1))                           \
    KERNEL(512, large_##elem##_turned_cols, gemm_groups_large(recoded, 1, 1))

KERNELS(e4m3, RECODED)
#if !defined(__gfx950__)
KERNELS(e4m3fnuz, 0)
#endif
