/* Tests AMD's MFMA kernels on simulated GPUs with several tiles of D, for every tile size. The
 * error of each result, compared with a sum in double, must be within the bound that the kernel
 * states. */
#include "amdgpu/cdna/gemm_layout.h"
#include "amdgpu/cdna/gemm_schedule.h"
#include "amdgpu/gfx942/tall_layout.h"
#include "operand.h"
#include "sample.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct product_case {
    const char *a, *b;
    int64_t m, n, k;
    uint32_t a_layout, b_layout;
    fill how;
    bool by_columns; /* `by_columns` is true if A and B are column-major. */
} product_case;

static const product_case cases[] = {
    {"mxfp8", "mxfp8", 300, 530, 424, 0, BSMM_LAYOUT_NV_128X4, FILL_ORDINARY, false},
    {"mxfp4", "mxfp4", 257, 255, 768, BSMM_LAYOUT_CDNA4_MFMA16, BSMM_LAYOUT_CDNA4_MFMA32,
     FILL_ORDINARY, false},
    {"mxfp8", "mxfp4", 64, 520, 384, BSMM_LAYOUT_CDNA4_MFMA32, BSMM_LAYOUT_CDNA4_MFMA16,
     FILL_ORDINARY, false},
    {"mxfp6_e2m3", "mxfp6_e2m3", 270, 130, 256, 0, BSMM_LAYOUT_CDNA4_MFMA16, FILL_ORDINARY, false},
    {"mxfp6_e3m2", "mxfp6_e3m2", 130, 270, 260, BSMM_LAYOUT_CDNA4_MFMA16, 0, FILL_ORDINARY, false},
    {"mxfp8_e5m2", "mxfp8_e5m2", 40, 300, 512, 0, 0, FILL_EXTREME, false},
    {"fp8_group128", "fp8_block128", 260, 300, 640, BSMM_LAYOUT_COL_MAJOR, 0, FILL_ORDINARY, false},
    {"fp8_group128", "fp8_group128", 140, 70, 384, 0, BSMM_LAYOUT_COL_MAJOR, FILL_ORDINARY, false},
    {"fp8_group128", "fp8_block128", 140, 300, 384, BSMM_LAYOUT_COL_MAJOR, BSMM_LAYOUT_COL_MAJOR,
     FILL_ORDINARY, true},
    {"fp8_group128_fnuz", "fp8_block128_fnuz", 128, 256, 256, BSMM_LAYOUT_COL_MAJOR,
     BSMM_LAYOUT_COL_MAJOR, FILL_ORDINARY, true},
    {"fp8_group128_fnuz", "fp8_block128_fnuz", 140, 300, 384, BSMM_LAYOUT_COL_MAJOR, 0,
     FILL_ORDINARY, false},
    {"fp8_group128_fnuz", "fp8_group128_fnuz", 131, 67, 200, 0, 0, FILL_SPECIAL, true},
    {"fp8_group128", "fp8_block128", 131, 67, 200, 0, 0, FILL_SPECIAL, true},
    {"fp8_block128", "fp8_block128", 260, 140, 300, 0, 0, FILL_EXTREME, false},
};

/* Lists products for the tall tiles of gfx942. K is a multiple of 128. */
static const product_case tall_cases[] = {
    {"fp8_group128", "fp8_block128", 300, 200, 384, 0, 0, FILL_SPECIAL, false},
    {"fp8_group128", "fp8_block128", 132, 260, 256, BSMM_LAYOUT_COL_MAJOR, 0, FILL_SPECIAL, true},
    {"fp8_block128_fnuz", "fp8_block128_fnuz", 260, 140, 384, 0, 0, FILL_EXTREME, false},
    {"fp8_group128_fnuz", "fp8_block128_fnuz", 260, 132, 1152, 0, 0, FILL_SPECIAL, true},
};

/* Lists products for split-K, i.e. with K split into parts. The last part is often shorter, and K
 * is often no multiple of 128. */
