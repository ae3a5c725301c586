/* Lists the products that test_cuda_scaled multiplies by the kernels for Blackwell. */
#ifndef BSMM_TEST_SCALED_CASES_H
#define BSMM_TEST_SCALED_CASES_H

#include "operand.h"

typedef struct scaled_case {
    const char *a, *b, *d;
    int64_t m, n, k;
    fill how;
    uint32_t layout; /* `layout` is the layout of A's and B's scales. */
    /* `more_cols` is the number of unused elements after each row of A and B in memory. */
    int64_t more_cols;
} scaled_case;

/* Lists products that need one or several tiles, and fewer or more loads than the kernel has
 * pipeline stages. On sm_100 a tile has 64 to 256 columns, and 128 rows, or 256 for a pair of SMs.
 * On sm_120 it has 128 x 128 results. A load has 128 elements of K (256 of mxfp4 and nvfp4), and
 * the kernel has 2 to 7 stages. */
static const scaled_case cases[] = {
    {"mxfp8", "mxfp8", "f32", 3, 4, 64, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8", "mxfp8", "f32", 128, 192, 128, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8", "mxfp8_e5m2", "bf16", 300, 600, 1040, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8_e5m2", "mxfp8_e5m2", "f16", 129, 200, 1504, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"mxfp8", "mxfp8", "f32", 130, 193, 333, FILL_ORDINARY, BSMM_LAYOUT_COL_MAJOR, 3},
    {"mxfp8", "mxfp8", "e4m3", 33, 47, 160, FILL_ORDINARY, BSMM_LAYOUT_NV_8X4, 16},
    {"mxfp8", "mxfp8", "e4m3", 70, 208, 160, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp4", "e5m2", 130, 336, 320, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8", "mxfp4", "e5m2", 40, 208, 160, FILL_SPECIAL, BSMM_LAYOUT_NV_128X4, 0},
    {"nvfp4", "nvfp4", "e4m3", 40, 208, 160, FILL_EXTREME, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8", "mxfp8_e5m2", "f32", 40, 200, 288, FILL_EXTREME, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8_e5m2", "mxfp8", "bf16", 40, 200, 160, FILL_SPECIAL, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp4", "f32", 128, 192, 256, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp4", "bf16", 300, 600, 1344, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp4", "f32", 130, 70, 1569, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp4", "f16", 17, 260, 96, FILL_EXTREME, BSMM_LAYOUT_ROW_MAJOR, 32},
    {"mxfp4", "mxfp4", "f32", 17, 260, 224, FILL_SPECIAL, BSMM_LAYOUT_NV_128X4, 0},
    {"nvfp4", "nvfp4", "f32", 128, 192, 256, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"nvfp4", "nvfp4", "bf16", 300, 600, 1344, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"nvfp4", "nvfp4", "f16", 130, 70, 1569, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"nvfp4", "nvfp4", "f32", 17, 260, 80, FILL_EXTREME, BSMM_LAYOUT_NV_128X4, 16},
    {"nvfp4", "nvfp4", "f32", 17, 260, 224, FILL_SPECIAL, BSMM_LAYOUT_NV_128X4, 0},
    /* In the next two products, K and the number of scales in a row are odd, although the rows are
     * aligned for TMA. */
    {"mxfp4", "mxfp4", "f32", 40, 60, 95, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 33},
    {"nvfp4", "nvfp4", "f32", 40, 60, 45, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 19},
    {"mxfp8", "mxfp4", "bf16", 130, 260, 768, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp8_e5m2", "f32", 70, 300, 353, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"mxfp6_e2m3", "mxfp6_e3m2", "f32", 130, 260, 768, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp6_e3m2", "mxfp8", "bf16", 70, 300, 354, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 4},
    {"mxfp4", "mxfp6_e2m3", "f32", 70, 100, 256, FILL_EXTREME, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"mxfp6_e3m2", "mxfp4", "f32", 20, 100, 100, FILL_SPECIAL, BSMM_LAYOUT_NV_128X4, 0},
    /* If the simulated B200 (sm_100) has 6 SMs, pairs of thread blocks compute these products. Each
     * pair has one or two tiles, and the second block of a pair has 128 rows or fewer. */
    {"mxfp8", "mxfp8_e5m2", "f32", 140, 1150, 288, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp4", "bf16", 130, 570, 1824, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"nvfp4", "nvfp4", "f32", 256, 576, 304, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"nvfp4", "nvfp4", "f16", 130, 1150, 112, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 16},
    {"mxfp6_e2m3", "mxfp4", "f32", 129, 570, 64, FILL_EXTREME, BSMM_LAYOUT_NV_128X4, 0},
    /* Pairs of thread blocks compute these products with tiles of 128 or 64 columns, since larger
     * tiles would take longer. In the third product a pair has two tiles. */
    {"mxfp8", "mxfp8", "f16", 140, 384, 416, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"nvfp4", "nvfp4", "f32", 140, 380, 1104, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp4", "bf16", 400, 380, 320, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8", "mxfp4", "f32", 140, 190, 416, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"nvfp4", "nvfp4", "f16", 140, 192, 336, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
};

/* Lists the products for the kernel cuda_sm100f_scaled_small_m, which takes up to 64 rows of A. On
 * 6 SMs, up to 6 thread blocks share the work for a tile of 128 columns of D by splitting K. If D
 * has more than 6 such tiles, each thread block computes one or two tiles. */
static const scaled_case small_m_cases[] = {
    {"mxfp8", "mxfp8", "f32", 1, 1, 1, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8", "mxfp8", "f32", 1, 128, 768, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8", "mxfp8_e5m2", "bf16", 16, 136, 1040, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8_e5m2", "mxfp8", "f16", 64, 264, 1504, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"mxfp8", "mxfp8", "f32", 33, 1000, 333, FILL_ORDINARY, BSMM_LAYOUT_COL_MAJOR, 3},
    {"mxfp8", "mxfp8", "e4m3", 17, 47, 160, FILL_ORDINARY, BSMM_LAYOUT_NV_8X4, 16},
    {"mxfp4", "mxfp8", "e5m2", 17, 48, 160, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8", "mxfp8", "e4m3", 17, 144, 160, FILL_SPECIAL, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8", "mxfp8_e5m2", "f32", 5, 200, 288, FILL_EXTREME, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8_e5m2", "mxfp8", "bf16", 40, 200, 640, FILL_SPECIAL, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp4", "bf16", 3, 256, 4096, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp4", "f32", 62, 70, 1569, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp4", "f16", 17, 260, 608, FILL_EXTREME, BSMM_LAYOUT_ROW_MAJOR, 32},
    {"mxfp4", "mxfp4", "f32", 7, 900, 224, FILL_SPECIAL, BSMM_LAYOUT_NV_128X4, 0},
    {"nvfp4", "nvfp4", "bf16", 2, 1536, 512, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"nvfp4", "nvfp4", "f16", 50, 70, 1569, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"nvfp4", "nvfp4", "f32", 17, 260, 592, FILL_EXTREME, BSMM_LAYOUT_NV_128X4, 16},
    {"nvfp4", "nvfp4", "f32", 9, 260, 736, FILL_SPECIAL, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8", "mxfp4", "bf16", 13, 260, 768, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp8_e5m2", "f32", 24, 300, 353, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"mxfp6_e2m3", "mxfp6_e3m2", "f32", 34, 260, 768, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8", "mxfp6_e3m2", "bf16", 1, 300, 354, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 4},
};

/* Lists the products for the kernel cuda_sm100f_fp8. A tile has 128 rows, or 256 rows for a pair of
 * thread blocks, and 64, 128 or 256 columns. Each load has 128 elements of K. */
static const scaled_case fp8_cases[] = {
    {"fp8_group128", "fp8_block128", "f32", 128, 128, 128, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"fp8_group128", "fp8_block128", "bf16", 300, 600, 1040, FILL_ORDINARY, BSMM_LAYOUT_COL_MAJOR,
     0},
    {"fp8_group128", "fp8_group128", "f16", 130, 193, 333, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 3},
    {"fp8_group128_e5m2", "fp8_block128", "e4m3", 33, 300, 160, FILL_ORDINARY,
     BSMM_LAYOUT_ROW_MAJOR, 0},
    {"fp8_block128", "fp8_group128_e5m2", "f32", 40, 200, 288, FILL_EXTREME, BSMM_LAYOUT_ROW_MAJOR,
     0},
    {"fp8_group128", "fp8_block128", "f32", 40, 200, 288, FILL_SPECIAL, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"fp8_group128", "fp8_group128", "bf16", 70, 1152, 400, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR,
     0},
    /* In this product K has 66 segments of 128 elements, more than a warp has lanes. The kernel
     * sums each segment separately. */
    {"fp8_group128", "fp8_group128", "f32", 20, 30, 8400, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    /* On a simulated GPU with 6 SMs, pairs of thread blocks compute these products. Each pair has
     * one or two tiles. */
    {"fp8_group128", "fp8_block128", "bf16", 140, 1152, 400, FILL_ORDINARY, BSMM_LAYOUT_COL_MAJOR,
     0},
    {"fp8_group128", "fp8_group128", "f32", 256, 768, 640, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"fp8_block128", "fp8_group128_e5m2", "f16", 200, 330, 288, FILL_EXTREME, BSMM_LAYOUT_ROW_MAJOR,
     0},
    {"fp8_group128", "fp8_block128", "e5m2", 130, 704, 160, FILL_SPECIAL, BSMM_LAYOUT_ROW_MAJOR, 0},
};

/* Lists the products for the kernel cuda_sm100f_wide. A tile of D has 128 rows, or 256 rows for a
 * pair of thread blocks, and 64 to 256 columns. The kernel splits each element into one to three
 * bf16 parts, and each load has 64 elements of K of one of these parts. With extreme scales,
 * packing to bf16 is not exact, so another kernel computes the product. */
static const scaled_case wide_cases[] = {
    {"bf16", "bf16", "f32", 1, 1, 1, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 7},
    {"bf16", "bf16", "f32", 128, 256, 64, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"bf16", "bf16", "bf16", 300, 600, 520, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"bf16", "bf16", "f32", 130, 193, 333, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"bf16", "bf16", "f16", 40, 72, 200, FILL_SPECIAL, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"f16", "f16", "f32", 130, 193, 328, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 8},
    {"f16", "f16", "f16", 40, 72, 203, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"f16", "f16", "f32", 40, 72, 200, FILL_SPECIAL, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"bf16", "mxfp4", "bf16", 130, 264, 704, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"bf16", "mxfp8", "f32", 33, 70, 159, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"mxfp6_e2m3", "bf16", "e4m3", 70, 100, 96, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"bf16", "nvfp4", "f32", 70, 100, 176, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"bf16", "mxfp4", "f32", 17, 70, 96, FILL_EXTREME, BSMM_LAYOUT_ROW_MAJOR, 32},
    {"bf16", "mxfp8", "f32", 17, 70, 96, FILL_SPECIAL, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"f16", "nvfp4", "f16", 70, 100, 176, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"f16", "mxfp4", "f32", 33, 70, 160, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"f16", "bf16", "f32", 33, 70, 90, FILL_SPECIAL, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"f16", "bf16", "f32", 33, 70, 96, FILL_SPECIAL, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"bf16", "nvfp4", "f32", 33, 70, 96, FILL_SPECIAL, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"f32", "bf16", "f32", 33, 70, 90, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"f32", "f16", "f32", 20, 70, 150, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    /* On a simulated device with 6 SMs, pairs of thread blocks compute these products. Each pair
     * has one or two tiles. */
    {"bf16", "bf16", "f32", 140, 1150, 140, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"bf16", "mxfp4", "bf16", 256, 768, 576, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
};

/* Lists the products for the kernel cuda_sm100f_wide_groups. Its tile has 128 rows, or 256 rows for
 * a pair of thread blocks, and 64, 128 or 256 columns, so some products end inside a tile. It sums
 * each 128 elements of K separately. An element of A or B may be the sum of several bf16 parts. For
 * each pair of a part of A and a part of B, the kernel loads 128 elements of K by two loads of 64
 * elements, so some products end after the first of them. */
static const scaled_case wide_groups_cases[] = {
    {"bf16", "fp8_block128", "f32", 128, 128, 128, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"bf16", "fp8_block128", "bf16", 300, 260, 776, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"fp8_group128", "bf16", "f16", 130, 70, 333, FILL_ORDINARY, BSMM_LAYOUT_COL_MAJOR, 3},
    {"fp8_group128", "mxfp4", "f32", 40, 200, 288, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"fp8_group128_e5m2", "fp8_block128", "f32", 33, 70, 160, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR,
     0},
    {"f16", "fp8_block128", "e4m3", 33, 70, 200, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"f16", "fp8_block128", "f32", 33, 70, 203, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"f32", "fp8_block128", "f32", 20, 70, 150, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"bf16", "fp8_block128", "f32", 20, 70, 288, FILL_EXTREME, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"fp8_block128", "fp8_group128", "f32", 20, 70, 288, FILL_EXTREME, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"bf16", "fp8_block128", "f32", 20, 70, 288, FILL_SPECIAL, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"fp8_block128", "mxfp8", "f32", 20, 70, 96, FILL_EXTREME, BSMM_LAYOUT_ROW_MAJOR, 0},
    /* On 6 SMs, pairs of thread blocks compute these products. Each pair has one or two tiles. In
     * the first product, K = 320 is no multiple of 128, so the last k block has only 64 elements
     * and needs only one load. */
    {"bf16", "fp8_block128", "f32", 140, 1152, 320, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"fp8_group128", "bf16", "bf16", 256, 768, 400, FILL_ORDINARY, BSMM_LAYOUT_COL_MAJOR, 0},
    {"f16", "fp8_group128", "f16", 130, 700, 200, FILL_SPECIAL, BSMM_LAYOUT_ROW_MAJOR, 0},
};

#endif
