/* Tests which products the GPU kernels refuse and why, and which kernels need no workspace. For
 * each limit, there is a product at the limit, which the kernel accepts, and one beyond it. The
 * test only asks the kernels of simulated GPUs whether they accept a product, and runs none of
 * them. Kernels that this build does not have are left out. */
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { GIGA = 1 << 30, MOST = INT32_MAX };

/* Says how the operands are stored. A_GAP and B_GAP mean 8 unused elements after each row of A or
 * B. B_COLUMNS means a column-major B. THREES and FOURS mean that B's scales are stored in tiles of
 * one row and 3 or 4 columns. */
typedef enum how { PLAIN, A_GAP, B_GAP, B_COLUMNS, THREES, FOURS } how;

typedef struct refusal {
    const char *device, *kernel;
    const char *a, *b;
    int64_t m, n, k;
    how how;
    /* `reason` is a part of the kernel's reason for refusing. NULL means that the kernel accepts
     * the product. */
    const char *reason;
} refusal;

static const refusal refusals[] = {
    {"sim:sm_100", "cuda_sm100f_fp8", "fp8_group128", "fp8_block128", 255 * 256, MOST, 128, PLAIN,
     NULL},
    {"sim:sm_100", "cuda_sm100f_fp8", "fp8_group128", "fp8_block128", 256 * 256, MOST, 128, PLAIN,
     "D is 65536 x 2147483647; the kernel takes at most 2147483647 tiles"},
    {"sim:sm_100", "cuda_sm100f_fp8", "fp8_group128", "fp8_block128", 4, MOST + 1LL, 128, PLAIN,
     "N is 2147483648; the kernel takes 1 to 2147483647"},
    {"sim:sm_100", "cuda_sm100f_fp8", "fp8_group128", "mxfp8", 4, 4, 128, PLAIN,
     "B is mxfp8; the kernel takes e4m3 and e5m2 with f32 scales"},
    {"sim:sm_100", "cuda_sm100f_fp8", "fp8_group128", "fp8_block128", 4, 128, 128, B_COLUMNS,
     "B is ORDER_COL; the kernel takes only ORDER_ROW"},
    {"sim:sm_100", "cuda_sm100f_fp8", "fp8_group128", "fp8_block128", 4, 128, 0, PLAIN,
     "K is 0; the kernel takes 1 to 2147483647"},
    {"sim:sm_100", "cuda_sm100f_scaled_small_m", "mxfp8", "mxfp8", 64, 4, 32, PLAIN, NULL},
    {"sim:sm_100", "cuda_sm100f_scaled_small_m", "mxfp8", "mxfp8", 65, 4, 32, PLAIN,
     "A has 65 rows; the kernel takes at most 64"},
    {"sim:sm_100", "cuda_sm100f_scaled_small_m", "mxfp8", "fp8_block128", 4, 4, 32, PLAIN,
     "A is mxfp8 and B is fp8_block128; the kernel takes 4-, 6- and 8-bit floats with e8m0"},
    {"sim:sm_100", "cuda_sm100f_scaled", "mxfp8", "mxfp8", GIGA, GIGA, 32, PLAIN,
     "D is 1073741824 x 1073741824; the kernel takes at most 2147483647 tiles"},
    {"sim:sm_100", "cuda_sm100f_scaled", "mxfp8", "mxfp8", 4, 4, MOST, PLAIN, NULL},
    {"sim:sm_100", "cuda_sm100f_scaled", "mxfp8", "mxfp8", GIGA, 4, (1 << 14) - 128, PLAIN, NULL},
    {"sim:sm_100", "cuda_sm100f_scaled", "mxfp8", "mxfp8", GIGA, 4, 1 << 14, PLAIN,
     "A has 549755813888 scales; TMA addresses fewer than 549755813888"},
    {"sim:sm_100", "cuda_sm100f_scaled", "mxfp8", "fp8_block128", 4, 4, 32, PLAIN,
     "A is mxfp8 and B is fp8_block128; the kernel takes 4-, 6- and 8-bit floats with e8m0"},
    {"sim:sm_100", "cuda_sm100f_scaled", "mxfp8", "mxfp8", 4, 32, 32, B_COLUMNS,
     "B is ORDER_COL; the kernel takes only ORDER_ROW"},
    {"sim:sm_100", "cuda_sm100f_wide", "bf16", "bf16", 255 * 256, MOST, 64, PLAIN, NULL},
    {"sim:sm_100", "cuda_sm100f_wide", "bf16", "bf16", 256 * 256 * 8, MOST, 64, PLAIN,
     "D is 524288 x 2147483647; the kernel takes at most 2147483647 tiles"},
    {"sim:sm_100", "cuda_sm100f_wide", "bf16", "bf16", 4, 4, 0, PLAIN,
     "K is 0; the kernel takes 1 to 2147483647"},
    {"sim:sm_100", "cuda_sm100f_wide", "bf16", "bf16", 4, 4, MOST / 64 * 64, PLAIN, NULL},
    {"sim:sm_100", "cuda_sm100f_wide", "bf16", "f32", 4, 4, 1 << 22, PLAIN, NULL},
    {"sim:sm_100", "cuda_sm100f_wide", "bf16", "f32", 4, 4, (1 << 22) + 32, PLAIN,
     "B is 4 x 4194336; at most 2147483647 x 4194304 elements can be packed"},
    {"sim:sm_100", "cuda_sm100f_wide", "bf16", "fp8_block128", 4, 4, 128, PLAIN,
     "B is fp8_block128; the kernel takes no f32 scales"},
    {"sim:sm_100", "cuda_sm100f_wide", "bf16", "mxfp8", 4, 128, 128, B_COLUMNS, NULL},
    {"sim:sm_100", "cuda_sm100f_wide_groups", "bf16", "fp8_block128", 255 * 256, MOST, 128, PLAIN,
     NULL},
    {"sim:sm_100", "cuda_sm100f_wide_groups", "bf16", "fp8_block128", 256 * 256, MOST, 128, PLAIN,
     "D is 65536 x 2147483647; the kernel takes at most 2147483647 tiles"},
    {"sim:sm_100", "cuda_sm100f_wide_groups", "bf16", "bf16", 4, 4, 128, PLAIN,
     "the kernel takes f32 scales of A or B"},
    {"sim:sm_100", "cuda_sm100f_wide_groups", "mxfp8", "fp8_block128", 4, 128, 128, B_COLUMNS,
     NULL},
    {"sim:sm_120", "cuda_sm120f_scaled", "mxfp8", "mxfp8", 127 * 128, MOST, 32, PLAIN, NULL},
    {"sim:sm_120", "cuda_sm120f_scaled", "mxfp8", "mxfp8", 128 * 128, MOST, 32, PLAIN,
     "D has 2147483648 tiles of 128 x 128; the kernel takes at most 2147483647"},
    {"sim:sm_120", "cuda_sm120f_scaled", "nvfp4", "mxfp4", 4, 4, 32, PLAIN,
     "A is nvfp4 and B is mxfp4; the kernel takes 4-, 6- and 8-bit floats with e8m0"},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp4", 64, 128, 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp4", 65, 128, 128, PLAIN,
     "A has 65 rows; the kernel takes at most 64 of these formats"},
    {"sim:sm_100", "cuda_sm90_small_m", "bf16", "mxfp4", 32, 128, 128, PLAIN, NULL},
    {"sim:sm_100", "cuda_sm90_small_m", "bf16", "mxfp4", 33, 128, 128, PLAIN,
     "A has 33 rows; the kernel takes at most 32 of these formats"},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp8", 64, 128, 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp8", 65, 128, 128, PLAIN,
     "A has 65 rows; the kernel takes at most 64 of these formats"},
    {"sim:sm_90a", "cuda_sm90_small_m", "f32", "mxfp4", 21, 128, 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "f32", "mxfp4", 22, 128, 128, PLAIN,
     "A has 22 rows; the kernel takes at most 21 of these formats"},
    {"sim:sm_90a", "cuda_sm90_small_m", "f16", "mxfp4", 32, 128, 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "f16", "mxfp4", 33, 128, 128, PLAIN,
     "A has 33 rows; the kernel takes at most 32 of these formats"},
    {"sim:sm_90a", "cuda_sm90_small_m", "mxfp8", "mxfp4", 64, 128, 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "mxfp8", "mxfp4", 65, 128, 128, PLAIN,
     "A has 65 rows; the kernel takes at most 64 of these formats"},
    {"sim:sm_90a", "cuda_sm90_small_m", "mxfp4", "mxfp4", 32, 128, 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "mxfp4", "mxfp4", 33, 128, 128, PLAIN,
     "A has 33 rows; the kernel takes at most 32 of these formats"},
    {"sim:sm_90a", "cuda_sm90_small_m", "fp8_group128", "mxfp4", 64, 128, 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "fp8_group128", "mxfp4", 65, 128, 128, PLAIN,
     "A has 65 rows; the kernel takes at most 64 of these formats"},
    {"sim:sm_90a", "cuda_sm90_small_m", "fp8_group128", "fp8_block128", 32, 128, 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "fp8_group128", "fp8_block128", 33, 128, 128, PLAIN,
     "A has 33 rows; the kernel takes at most 32 of these formats"},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp4", 4, 128, 96, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp4", 4, 128, 80, PLAIN,
     "K is 80 and B's ld is 80; both must be multiples of 32, because rows are read in units of 16 "
     "bytes"},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp4", 4, 128, 96, B_GAP,
     "K is 96 and B's ld is 104; both must be multiples of 32, because rows are read in units of "
     "16 bytes"},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp8", 4, 128, 80, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp8", 4, 128, 72, PLAIN,
     "K is 72 and B's ld is 72; both must be multiples of 16, because rows are read in units of 16 "
     "bytes"},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp6_e2m3", 4, 128, 80, PLAIN,
     "K is 80 and B's ld is 80; both must be multiples of 32, because rows are read in units of 24 "
     "bytes"},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "bf16", 4, 128, 96, PLAIN,
     "B is bf16; the kernel takes mxfp4, nvfp4"},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp4", 4, 128, 96, B_COLUMNS,
     "B is ORDER_COL; the kernel takes only ORDER_ROW"},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp4", 4, MOST, 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp4", 4, MOST + 1LL, 128, PLAIN,
     "N is 2147483648; the kernel takes 1 to 2147483647"},
    {"sim:sm_90a", "cuda_sm90a_fp8_small_m", "fp8_group128", "fp8_block128", 32, 128, 144, PLAIN,
     NULL},
    {"sim:sm_90a", "cuda_sm90a_fp8_small_m", "fp8_group128", "fp8_block128", 33, 128, 144, PLAIN,
     "A has 33 rows; the kernel takes at most 32"},
    {"sim:sm_90a", "cuda_sm90a_fp8_small_m", "fp8_group128", "fp8_block128", 4, 128, 136, PLAIN,
     "K is 136 and A's ld is 136; both must be multiples of 16"},
    {"sim:sm_90a", "cuda_sm90a_fp8_small_m", "fp8_group128", "fp8_block128", 4, 128, 144, A_GAP,
     "K is 144 and A's ld is 152; both must be multiples of 16"},
    {"sim:sm_90a", "cuda_sm90a_fp8_small_m", "fp8_group128", "fp8_block128", 4, 128, 144, B_GAP,
     "K is 144 and B's ld is 152; both must be multiples of 16"},
    {"sim:sm_90a", "cuda_sm90a_fp8_small_m", "fp8_group128", "fp8_block128", 4, 128, 144, B_COLUMNS,
     "B is ORDER_COL; the kernel takes only ORDER_ROW"},
    {"sim:sm_90a", "cuda_sm90a_fp8_small_m", "mxfp8", "fp8_block128", 4, 128, 128, PLAIN,
     "A is mxfp8; the kernel takes f32 scales of multiples of 128 columns or all of K, or no "
     "scales"},
    {"sim:sm_90a", "cuda_sm90a_fp8_small_m", "bf16", "fp8_block128", 4, 128, 128, PLAIN,
     "A is bf16; the kernel takes e4m3"},
    {"sim:sm_90a", "cuda_sm90a_fp8_small_m", "e4m3", "fp8_block128", 4, 128, 128, PLAIN,
     "A is e4m3 and B is fp8_block128; FP8 tensor cores round sums"},
    {"sim:sm_90a", "cuda_sm90a_fp8_small_m", "fp8_group128", "mxfp8", 4, 128, 128, PLAIN,
     "B is mxfp8; the kernel takes f32 scales of multiples of 128 columns"},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp4", 4, 128, 1568 * 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp4", 4, 128, 1569 * 128, PLAIN,
     "K is 200832; with 4 rows of A it must fit in shared memory"},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp4", 64, 128, 72 * 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp4", 64, 128, 73 * 128, PLAIN,
     "K is 9344; with 64 rows of A it must fit in shared memory"},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "nvfp4", 4, 128, 784 * 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "nvfp4", 4, 128, 785 * 128, PLAIN,
     "K is 100480; with 4 rows of A it must fit in shared memory"},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp8", 4, 128, 3104 * 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp8", 4, 128, 3105 * 128, PLAIN,
     "K is 397440; with 4 rows of A it must fit in shared memory"},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp6_e2m3", 4, 128, 3104 * 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16", "mxfp6_e2m3", 4, 128, 3105 * 128, PLAIN,
     "K is 397440; with 4 rows of A it must fit in shared memory"},
    {"sim:sm_90a", "cuda_sm90_small_m", "fp8_group128", "fp8_block128", 4, 128, 2080 * 128, PLAIN,
     NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "fp8_group128", "fp8_block128", 4, 128, 2081 * 128, PLAIN,
     "K is 266368; with 4 rows of A it must fit in shared memory"},
    {"sim:sm_90a", "cuda_sm90a_fp8_small_m", "fp8_group128", "fp8_block128", 4, 128, 1920 * 128,
     PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90a_fp8_small_m", "fp8_group128", "fp8_block128", 4, 128, 1921 * 128,
     PLAIN, "K is 245888; it must fit in shared memory"},
    {"sim:sm_90a", "cuda_sm90a_bf16", "mxfp4", "mxfp4", 4, 128, 1 << 22, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90a_bf16", "mxfp4", "mxfp4", 4, 128, (1 << 22) + 32, PLAIN,
     "A is 4 x 4194336; at most 2147483647 x 4194304 elements can be packed"},
    {"sim:sm_90a", "cuda_sm90a_f16", "f16", "mxfp4", 4, 128, 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90a_f16", "bf16", "mxfp4", 4, 128, 128, PLAIN,
     "A is bf16; the kernel takes f16 without scales"},
    {"sim:sm_90a", "cuda_sm90a_f16", "f16", "f16", 4, 129, 128, B_COLUMNS,
     "B is ORDER_COL; the kernel takes only ORDER_ROW"},
    {"sim:sm_90a", "cuda_sm90a_f16", "f16", "fp8_group128", 4, 128, 256, PLAIN,
     "B is fp8_group128; the kernel takes f32 scales of 128 x 128 or of whole rows"},
    {"sim:sm_90a", "cuda_sm90a_fold", "nvfp4", "mxfp4", 4, 128, 128, PLAIN,
     "A is nvfp4; the kernel takes mxfp4, mxfp6, FP8"},
    {"sim:sm_90a", "cuda_sm90a_fold", "mxfp4", "nvfp4", 4, 128, 128, PLAIN,
     "B is nvfp4; the kernel takes mxfp4, mxfp6, FP8"},
    {"sim:sm_90a", "cuda_sm90a_fold", "fp8_group128", "fp8_block128", 4, 128, 128, PLAIN,
     "A is fp8_group128 and B is fp8_block128; one of them must have e8m0 scales"},
    {"sim:sm_90a", "cuda_sm90a_fold", "mxfp4", "mxfp4", 4, 128, 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90a_fp8", "mxfp8", "fp8_block128", 4, 128, 128, PLAIN,
     "A is mxfp8; the kernel takes e4m3 and e5m2 with f32 scales"},
    {"sim:sm_90a", "cuda_sm90a_fp8", "fp8_block128", "mxfp8", 4, 128, 128, PLAIN,
     "B is mxfp8; the kernel takes e4m3 and e5m2 with f32 scales"},
    {"sim:sm_90a", "cuda_sm90a_fp8", "fp8_group128", "fp8_block128", 4, 128, 65535 * 128, PLAIN,
     NULL},
    {"sim:sm_90a", "cuda_sm90a_fp8", "fp8_group128", "fp8_block128", 4, 128, 65536 * 128, PLAIN,
     "K is 8388608; the kernel that copies scales takes at most 8388480"},
    {"sim:gfx950", "hip_cdna_small_m", "bf16", "mxfp4", 4, (1 << 27) - 1, 32, PLAIN, NULL},
    {"sim:gfx950", "hip_cdna_small_m", "bf16", "mxfp4", 4, 1 << 27, 32, PLAIN,
     "B has 2147483648 bytes of elements; the kernel takes at most 2147483647"},
    {"sim:gfx950", "hip_cdna_small_m", "bf16", "mxfp4", 63, 4, 1 << 24, PLAIN, NULL},
    {"sim:gfx950", "hip_cdna_small_m", "bf16", "mxfp4", 64, 4, 1 << 24, PLAIN,
     "A has 2147483648 bytes of elements; the kernel takes at most 2147483647"},
    {"sim:gfx950", "hip_cdna_small_m", "bf16", "mxfp4", 0, 4, 32, PLAIN,
     "M is 0; the kernel takes 1 to 2147483647"},
    {"sim:gfx950", "hip_gfx950_scaled", "mxfp4", "mxfp4", (1 << 12) - 1, (1 << 12) - 1, 1 << 24,
     PLAIN, NULL},
    {"sim:gfx950", "hip_gfx950_scaled", "mxfp4", "mxfp4", 1 << 12, 4, 1 << 24, PLAIN,
     "A has 2147483648 bytes of scales; the kernel takes at most 2147483647"},
    {"sim:gfx950", "hip_gfx950_scaled", "mxfp4", "mxfp4", 4, 1 << 12, 1 << 24, PLAIN,
     "B has 2147483648 bytes of scales; the kernel takes at most 2147483647"},
    {"sim:gfx950", "hip_gfx950_scaled", "mxfp4", "mxfp4", 4, 4, (1 << 24) + 32, PLAIN,
     "A's rows (or columns) are 8388624 bytes apart; the kernel takes at most 8388608"},
    {"sim:gfx950", "hip_gfx950_scaled", "mxfp4", "mxfp4", MOST, MOST, 32, PLAIN, "tiles of"},
    {"sim:gfx950", "hip_gfx950_scaled", "mxfp4", "nvfp4", 4, 4, 32, PLAIN,
     "A is mxfp4 and B is nvfp4; the kernel takes 4-, 6- and 8-bit floats with e8m0"},
    {"sim:gfx950", "hip_gfx950_scaled", "mxfp4", "mxfp4", 4, 32, 32, B_COLUMNS,
     "B is ORDER_COL; the kernel takes only ORDER_ROW"},
    {"sim:gfx950", "hip_gfx950_scaled", "mxfp4", "mxfp4", 4, 4, 384, FOURS, NULL},
    {"sim:gfx950", "hip_gfx950_scaled", "mxfp4", "mxfp4", 4, 4, 384, THREES,
     "B's scales have the layout tile_contiguous; their order must repeat after"},
    {"sim:gfx950", "hip_gfx950_scaled", "mxfp4", "mxfp4", 4, 4, 0, PLAIN,
     "K is 0; the kernel takes 1 to 2147483647"},
    {"sim:gfx950", "hip_bf16", "bf16", "mxfp4", MOST + 1LL, 4, 32, PLAIN,
     "M is 2147483648; the kernel takes 0 to 2147483647"},
    {"sim:gfx942", "hip_cdna_fp8", "fp8_group128", "fp8_block128", 4, 4, 128, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "fp8_group128", "mxfp8", 4, 128, 256, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90_small_m", "bf16_group128", "mxfp8", 4, 128, 256, PLAIN,
     "with f32 scales along K the kernel takes elements of at most 8 bits"},
    {"sim:sm_90a", "cuda_sm90a_mixed", "bf16", "mxfp4", 16, 12192, 896, PLAIN,
     "A has 16 rows; the kernel takes at least 17 of this format"},
    {"sim:sm_90a", "cuda_sm90a_mixed", "bf16", "mxfp4", 24, 4096, 4096, PLAIN,
     "A has 24 rows and B has 4096 x 4096 elements; another kernel is predicted to be faster"},
    {"sim:sm_90a", "cuda_sm90a_mixed", "bf16", "mxfp4", 61, 12192, 896, PLAIN, NULL},
    {"sim:sm_90a", "cuda_sm90a_mixed", "f16", "mxfp8", 17, 28672, 4096, PLAIN, NULL},
    {"sim:gfx942", "hip_cdna_fp8", "fp8_group128_fnuz", "fp8_block128", 4, 4, 128, PLAIN,
     "A is fp8_group128_fnuz and B is fp8_block128; the kernel takes e4m3 elements on both sides"},
    {"sim:gfx942", "hip_cdna_fp8", "fp8_group128", "mxfp8", 4, 4, 128, PLAIN,
     "A is fp8_group128 and B is mxfp8; the kernel takes f32 scales of 1 x 128 or 128 x 128"},
    {"sim:gfx942", "hip_cdna_fp8", "fp8_group128", "fp8_block128", 4, 128, 128, B_COLUMNS,
     "A is ORDER_ROW and B is ORDER_COL; the kernel takes operands of one order"},
    {"sim:gfx950", "hip_cdna_fp8", "fp8_group128_fnuz", "fp8_block128_fnuz", 4, 4, 128, PLAIN,
     "A has e4m3fnuz elements; only gfx942 multiplies them, not gfx950"},
};