static const product_case part_cases[] = {
    {"mxfp8", "mxfp8", 70, 130, 1384, 0, BSMM_LAYOUT_NV_128X4, FILL_ORDINARY, false},
    {"mxfp4", "mxfp4", 67, 20, 2080, 0, BSMM_LAYOUT_CDNA4_MFMA32, FILL_ORDINARY, false},
    {"mxfp8_e5m2", "mxfp8_e5m2", 3, 9, 1184, 0, 0, FILL_EXTREME, false},
    {"fp8_group128", "fp8_block128", 3, 9, 2100, 0, 0, FILL_SPECIAL, false},
    {"fp8_group128", "fp8_block128", 132, 130, 2176, BSMM_LAYOUT_COL_MAJOR, 0, FILL_ORDINARY, true},
    {"fp8_group128_fnuz", "fp8_block128_fnuz", 4, 5, 3080, 0, 0, FILL_SPECIAL, true},
    {"fp8_block128_fnuz", "fp8_block128_fnuz", 4, 4, 3072, 0, 0, FILL_EXTREME, false},
};

/* These products have several tiles of 256 x 256 results. In some of them, direct loads to LDS
 * cannot load an operand at all. In others they can load all of it but the last elements of K. */
static const product_case tile_cases[] = {
    {"mxfp8", "mxfp8", 520, 260, 640, 0, 0, FILL_ORDINARY, false},
    {"mxfp4", "mxfp4", 300, 770, 1536, 0, 0, FILL_ORDINARY, false},
    {"mxfp4", "mxfp4", 259, 12, 352, 0, 0, FILL_EXTREME, false},
    {"mxfp8", "mxfp8", 259, 12, 256, 0, 0, FILL_SPECIAL, false},
    {"mxfp8", "mxfp4", 257, 513, 512, 0, 0, FILL_ORDINARY, false},
    {"mxfp8_e5m2", "mxfp8_e5m2", 260, 260, 1184, BSMM_LAYOUT_NV_128X4, 0, FILL_ORDINARY, false},
    {"mxfp6_e2m3", "mxfp6_e2m3", 512, 300, 768, 0, 0, FILL_ORDINARY, false},
};

/* A workgroup that computes several tiles loads the first elements of its next tile before it
 * stores results. If the next tile has plain steps, the workgroup also prefetches operands of these
 * steps before it stores. With scales in the layout nv_128x4, or with few elements of K, there are
 * no plain steps. These products test both cases. Each product has whole tiles. Unless a comment
 * says otherwise, the fast path stores the results. */
static const product_case next_cases[] = {
    {"mxfp8", "mxfp8", 512, 256, 640, 0, BSMM_LAYOUT_NV_128X4, FILL_ORDINARY, false},
    {"mxfp8", "mxfp8", 256, 512, 640, BSMM_LAYOUT_NV_128X4, 0, FILL_ORDINARY, false},
    {"mxfp8", "mxfp8", 512, 256, 640, BSMM_LAYOUT_NV_128X4, BSMM_LAYOUT_NV_128X4, FILL_ORDINARY,
     false},
    {"mxfp8", "mxfp8", 512, 256, 128, 0, 0, FILL_ORDINARY, false},
    {"mxfp8", "mxfp8", 512, 256, 640, 0, 0, FILL_ORDINARY, false},
    /* Some waves load a group of scales a few steps later than other waves. In this product, the
     * last plain step (a step that loads its elements directly to LDS) lies between the two steps
     * in which waves load the last group of scales. */
    {"mxfp8", "mxfp8", 512, 256, 1008, 0, 0, FILL_ORDINARY, false},
    /* In this product, K has an odd number of steps (256 elements each). Most steps are plain
     * steps, i.e. they load elements directly to LDS and scales only by wide loads. The last steps
     * are not. */
    {"mxfp4", "mxfp4", 512, 256, 1792, 0, 0, FILL_ORDINARY, false},
    /* The last of eight steps has fewer than 256 elements of K. */
    {"mxfp4", "mxfp4", 512, 256, 2000, 0, 0, FILL_ORDINARY, false},
    /* In these products, all steps load their elements directly to LDS (plain steps). Each tile of
     * the first product has one pair of steps. The tiles of the other products have several
     * pairs. */
    {"mxfp4", "mxfp4", 512, 256, 512, 0, 0, FILL_ORDINARY, false},
    {"mxfp8", "mxfp4", 512, 256, 1024, 0, 0, FILL_ORDINARY, false},
    /* The wave stores results by the general epilogue, while the first stages of the next tile are
     * already in LDS. */
    {"mxfp4", "mxfp4", 512, 256, 1024, 0, 0, FILL_SPECIAL, false},
    {"mxfp6_e2m3", "mxfp6_e3m2", 512, 256, 1024, 0, 0, FILL_ORDINARY, false},
    {"mxfp4", "mxfp8", 512, 256, 1024, 0, 0, FILL_ORDINARY, false},
};

