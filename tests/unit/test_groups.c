/* Tests grouped products: each kernel that takes groups must give the same results as one product
 * for each group (grouped.h). */
#include "grouped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { G = GROUPED_COUNT, N = GROUPED_N };

#define EXTENTS                                                                                    \
    { 5, 0, 33, 16, 1, 70 }
#define EVERY    (BSMM_GROUP_EACH_ALPHA | BSMM_GROUP_EACH_BIAS | BSMM_GROUP_EACH_COL_SCALE)
#define GLOBALS  (BSMM_GROUP_EACH_A_GLOBAL | BSMM_GROUP_EACH_B_GLOBAL)
#define MXFP8_4  .a = "mxfp8", .b = "mxfp4", .d = "f32"
#define NVFP4    .a = "nvfp4", .b = "nvfp4", .d = "bf16"
#define FP8      .a = "fp8_group128", .b = "fp8_block128", .d = "bf16"
#define SWIZZLED .a_layout = BSMM_LAYOUT_NV_128X4, .b_layout = BSMM_LAYOUT_NV_128X4

static const grouped_case cases[] = {
    {"batch", MXFP8_4, {.kind = BSMM_GROUP_BATCH}, .plain = true},
    {"batch of everything", MXFP8_4, {.kind = BSMM_GROUP_BATCH, .flags = EVERY}, .gated = true},
    {"batch with steps",
     NVFP4,
     {.kind = BSMM_GROUP_BATCH,
      .flags = GLOBALS,
      .a_step = 20000,
      .b_step = 7000,
      .c_step = 3000,
      .d_step = 4000,
      .a_scale_step = 1600,
      .b_scale_step = 2048},
     SWIZZLED},
    {"batch side by side",
     MXFP8_4,
     {.kind = BSMM_GROUP_BATCH, .flags = EVERY, .d_step = N / 2, .residual_step = 5000},
     .d_ld = G * N / 2,
     .gated = true},
    {"batch that shares A",
     MXFP8_4,
     {.kind = BSMM_GROUP_BATCH, .a_step = BSMM_GROUP_SHARED, .c_step = BSMM_GROUP_SHARED}},
    {"batch that shares B", MXFP8_4, {.kind = BSMM_GROUP_BATCH, .b_step = BSMM_GROUP_SHARED}},
    {"batch by columns", FP8, {.kind = BSMM_GROUP_BATCH}, .orders = 7},

    {"rows: torch's offs",
     .a = "bf16",
     .b = "bf16",
     .d = "bf16",
     {.kind = BSMM_GROUP_ROWS},
     .extents = EXTENTS,
     .plain = true},
    {"rows of everything",
     MXFP8_4,
     {.kind = BSMM_GROUP_ROWS, .flags = EVERY},
     .extents = EXTENTS,
     .gated = true},
    {"rows aligned: DeepGEMM",
     FP8,
     {.kind = BSMM_GROUP_ROWS, .align = 128},
     .extents = EXTENTS,
     .a_layout = BSMM_LAYOUT_COL_MAJOR},
    {"rows by columns",
     MXFP8_4,
     {.kind = BSMM_GROUP_ROWS, .align = 8},
     .extents = EXTENTS,
     .orders = 7},
    {"rows, swizzled",
     NVFP4,
     {.kind = BSMM_GROUP_ROWS, .align = 128, .flags = GLOBALS},
     SWIZZLED,
     .extents = EXTENTS},
    {"rows, scales apart",
     NVFP4,
     {.kind = BSMM_GROUP_ROWS, .flags = GLOBALS | BSMM_GROUP_SCALES_APART},
     SWIZZLED,
     .extents = EXTENTS},
    {"rows, quantized",
     .a = "mxfp8",
     .b = "mxfp4",
     .d = "mxfp8",
     {.kind = BSMM_GROUP_ROWS, .flags = BSMM_GROUP_EACH_D_GLOBAL},
     .extents = EXTENTS},
    {"rows, quantized and apart",
     .a = "mxfp8",
     .b = "mxfp4",
     .d = "mxfp8",
     {.kind = BSMM_GROUP_ROWS, .flags = BSMM_GROUP_SCALES_APART},
     .d_layout = BSMM_LAYOUT_CUBLAS_VEC128,
     .extents = EXTENTS},
    {"rows, blocks of rows",
     .a = "fp8_block128",
     .b = "mxfp8",
     .d = "fp8_block128",
     {.kind = BSMM_GROUP_ROWS, .align = 128},
     .extents = EXTENTS,
     .plain = true},
    {"rows gathered",
     MXFP8_4,
     {.kind = BSMM_GROUP_ROWS, .flags = EVERY | BSMM_GROUP_GATHER_A},
     .extents = EXTENTS,
     .gated = true},
    {"rows gathered, swizzled",
     NVFP4,
     {.kind = BSMM_GROUP_ROWS, .flags = BSMM_GROUP_GATHER_A | GLOBALS},
     SWIZZLED,
     .extents = EXTENTS},
    {"rows gathered by columns",
     FP8,
     {.kind = BSMM_GROUP_ROWS, .flags = BSMM_GROUP_GATHER_A},
     .orders = 1,
     .extents = EXTENTS,
     .plain = true},

    {"masked", FP8, {.kind = BSMM_GROUP_MASKED, .expected_rows = 30}, .extents = EXTENTS},
    {"masked of everything",
     MXFP8_4,
     {.kind = BSMM_GROUP_MASKED, .flags = EVERY | GLOBALS},
     .extents = EXTENTS,
     .gated = true},
    {"masked, gathered",
     NVFP4,
     {.kind = BSMM_GROUP_MASKED, .flags = BSMM_GROUP_GATHER_A},
     .extents = EXTENTS,
     .plain = true},

    {"k: torch's offs",
     .a = "bf16",
     .b = "bf16",
     .d = "f32",
     {.kind = BSMM_GROUP_K},
     .extents = EXTENTS,
     .plain = true},
    {"k of everything",
     MXFP8_4,
     {.kind = BSMM_GROUP_K, .align = 32, .flags = EVERY},
     .extents = {64, 0, 160, 33, 1, 128},
     .gated = true},
    {"k aligned: DeepGEMM",
     FP8,
     {.kind = BSMM_GROUP_K, .align = 128},
     .orders = 3,
     .extents = {128, 0, 384, 256, 100, 128},
     .plain = true},
    {"k, scales apart",
     .a = "mxfp8",
     .b = "mxfp8",
     .d = "f32",
     {.kind = BSMM_GROUP_K, .align = 16, .flags = BSMM_GROUP_SCALES_APART},
     SWIZZLED,
     .extents = {64, 0, 160, 40, 1, 128}},
    {"k, second level",
     NVFP4,
     {.kind = BSMM_GROUP_K, .align = 64, .flags = GLOBALS},
     SWIZZLED,
     .extents = {64, 0, 160, 40, 2, 128}},

    {"rows that run backwards",
     MXFP8_4,
     {.kind = BSMM_GROUP_ROWS},
     .plain = true,
     .extents = {5, 0, 0, 40, 0, 0},
     .given = {5, -7, 3, 45, INT32_MIN, 44}},
    {"rows beyond the last",
     MXFP8_4,
     {.kind = BSMM_GROUP_ROWS},
     .plain = true,
     .extents = {5, 48, 0, 0, 0, 0},
     .given = {5, INT32_MAX, 7, INT32_MAX, 54, 1000}},
    {"masked beyond the last",
     MXFP8_4,
     {.kind = BSMM_GROUP_MASKED},
     .plain = true,
     .extents = {70, 0, 0, 3, 70, 0},
     .given = {71, -1, INT32_MIN, 3, INT32_MAX, 0}},
    {"k that runs backwards",
     MXFP8_4,
     {.kind = BSMM_GROUP_K, .align = 32},
     .plain = true,
     .extents = {40, 0, 0, 20, 0, 0},
     .given = {40, 1, -1, 84, 64, 60}},
};

static void test_against_a_loop(void **state) {
    (void)state;
    for (size_t i = 0; i < BSMM_COUNT(cases); i++)
        grouped_check(&cases[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_a_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