/* Describes an operand. The format "bf16_group128" is bf16 with fp32 scales of 1 x 128 elements,
 * and all other formats have names in the library. */
static bsmm_matrix describe_side(const char *format, int64_t rows, int64_t cols, bool has_gap) {
    static const bsmm_format bf16_group128 = {BSMM_ELEM_BF16, BSMM_SCALE_F32, 1, 128};
    const bool is_known = strcmp(format, "bf16_group128") != 0;
    bsmm_matrix m = describe(is_known ? format_named(format) : bf16_group128, rows, cols);
    if (has_gap) m.ld = cols + 8;
    return m;
}

/* Asks bsmm_explain about the product. Returns false if this build does not have the kernel. */
static bool ask(const refusal *r, bsmm_explanation *e) {
    const bsmm_matrix a = describe_side(r->a, r->m, r->k, r->how == A_GAP);
    bsmm_matrix b = describe_side(r->b, r->n, r->k, r->how == B_GAP);
    const bsmm_matrix d = describe(format_named("bf16"), r->m, r->n);
    if (r->how == B_COLUMNS) b.order = BSMM_ORDER_COL, b.ld = r->n;
    if (r->how == THREES || r->how == FOURS) {
        b.scale_layout = BSMM_LAYOUT_TILE_CONTIGUOUS;
        b.scale_tile_rows = 1;
        b.scale_tile_cols = r->how == THREES ? 3 : 4;
    }
    const bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                                   .a = &a,
                                   .b = &b,
                                   .d = &d,
                                   .device = r->device,
                                   .kernel = r->kernel};
    *e = BSMM_INIT(bsmm_explanation);
    for (uint32_t i = 0; bsmm_explain(&desc, i, e) == BSMM_OK; i++)
        if (strcmp(e->kernel, r->kernel) == 0) return !strstr(e->reason, "built without");
    fail_msg("%s, %s: %s", r->device, r->kernel, bsmm_error_message());
    return false;
}

