/* Defines the kernels of the sizes SMALL and LARGE of groupwise.def for FP8 groupwise GEMMs, which
 * cdna/gemm_promoted_body.h implements. */
#include "amdgpu/cdna/gemm_promoted_body.h"

/* RECODED_e4m3 is 1 if e4m3 elements must be recoded to e4m3fnuz. The matrix cores of gfx950
 * multiply e4m3, but the matrix cores of gfx942 multiply only e4m3fnuz. */
#if defined(__gfx950__)
enum { RECODED_e4m3 = 0 };
#    define KERNEL_e4m3fnuz(threads, name, shape)
#else
enum { RECODED_e4m3 = 1, RECODED_e4m3fnuz = 0 };
#    define KERNEL_e4m3fnuz KERNEL_e4m3
#endif
#define KERNEL_e4m3(threads, name, shape)                                                          \
    BSMM_KERNEL(threads) name(bsmm_cdna_gemm p) {                                                  \
        gemm_promoted_run(&p, shape);                                                              \
    }

enum { BLOCKS, COLS };
enum { ROWS, TURNED };
#define TILE_SMALL(elem, order, scales, name)                                                      \
    KERNEL_##elem(256, name, gemm_groups_small(RECODED_##elem, scales, order))
#define TILE_LARGE(elem, order, scales, name)                                                      \
    KERNEL_##elem(512, name, gemm_groups_large(RECODED_##elem, scales, order))
#define TILE_TALL(elem, order, scales, name)
#define TILE(size, elem, order, scales, name) TILE_##size(elem, order, scales, name)
#include "amdgpu/cdna/groupwise.def"