/* If both operands are mxfp4, a wave stores results of 16 bits in the first step of its next tile.
 * In the third of these products, the general epilogue stores the last tile, and in the fourth it
 * stores all tiles. The last product has no plain steps, so that every tile is stored at its
 * end. */
static const struct {
    product_case product;
    const char *d;
} late_cases[] = {
    {{"mxfp4", "mxfp4", 768, 256, 512, 0, 0, FILL_ORDINARY, false}, "bf16"},
    {{"mxfp4", "mxfp4", 256, 768, 1792, 0, 0, FILL_ORDINARY, false}, "f16"},
    {{"mxfp4", "mxfp4", 600, 256, 1024, 0, 0, FILL_ORDINARY, false}, "bf16"},
    {{"mxfp4", "mxfp4", 512, 256, 1024, 0, 0, FILL_SPECIAL, false}, "bf16"},
    {{"mxfp4", "mxfp4", 512, 256, 512, BSMM_LAYOUT_NV_128X4, 0, FILL_ORDINARY, false}, "bf16"},
};

static bsmm_matrix shape_of(const product_case *c, const char *format, int64_t rows,
                            uint32_t layout) {
    bsmm_matrix m = describe(format_named(format), rows, c->k);
    if (c->by_columns) m.order = BSMM_ORDER_COL;
    m.scale_layout = layout;
    return m;
}

/* `bits` is the number of bits of the significand of D's format, with the leading one. */
static void check_result(const double *a, const double *b, int64_t k, double got, double bound,
                         int bits) {
    double sum = 0, magnitude = 0;
    for (int64_t i = 0; i < k; i++)
        sum += a[i] * b[i], magnitude += fabs(a[i] * b[i]);
    const double exact = (bound + (double)k * 0x1p-53) * magnitude;
    const double most = exact + ldexp(bits == 24 ? magnitude : fabs(sum) + exact, -bits);
    if (bits == 11 && fabs(got) >= 65504 && fabs(sum) + most >= 65504) return;
    if (!(fabs(got - sum) <= most || (isnan(got) && isnan(sum)) || got == (double)(float)sum))
        fail_msg("got %a, want %a, at most %a off", got, sum, most);
}

static const char *const kernels[] = {"hip_gfx950_scaled", "hip_cdna_fp8"};

/* Returns true if the device exists and the kernel accepts the product on it. */
static bool is_taken(const bsmm_matmul_desc *desc) {
    bsmm_explanation e = BSMM_INIT(bsmm_explanation);
    for (uint32_t i = 0; bsmm_explain(desc, i, &e) == BSMM_OK; i++)
        if (strcmp(e.kernel, desc->kernel) == 0) return e.accepts;
    return false;
}

