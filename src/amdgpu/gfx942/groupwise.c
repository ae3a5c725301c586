/* Defines the kernels of the size TALL of cdna/groupwise.def for FP8 groupwise GEMMs, which
 * gfx942/tall.h implements. */
#include "amdgpu/gfx942/tall.h"

/* The matrix cores of gfx942 multiply e4m3fnuz, so the kernels recode elements of e4m3. */
enum { RECODED_e4m3 = 1, RECODED_e4m3fnuz = 0 };
enum { ROWS, TURNED };

#define TILE_SMALL(elem, order, name)
#define TILE_LARGE(elem, order, name)
#define TILE_TALL(elem, order, name)                                                               \
    BSMM_KERNEL(512) name(bsmm_cdna_gemm p) {                                                      \
        tall_run(&p, tall_shape(RECODED_##elem, order));                                           \
    }
#define TILE(size, elem, order, scales, name) TILE_##size(elem, order, name)
#include "amdgpu/cdna/groupwise.def"