static void test_refusals(void **state) {
    (void)state;
    int asked = 0, wrong = 0;
    for (size_t i = 0; i < BSMM_COUNT(refusals); i++) {
        const refusal *r = &refusals[i];
        bsmm_explanation e;
        if (!ask(r, &e)) continue;
        asked++;
        if (r->reason ? !e.accepts && strstr(e.reason, r->reason) : e.accepts) continue;
        wrong++;
        print_error("%s, %s x %s, %lld x %lld x %lld: %s; must be: %s\n", r->kernel, r->a, r->b,
                    (long long)r->m, (long long)r->n, (long long)r->k,
                    e.accepts ? "taken" : e.reason, r->reason ? r->reason : "taken");
    }
    assert_int_equal(wrong, 0);
    if (!asked) skip();
}

/* Tests that kernels for few rows need no workspace if they read both operands as they are
 * stored. */
static void test_no_workspace(void **state) {
    (void)state;
    static const refusal products[] = {
        {"sim:sm_90a", "cuda_sm90a_fp8_small_m", "fp8_group128", "fp8_block128", 4, 128, 256, PLAIN,
         NULL},
        {"sim:gfx942", "hip_cdna_small_m", "bf16", "mxfp4", 4, 128, 256, PLAIN, NULL},
        {"sim:gfx950", "hip_cdna_small_m", "bf16", "mxfp4", 4, 128, 256, PLAIN, NULL},
    };
    int planned = 0;
    for (size_t i = 0; i < BSMM_COUNT(products); i++) {
        const refusal *r = &products[i];
        const bsmm_matrix a = describe(format_named(r->a), r->m, r->k),
                          b = describe(format_named(r->b), r->n, r->k),
                          d = describe(format_named("bf16"), r->m, r->n);
        const bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                                       .a = &a,
                                       .b = &b,
                                       .d = &d,
                                       .device = r->device,
                                       .kernel = r->kernel};
        bsmm_explanation e;
        bsmm_plan *plan;
        if (!ask(r, &e)) continue;
        if (bsmm_plan_create(&desc, &plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
        assert_int_equal(bsmm_plan_workspace_bytes(plan), 0);
        bsmm_plan_destroy(plan);
        planned++;
    }
    if (!planned) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_no_workspace)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