/* Runs the product, and returns the error bound that the kernel states. */
static double multiply(const bsmm_matmul_desc *desc) {
    bsmm_explanation e = BSMM_INIT(bsmm_explanation);
    if (test_multiply(desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    for (uint32_t i = 0; bsmm_explain(desc, i, &e) == BSMM_OK; i++)
        if (strcmp(e.kernel, desc->kernel) == 0) break;
    if (getenv("BSMM_TEST_MFMA_PARTS") && e.k_parts < 2)
        fail_msg("%s, %d rows, K = %d: %u parts of K", e.kernel, (int)desc->a->rows,
                 (int)desc->a->cols, e.k_parts);
    return e.bound;
}

/* Runs one product, whose D has the format `format`, by every MFMA kernel that accepts it. Returns
 * the number of these kernels. */
static int run_case(const product_case *c, const char *format, rng *r) {
    test_matrix a, b, d;
    int ran = 0;
    test_matrix_make(&a, shape_of(c, c->a, c->m, c->a_layout), c->how, r);
    test_matrix_make(&b, shape_of(c, c->b, c->n, c->b_layout), c->how, r);
    test_matrix_make(&d, describe(format_named(format), c->m, c->n), FILL_SPECIAL, r);
    const int bits = strcmp(format, "f32") == 0 ? 24 : strcmp(format, "f16") == 0 ? 11 : 8;
    double *x = test_matrix_values(&a), *y = test_matrix_values(&b);
    bsmm_matmul_desc desc = {.struct_size = sizeof desc, .a = &a.m, .b = &b.m, .d = &d.m};
    for (size_t i = 0; i < 2 * BSMM_COUNT(kernels); i++) {
        desc.device = i % 2 ? "sim:gfx950" : "sim:gfx942";
        desc.kernel = kernels[i / 2];
        if (!is_taken(&desc)) continue;
        memset(d.m.data, 0xa5, d.data_bytes);
        const double bound = multiply(&desc);
        double *results = test_matrix_values(&d);
        for (int64_t e = 0; e < c->m * c->n; e++)
            check_result(x + e / c->n * c->k, y + e % c->n * c->k, c->k, results[e], bound, bits);
        free(results);
        ran++;
    }
    free(x), free(y);
    test_matrix_free(&a), test_matrix_free(&b), test_matrix_free(&d);
    return ran;
}

/* Runs all products of a list. With BSMM_TEST_SAMPLE=n in the environment, runs every n-th of
 * them. */
static void run_all(const char *tile, const product_case *list, size_t count) {
    rng r = {7};
    int ran = 0;
    setenv("BSMM_TEST_MFMA", tile, 1);
    for (size_t i = 0; i < count; i += test_sample_step())
        ran += run_case(&list[i], "f32", &r);
    assert_true(ran >= 1);
    printf("%s tiles: %d products on simulators\n", tile, ran);
}

static void test_small_tiles(void **state) {
    (void)state;
    run_all("small", cases, BSMM_COUNT(cases));
}

static void test_large_tiles(void **state) {
    (void)state;
    run_all("large", cases, BSMM_COUNT(cases));
}

static void test_tall_tiles(void **state) {
    (void)state;
    run_all("tall", tall_cases, BSMM_COUNT(tall_cases));
}

/* Tests split-K with two to five parts of K, with all tile sizes. */
static void test_parts_of_k(void **state) {
    static const char *const tiles[] = {"small", "large", "tall"}, *const parts[] = {"2", "3", "5"};
    (void)state;
    for (size_t i = 0; i < BSMM_COUNT(tiles); i++) {
        setenv("BSMM_TEST_MFMA_PARTS", parts[i], 1);
        run_all(tiles[i], part_cases, BSMM_COUNT(part_cases));
    }
    unsetenv("BSMM_TEST_MFMA_PARTS");
}

/* Tests workgroups that compute several tiles, one after another. */
static void test_several_tiles(void **state) {
    static const char *const groups[] = {"1", "2"};
    (void)state;
    for (size_t i = 0; i < BSMM_COUNT(groups); i++) {
        setenv("BSMM_TEST_MFMA_GROUPS", groups[i], 1);
        run_all("large", tile_cases, BSMM_COUNT(tile_cases));
    }
    unsetenv("BSMM_TEST_MFMA_GROUPS");
}

/* Tests that the first loads of a workgroup's next tile have finished before the tile begins, with
 * and without prefetches after them. The simulator reports reads of LDS that a load has not yet
 * written. */
static void test_next_loads(void **state) {
    (void)state;
    setenv("BSMM_TEST_MFMA_GROUPS", "1", 1);
    for (size_t i = 0; i < BSMM_COUNT(next_cases); i += test_sample_step())
        run_all("large", &next_cases[i], 1);
    unsetenv("BSMM_TEST_MFMA_GROUPS");
}

/* Tests results of 16 bits, which a workgroup may store in the first step of its next tile. */
static void test_late_stores(void **state) {
    (void)state;
    rng r = {13};
    int ran = 0;
    setenv("BSMM_TEST_MFMA_GROUPS", "1", 1);
    setenv("BSMM_TEST_MFMA", "large", 1);
    for (size_t i = 0; i < BSMM_COUNT(late_cases); i += test_sample_step())
        ran += run_case(&late_cases[i].product, late_cases[i].d, &r);
    unsetenv("BSMM_TEST_MFMA_GROUPS");
    assert_true(ran >= 1);
}

/* Tests workgroups that compute several tiles, where some workgroups compute one tile fewer than
 * the others. The sizes are random, and every pair of element types occurs. In half of the products
 * all rows are aligned for direct loads to LDS. */
static void test_odd_rounds(void **state) {
    static const char *const formats[] = {"mxfp8", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2",
                                          "mxfp4"};
    /* Each row of the table has the numbers of 256 x 256 tiles down and across D, and the number of
     * workgroups. */
    static const struct {
        uint32_t down, across;
        const char *groups;
    } grids[] = {{3, 1, "2"}, {1, 3, "2"}, {2, 2, "3"}, {5, 1, "2"}, {1, 5, "3"}};
    enum { PAIRS = 25 };
    (void)state;
    rng r = {11};
    for (uint32_t i = 0; i < PAIRS; i += test_sample_step()) {
        const uint32_t grid = i < PAIRS - 3 ? i % 2 : 2 + i % 3, k = 128 * (1 + rng_below(&r, 5));
        const product_case c = {.a = formats[i / 5],
                                .b = formats[i % 5],
                                .m = 256 * grids[grid].down - rng_below(&r, 256),
                                .n = 256 * grids[grid].across - rng_below(&r, 256),
                                .k = k + (rng_below(&r, 2) ? 4 * rng_below(&r, 32) : 0),
                                .how = FILL_ORDINARY};
        setenv("BSMM_TEST_MFMA_GROUPS", grids[grid].groups, 1);
        run_all("large", &c, 1);
    }
    unsetenv("BSMM_TEST_MFMA_GROUPS");
}

/* Tests a product of 2^24 tiles with 256 threads each. It must be refused, because HIP does not
 * support so many threads along one dimension. */
static void test_largest_grid(void **state) {
    (void)state;
    const bsmm_format e2m1 = format_named("mxfp4"), e2m3 = format_named("mxfp6_e2m3");
    const bsmm_matrix a = {sizeof a, .format = e2m1, .rows = 1 << 18, .cols = 128};
    const bsmm_matrix b = {sizeof b, .format = e2m3, .rows = 1 << 18, .cols = 128};
    const bsmm_matrix below = {sizeof below, .format = e2m3, .rows = (1 << 18) - 64, .cols = 128};
    bsmm_matrix d = {sizeof d, .format = format_named("e4m3"), .rows = a.rows, .cols = b.rows};
    bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                             .a = &a,
                             .b = &b,
                             .d = &d,
                             .device = "sim:gfx950",
                             .kernel = "hip_gfx950_scaled"};
    assert_false(is_taken(&desc));
    desc.b = &below;
    d.cols = below.rows;
    bsmm_plan *plan;
    if (bsmm_plan_create(&desc, &plan) != BSMM_OK)
        skip(); /* The plan cannot be made if this machine has no simulator. */
    bsmm_plan_destroy(plan);
}

/* Tests that the schedule assigns every tile of D to exactly one workgroup. */
static void test_schedule(void **state) {
    (void)state;
    static const uint32_t shapes[][2] = {{1, 1}, {3, 5}, {8, 8}, {17, 3}, {9, 40}, {32, 32}};
    static bool seen[1024];
    for (size_t i = 0; i < BSMM_COUNT(shapes); i++) {
        const uint32_t rows = shapes[i][0], cols = shapes[i][1];
        memset(seen, 0, sizeof seen);
        for (uint32_t g = 0; g < rows * cols; g++) {
            const gemm_tile tile = gemm_tile_of(gemm_number(g, rows * cols), rows, cols);
            assert_true(tile.row < rows && tile.col < cols);
            assert_false(seen[tile.row * cols + tile.col]);
            seen[tile.row * cols + tile.col] = true;
        }
    }
}

/* If a wavefront reads 16 bytes per lane, LDS serves the lanes in several phases. Entry i of a
 * table is the phase in which lanes 4 i to 4 i + 3 are served. wide_phases[0] is for gfx942, and
 * wide_phases[1] is for gfx950. The source is lds_summary.md (source [2] of docs/SIMULATOR.md). */
static const uint32_t wide_phases[2][16] = {{0, 2, 4, 6, 2, 0, 6, 4, 1, 3, 5, 7, 3, 1, 7, 5},
                                            {0, 2, 2, 0, 2, 0, 0, 2, 1, 3, 3, 1, 3, 1, 1, 3}};

/* Returns the phase in which LDS serves a lane that reads `words` 32-bit words. If LDS has 64
 * banks, one phase serves all lanes that read a single word. */
static uint32_t phase_of(uint32_t banks, uint32_t words, uint32_t lane) {
    return words == 4 ? wide_phases[banks == 64][lane / 4] : lane / banks;
}

/* LDS serves the reads of a wave in several phases. Checks that the lanes of one phase read
 * different banks. Two reads of the same bank would take twice as long. */
static void check_banks(uint32_t type, uint32_t banks, uint32_t which, uint32_t word,
                        uint32_t words, uint32_t phase) {
    uint32_t taken[64] = {0};
    for (uint32_t lane = 0; lane < 64; lane++) {
        if (phase_of(banks, words, lane) != phase) continue;
        const uint32_t row = lane % 16, piece = gemm_piece_of(type, lane / 16, which);
        const uint32_t place = piece ^ gemm_swizzle_of(type, row, banks);
        const uint32_t at = row * gemm_row_bytes(type) + place * gemm_piece_bytes(type);
        assert_true(place * gemm_piece_bytes(type) < gemm_row_bytes(type));
        for (uint32_t w = word; w < word + words; w++)
            assert_int_equal(taken[(at / 4 + w) % banks]++, 0);
    }
}

static void test_banks(void **state) {
    (void)state;
    for (uint32_t type = 0; type <= GEMM_E2M1_TWICE; type++)
        for (uint32_t banks = 32; banks <= 64; banks += 32)
            for (uint32_t which = 0; which < 2; which++) {
                /* On gfx942, LDS has 32 banks, and the kernels multiply only 8-bit elements. */
                if (banks == 32 && gemm_bits(type) != 8) continue;
                for (uint32_t phase = 0; gemm_bits(type) != 6 && phase < 256 / banks; phase++)
                    check_banks(type, banks, which, 0, 4, phase);
                for (uint32_t word = 0; gemm_bits(type) == 6 && word < 3; word++)
                    check_banks(type, banks, which, word, 1, 0);
            }
}

/* Tests that the reads and writes of a tall tile cause no bank conflicts in LDS. LDS serves the
 * lanes of a read or write in phases, and the lanes of one phase must use different banks. A phase
 * of a write serves eight neighboring lanes. In column-major operands, these lanes hold pieces of
 * two rows whose numbers differ by four. In row-major operands they write neighboring bytes, which
 * never conflict, so the test leaves them out. */
static void test_tall_banks(void **state) {
    (void)state;
    for (uint32_t row = 0; row < 64; row++)
        assert_int_equal(tall_row_of_slot(tall_slot(row)), row);
    for (uint32_t phase = 0; phase < 8; phase++) {
        uint32_t read = 0, written = 0;
        for (uint32_t lane = 0; lane < 64; lane++) {
            const uint32_t r = lane % 16, w = lane / 4 * 4 + 1;
            const uint32_t from = tall_slot(r) * 4 + (lane / 16 ^ tall_swizzle(r));
            const uint32_t to = tall_slot(w) * 4 + (lane % 4 ^ tall_swizzle(w));
            if (phase_of(32, 4, lane) == phase) read |= 1u << from % 8;
            if (lane / 8 == phase) written |= 1u << to % 8;
        }
        assert_int_equal(read, 255);
        assert_int_equal(written, 255);
    }
}

/* Tests that the two functions that reorder rows are inverse to each other. */
static void test_row_order(void **state) {
    (void)state;
    for (uint32_t tiles = 1; tiles <= 4; tiles *= 2)
        for (uint32_t row = 0; row < 256; row++) {
            assert_int_equal(gemm_row_of(tiles, gemm_row_in_lds(tiles, row)), row);
            if (tiles == 1) assert_int_equal(gemm_row_of(tiles, row), row);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule),     cmocka_unit_test(test_banks),
        cmocka_unit_test(test_tall_banks),   cmocka_unit_test(test_row_order),
        cmocka_unit_test(test_largest_grid), cmocka_unit_test(test_small_tiles),
        cmocka_unit_test(test_large_tiles),  cmocka_unit_test(test_tall_tiles),
        cmocka_unit_test(test_parts_of_k),   cmocka_unit_test(test_several_tiles),
        cmocka_unit_test(test_late_stores),  cmocka_unit_test(test_next_loads),
        cmocka_unit_test(test_odd_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
