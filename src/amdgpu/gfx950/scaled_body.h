/* Defines the GEMM kernels of gfx950 for operands with an e8m0 scale for each 32 elements along K
 * (cdna/gemm_scaled_body.h). The list tiles.def has one entry for each size of a tile and each pair
 * of element types of A and B. This file makes kernels only of the entries for one type of A. The
 * file that includes it selects this type by two macros: for e4m3 it defines A_TYPE as
 * BSMM_F8F6F4_E4M3, and TILE_e4m3 as KERNEL. */
#include "amdgpu/cdna/gemm_scaled_body.h"

/* These are the types of B's elements by their names in tiles.def. */
enum {
    B_e4m3 = BSMM_F8F6F4_E4M3,
    B_e5m2 = BSMM_F8F6F4_E5M2,
    B_e2m3 = BSMM_F8F6F4_E2M3,
    B_e3m2 = BSMM_F8F6F4_E3M2,
    B_e2m1 = BSMM_F8F6F4_E2M1
};

/* The entries of tiles.def for other element types of A define nothing here. */
#ifndef TILE_e4m3
#    define TILE_e4m3(size, b)
#endif
#ifndef TILE_e5m2
#    define TILE_e5m2(size, b)
#endif
#ifndef TILE_e2m3
#    define TILE_e2m3(size, b)
#endif
#ifndef TILE_e3m2
#    define TILE_e3m2(size, b)
#endif
#ifndef TILE_e2m1
#    define TILE_e2m1(size, b)
#endif

/* A file that includes this one may define KERNEL_ATTRIBUTES, for further attributes of its
 * kernels. */
#ifndef KERNEL_ATTRIBUTES
#    define KERNEL_ATTRIBUTES
#endif
#define THREADS_small 256
#define THREADS_large 512
#define KERNEL(size, b)                                                                            \
    KERNEL_ATTRIBUTES BSMM_KERNEL(THREADS_##size) size##_##b(bsmm_cdna_gemm p) {                   \
        gemm_scaled_run(&p, gemm_##size(A_TYPE, B_##b));                                           \
    }
#define TILE(size, a, b) TILE_##a(size, b)
#include "amdgpu/gfx950/tiles.def"
