/* Tests the forms (formats) of packed weights. The form "compact" must be a permutation of B's
 * bytes with at most 3 % more bytes, and plans with any M and A must read it. If a field of a
 * header is damaged, the error must name this field. */
#include "core/describe.h"
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Names the offsets of the header's fields in bytes (docs/PACKING.md). */
enum { HEADER = 128, FORM = 8, VERSION = 16, GLOBAL_KIND = 20, DEVICE = 24, PANELS = 40 };
enum { FORMAT = 56, ROWS = 72, COLS = 80, GROUPS = 88, BYTES = 96, ZERO = 104 };

static void *aligned(uint64_t bytes) {
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

typedef struct fixture {
    test_matrix a, b, d;
    bsmm_matmul_desc desc;
    bsmm_plan *plan;
    uint8_t *packed;
    uint64_t bytes;
} fixture;

static void make_matrices(fixture *f, bsmm_format a, bsmm_matrix b, int64_t m, fill how, rng *r) {
    *f = (fixture){.plan = NULL};
    test_matrix_make(&f->a, describe(a, m, b.cols), how, r);
    test_matrix_make(&f->b, b, how, r);
    test_matrix_make(&f->d, describe(format_named("f32"), m, b.rows), FILL_ORDINARY, r);
    f->desc =
        (bsmm_matmul_desc){.struct_size = sizeof f->desc, .a = &f->a.m, .b = &f->b.m, .d = &f->d.m};
}

static bsmm_buffers buffers_of(const fixture *f) {
    return (bsmm_buffers){.struct_size = sizeof(bsmm_buffers),
                          .a = f->a.m.data,
                          .a_scales = f->a.m.scales,
                          .d = f->d.m.data,
                          .packed_b = f->packed,
                          .packed_b_bytes = f->bytes};
}

static void pack(fixture *f, uint32_t form) {
    f->desc.b_packed = form;
    if (bsmm_plan_create(&f->desc, &f->plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    f->bytes = bsmm_plan_packed_b_bytes(f->plan);
    f->packed = aligned(f->bytes);
    memset(f->packed, 0xa5, f->bytes);
    const bsmm_buffers b = {.struct_size = sizeof b,
                            .b = f->b.m.data,
                            .b_scales = f->b.m.scales,
                            .b_global = f->b.m.global_scale};
    if (bsmm_pack_b(f->plan, &b, f->packed, f->bytes) != BSMM_OK)
        fail_msg("%s", bsmm_error_message());
}

static void fixture_free(fixture *f) {
    bsmm_plan_destroy(f->plan);
    free(f->packed);
    test_matrix_free(&f->a);
    test_matrix_free(&f->b);
    test_matrix_free(&f->d);
}

/* Packs B in the form "wide", whose layout consists of a kernel's panels. Skips the test if no
 * kernel of this processor has panels. */
static void pack_or_skip(fixture *f) {
    bsmm_plan *plan;
    f->desc.b_packed = BSMM_PACKED_WIDE;
    if (bsmm_plan_create(&f->desc, &plan) != BSMM_OK) {
        fixture_free(f);
        skip();
    }
    bsmm_plan_destroy(plan);
    pack(f, BSMM_PACKED_WIDE);
}

static bsmm_status run(const fixture *f, const bsmm_plan *plan) {
    bsmm_buffers buffers = buffers_of(f);
    buffers.workspace_bytes = bsmm_plan_workspace_bytes(plan);
    buffers.workspace = aligned(buffers.workspace_bytes);
    bsmm_status status = bsmm_plan_run(plan, &buffers);
    free(buffers.workspace);
    return status;
}

static void test_table(void **state) {
    (void)state;
    bsmm_packed_form_info info = {.struct_size = sizeof info};
    for (uint32_t i = 0; i < BSMM_PACKED_COMPACT; i++) {
        assert_int_equal(bsmm_packed_form_at(i, &info), BSMM_OK);
        assert_int_equal(info.form, i + 1);
        assert_string_equal(info.name, i ? "compact" : "wide");
        assert_int_equal(info.version, 1);
    }
    assert_int_equal(bsmm_packed_form_at(BSMM_PACKED_COMPACT, &info), BSMM_E_NOT_FOUND);
}

/* Returns the number of bytes of B without gaps and padding. */
static uint64_t least_bytes(const bsmm_matrix *b) {
    const bsmm_matrix plain = describe(b->format, b->rows, b->cols);
    uint64_t data, scales = 0;
    assert_int_equal(bsmm_data_bytes(&plain, &data), BSMM_OK);
    if (b->format.scale) assert_int_equal(bsmm_scale_bytes(&plain, &scales), BSMM_OK);
    return data + scales;
}

static void check_unpacked(const fixture *f, rng *r) {
    test_matrix back;
    float global = 0;
    bsmm_matrix like = f->b.m;
    like.global_scale = NULL;
    test_matrix_make(&back, like, FILL_SPECIAL, r);
    back.m.global_scale = f->b.m.global_scale ? &global : NULL;
    if (bsmm_unpack_b(f->packed, f->bytes, 0, &back.m) != BSMM_OK)
        fail_msg("%s", bsmm_error_message());
    const bsmm_matrix *b = &f->b.m;
    bsmm_operand from, to;
    assert_int_equal(bsmm_operand_take(b, "b", &from), BSMM_OK);
    assert_int_equal(bsmm_operand_take(&back.m, "b", &to), BSMM_OK);
    for (int64_t row = 0; row < b->rows; row++)
        for (int64_t k = 0; k < b->cols; k++) {
            uint64_t at = bsmm_operand_index(&from, row, k);
            assert_int_equal(bsmm_elem_load(b->format.elem, b->data, at),
                             bsmm_elem_load(b->format.elem, back.m.data, at));
        }
    for (int64_t row = 0; row < from.map.rows; row++)
        for (int64_t c = 0; c < from.map.cols; c++) {
            uint64_t at = bsmm_scale_map_at(&from.map, row, c);
            assert_int_equal(bsmm_scale_load_code(b->format.scale, b->scales, at),
                             bsmm_scale_load_code(b->format.scale, back.m.scales, at));
        }
    if (b->global_scale) assert_memory_equal(&global, b->global_scale, sizeof global);
    back.m.global_scale = NULL;
    test_matrix_free(&back);
}

/* Checks every byte of the form "compact" without using the library. The form stores strips of 16
 * rows, and interleaves the rows of a strip in pieces of 4 bytes (3 bytes with 6-bit codes). The
 * last strip and the last piece may be shorter. */
static void check_places(const fixture *f) {
    const bsmm_matrix *b = &f->b.m;
    const uint8_t *at = f->packed + HEADER, *data = b->data;
    uint64_t line, piece = bsmm_elem_row(b->format.elem)->bits == 6 ? 3 : 4;
    assert_true(bsmm_elem_bytes(b->format.elem, (uint64_t)b->cols, &line));
    for (int64_t first = 0; first < b->rows; first += 16)
        for (uint64_t byte = 0; byte < line; byte += piece)
            for (int64_t r = first; r < b->rows && r < first + 16; r++) {
                uint64_t n = line - byte < piece ? line - byte : piece;
                if (byte + n < line) assert_memory_equal(at, data + (uint64_t)r * line + byte, n);
                at += n;
            }
}

static void check_compact(bsmm_matrix b, fill how, rng *r) {
    fixture f;
    make_matrices(&f, format_named("bf16"), b, 1, how, r);
    pack(&f, BSMM_PACKED_COMPACT);
    check_unpacked(&f, r);
    if (b.order == BSMM_ORDER_ROW && b.ld == 0) check_places(&f);
    uint64_t stored = least_bytes(&f.b.m), told;
    if (stored >= 65536 && b.rows >= 64) assert_true((double)f.bytes <= 1.03 * (double)stored);
    assert_int_equal(bsmm_packed_bytes(NULL, BSMM_PACKED_COMPACT, &f.b.m, 0, NULL, &told), BSMM_OK);
    assert_int_equal(told, f.bytes);
    fixture_free(&f);
}

static void test_compact_is_a_permutation(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{1, 32}, {7, 33},   {16, 64},    {17, 420}, {133, 95},
                                        {32, 2}, {500, 70}, {100, 1030}, {0, 64},   {5, 0}};
    rng r = {41};
    const format_list all = all_formats();
    for (size_t i = 0; i < all.count; i++)
        for (size_t j = 0; j < BSMM_COUNT(shapes); j++) {
            bsmm_matrix b = describe(format_named(all.names[i]), shapes[j][0], shapes[j][1]);
            check_compact(b, FILL_SPECIAL, &r);
            b.order = BSMM_ORDER_COL;
            check_compact(b, FILL_SPECIAL, &r);
        }
    bsmm_matrix b = describe(format_named("nvfp4"), 100, 352);
    b.ld = 400;
    b.scale_layout = BSMM_LAYOUT_NV_128X4;
    check_compact(b, FILL_SPECIAL, &r);
}

/* Tests that the form "compact" takes at most 1.03 times B's bytes, for every format and for sizes
 * of real weights. The test computes sizes only and allocates no memory. */
static void test_compact_is_small(void **state) {
    (void)state;
    static const int64_t rows[] = {64, 65, 257, 2880, 4096, 11008, 128256};
    const format_list all = all_formats();
    for (size_t i = 0; i < all.count; i++)
        for (size_t j = 0; j < BSMM_COUNT(rows); j++) {
            const bsmm_matrix b = describe(format_named(all.names[i]), rows[j], 4096);
            uint64_t bytes;
            assert_int_equal(bsmm_packed_bytes(NULL, BSMM_PACKED_COMPACT, &b, 0, NULL, &bytes),
                             BSMM_OK);
            if ((double)bytes > 1.03 * (double)least_bytes(&b))
                fail_msg("%s of %lld rows: %llu bytes", all.names[i], (long long)rows[j],
                         (unsigned long long)bytes);
        }
}

static void check_m(fixture *f, bsmm_format a, int64_t m, const char *kernel, rng *r) {
    fixture g;
    make_matrices(&g, a, describe(f->b.m.format, 1, f->b.m.cols), m, FILL_ORDINARY, r);
    test_matrix d;
    test_matrix_make(&d, describe(format_named("f32"), m, f->b.m.rows), FILL_ORDINARY, r);
    g.desc.b = &f->b.m, g.desc.d = &d.m, g.desc.kernel = kernel;
    if (bsmm_matmul(&g.desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    float *expected = malloc(d.data_bytes);
    memcpy(expected, d.m.data, d.data_bytes);
    memset(d.m.data, 0xa5, d.data_bytes);
    g.desc.b_packed = f->desc.b_packed;
    if (bsmm_plan_create(&g.desc, &g.plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    const fixture with = {.a = g.a, .d = d, .packed = f->packed, .bytes = f->bytes};
    if (run(&with, g.plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    if (memcmp(expected, d.m.data, d.data_bytes) != 0)
        fail_msg("%lld rows of %s by %s: other bits", (long long)m, bsmm_format_name(a),
                 bsmm_plan_kernel(g.plan));
    free(expected);
    test_matrix_free(&d);
    fixture_free(&g);
}

static void test_one_compact_b_for_all(void **state) {
    (void)state;
    static const char *const weights[] = {"mxfp4",        "nvfp4",      "mxfp8",
                                          "mxfp6_e2m3",   "mxfp6_e3m2", "fp8_block128",
                                          "fp8_group128", "bf16",       "f32"};
    static const char *const activations[] = {"mxfp4", "bf16", "fp8_group128", "f32"};
    static const int64_t rows[] = {1, 2, 4, 5, 16, 17, 33, 100};
    rng r = {42};
    for (size_t i = 0; i < BSMM_COUNT(weights); i++) {
        fixture f;
        make_matrices(&f, format_named("bf16"), describe(format_named(weights[i]), 83, 288), 3,
                      FILL_ORDINARY, &r);
        pack(&f, BSMM_PACKED_COMPACT);
        for (size_t a = 0; a < BSMM_COUNT(activations); a++)
            for (size_t j = 0; j < BSMM_COUNT(rows); j++)
                check_m(&f, format_named(activations[a]), rows[j], NULL, &r);
        check_m(&f, format_named("bf16"), 5, "ref", &r);
        check_m(&f, format_named("bf16"), 5, "cpu_f32", &r);
        fixture_free(&f);
    }
}

/* Tests the form "wide", which contains panels of a kernel. Two plans with different formats of A
 * may use panels of the same name. Their packed bytes must then be equal, and each plan must read
 * those of the other plan. */
static void test_wide_depends_on_panels(void **state) {
    (void)state;
    static const char *const activations[] = {"bf16",  "mxfp8",        "mxfp4",
                                              "nvfp4", "fp8_group128", "f32"};
    rng r = {43};
    fixture f[BSMM_COUNT(activations)];
    for (size_t i = 0; i < BSMM_COUNT(activations); i++) {
        rng same = {44};
        fixture *g = &f[i];
        make_matrices(g, format_named(activations[i]), describe(format_named("mxfp4"), 70, 256), 3,
                      FILL_ORDINARY, &r);
        test_matrix_free(&g->b);
        test_matrix_make(&g->b, describe(format_named("mxfp4"), 70, 256), FILL_EXTREME, &same);
        g->desc.b_packed = BSMM_PACKED_WIDE;
        bsmm_plan *plan;
        if (bsmm_plan_create(&g->desc, &plan) != BSMM_OK)
            skip(); /* No kernel for this processor has panels. */
        bsmm_plan_destroy(plan);
        pack(g, BSMM_PACKED_WIDE);
        uint64_t told;
        assert_int_equal(
            bsmm_packed_bytes("cpu", BSMM_PACKED_WIDE, &g->b.m, 0, &g->a.m.format, &told), BSMM_OK);
        assert_int_equal(told, g->bytes);
        check_unpacked(g, &r);
    }
    int alike = 0;
    for (size_t i = 0; i < BSMM_COUNT(f); i++)
        for (size_t j = 0; j < BSMM_COUNT(f); j++) {
            bool same = memcmp(f[i].packed + PANELS, f[j].packed + PANELS, 16) == 0;
            fixture mixed = f[j];
            mixed.packed = f[i].packed, mixed.bytes = f[i].bytes;
            if (same) assert_memory_equal(f[i].packed, f[j].packed, f[j].bytes);
            if (f[i].bytes >= f[j].bytes)
                assert_int_equal(run(&mixed, f[j].plan), same ? BSMM_OK : BSMM_E_INVALID);
            if (!same && f[i].bytes >= f[j].bytes)
                assert_non_null(strstr(bsmm_error_message(), "packed_b.panels: value is \""));
            alike += same && i != j;
        }
    assert_true(alike > 0);
    for (size_t i = 0; i < BSMM_COUNT(f); i++)
        fixture_free(&f[i]);
}

/* Runs a product with B packed in the panels that *info names, and again with B as it is stored.
 * The same kernel must compute the same bits. Returns false if no kernel reads such panels. */
static bool runs_with(const fixture *packed, const bsmm_packed_info *info, fixture *g) {
    bsmm_plan *plan;
    bsmm_packed_info own = {.struct_size = sizeof own};
    g->desc.b = &packed->b.m;
    g->desc.b_packed = BSMM_PACKED_WIDE;
    g->desc.b_panels = info->panels;
    if (bsmm_plan_create(&g->desc, &plan) != BSMM_OK) return false;
    assert_int_equal(bsmm_plan_packed_info(plan, &own), BSMM_OK);
    assert_memory_equal(&own, info, sizeof own);
    g->desc.kernel = bsmm_plan_kernel(plan);
    g->desc.b_packed = 0;
    g->desc.b_panels = NULL;
    assert_int_equal(bsmm_matmul(&g->desc), BSMM_OK);
    float *expected = malloc(g->d.data_bytes);
    memcpy(expected, g->d.m.data, g->d.data_bytes);
    memset(g->d.m.data, 0xa5, g->d.data_bytes);
    const fixture with = {.a = g->a, .d = g->d, .packed = packed->packed, .bytes = packed->bytes};
    if (run(&with, plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    assert_memory_equal(expected, g->d.m.data, g->d.data_bytes);
    free(expected);
    bsmm_plan_destroy(plan);
    g->desc.kernel = NULL;
    return true;
}

/* Tests that one B in the form "wide" serves several formats of A, if the caller requests its
 * panels by name. */
static void test_panels_by_name(void **state) {
    (void)state;
    static const char *const activations[] = {"bf16", "mxfp8", "mxfp4", "nvfp4", "fp8_group128"};
    rng r = {53};
    int others = 0;
    for (size_t i = 0; i < BSMM_COUNT(activations); i++) {
        fixture f;
        make_matrices(&f, format_named(activations[i]), describe(format_named("mxfp4"), 70, 256), 3,
                      FILL_ORDINARY, &r);
        pack_or_skip(&f);
        bsmm_packed_info info = {.struct_size = sizeof info}, theirs = info;
        assert_int_equal(bsmm_packed_describe(f.packed, f.bytes, &info), BSMM_OK);
        for (size_t j = 0; j < BSMM_COUNT(activations); j++) {
            fixture g;
            make_matrices(&g, format_named(activations[j]), describe(f.b.m.format, 70, 256), 33,
                          FILL_ORDINARY, &r);
            g.desc.b_packed = BSMM_PACKED_WIDE;
            bsmm_plan *plan;
            assert_int_equal(bsmm_plan_create(&g.desc, &plan), BSMM_OK);
            assert_int_equal(bsmm_plan_packed_info(plan, &theirs), BSMM_OK);
            bsmm_plan_destroy(plan);
            const bool same = strcmp(info.panels, theirs.panels) == 0;
            const bool runs = runs_with(&f, &info, &g);
            assert_true(runs || !same);
            others += runs && !same;
            fixture_free(&g);
        }
        fixture_free(&f);
    }
    print_message("%d products with other panels than their own\n", others);
    assert_true(others > 0);
}

static void test_panels_that_no_kernel_reads(void **state) {
    (void)state;
    rng r = {54};
    fixture f;
    make_matrices(&f, format_named("bf16"), describe(format_named("mxfp4"), 16, 64), 3,
                  FILL_ORDINARY, &r);
    pack_or_skip(&f);
    bsmm_plan *plan;
    f.desc.kernel = bsmm_plan_kernel(f.plan);
    f.desc.b_panels = "int7";
    assert_int_equal(bsmm_plan_create(&f.desc, &plan), BSMM_E_UNSUPPORTED);
    assert_non_null(strstr(bsmm_error_message(), "not int7 (b_panels)"));
    for (uint32_t form = BSMM_PACKED_NONE; form <= BSMM_PACKED_COMPACT; form += 2) {
        f.desc.b_packed = form;
        assert_int_equal(bsmm_plan_create(&f.desc, &plan), BSMM_E_INVALID);
        assert_non_null(strstr(bsmm_error_message(), "b_panels: value is \"int7\""));
    }
    fixture_free(&f);
}

static void test_global_scale_is_packed(void **state) {
    (void)state;
    rng r = {45};
    for (uint32_t form = BSMM_PACKED_WIDE; form <= BSMM_PACKED_COMPACT; form++)
        for (uint32_t kind = 0; kind < 2; kind++) {
            fixture f;
            make_matrices(&f, format_named("nvfp4"), describe(format_named("nvfp4"), 40, 128), 6,
                          FILL_ORDINARY, &r);
            float global = 3;
            f.b.m.global_scale = &global;
            f.b.m.global_kind = kind;
            assert_int_equal(bsmm_matmul(&f.desc), BSMM_OK);
            float *expected = malloc(f.d.data_bytes);
            memcpy(expected, f.d.m.data, f.d.data_bytes);
            f.desc.b_packed = form;
            bsmm_plan *plan;
            if (bsmm_plan_create(&f.desc, &plan) == BSMM_OK) {
                bsmm_plan_destroy(plan);
                pack(&f, form);
                memset(f.d.m.data, 0xa5, f.d.data_bytes);
                if (run(&f, f.plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
                assert_memory_equal(expected, f.d.m.data, f.d.data_bytes);
                bsmm_matrix back = f.b.m;
                back.global_scale = NULL;
                assert_int_equal(bsmm_unpack_b(f.packed, f.bytes, 0, &back), BSMM_E_INVALID);
                assert_non_null(strstr(bsmm_error_message(), "b.global_scale"));
                check_unpacked(&f, &r);
            }
            f.b.m.global_scale = NULL;
            free(expected);
            fixture_free(&f);
        }
}

static void check_stack(uint32_t form, rng *r) {
    enum { G = 3, ROWS_EACH = 20, K_EACH = 96 };
    const bsmm_group group = {.struct_size = sizeof group,
                              .kind = BSMM_GROUP_BATCH,
                              .count = G,
                              .a_step = BSMM_GROUP_SHARED};
    fixture f;
    make_matrices(&f, format_named("mxfp4"), describe(format_named("mxfp4"), G * ROWS_EACH, K_EACH),
                  3, FILL_ORDINARY, r);
    f.b.m.rows = ROWS_EACH, f.b.m.data_bytes = f.b.m.scale_bytes = 0;
    f.d.m.cols = ROWS_EACH, f.d.m.data_bytes = 0;
    f.desc.group = &group, f.desc.b_packed = form;
    bsmm_plan *plan;
    if (bsmm_plan_create(&f.desc, &plan) == BSMM_OK) {
        bsmm_plan_destroy(plan);
        pack(&f, form);
        uint64_t told;
        assert_int_equal(bsmm_packed_bytes("cpu", form, &f.b.m, G, &f.a.m.format, &told), BSMM_OK);
        assert_int_equal(told, f.bytes);
        uint8_t data[ROWS_EACH * K_EACH / 2], scales[ROWS_EACH * K_EACH / 32];
        bsmm_matrix back = f.b.m;
        back.data = data, back.scales = scales;
        for (int64_t g = 0; g < G; g++) {
            assert_int_equal(bsmm_unpack_b(f.packed, f.bytes, g, &back), BSMM_OK);
            assert_memory_equal(data, (uint8_t *)f.b.m.data + (size_t)g * sizeof data, sizeof data);
            assert_memory_equal(scales, (uint8_t *)f.b.m.scales + (size_t)g * sizeof scales,
                                sizeof scales);
        }
        assert_int_equal(bsmm_unpack_b(f.packed, f.bytes, G, &back), BSMM_E_INVALID);
        assert_non_null(strstr(bsmm_error_message(), "index: value is 3; must be 0 to 2"));
        assert_int_equal(run(&f, f.plan), BSMM_OK);
    }
    fixture_free(&f);
}

static void test_stacks(void **state) {
    (void)state;
    rng r = {50};
    check_stack(BSMM_PACKED_WIDE, &r);
    check_stack(BSMM_PACKED_COMPACT, &r);
}

static void expect_named(const fixture *f, const char *text) {
    assert_int_equal(run(f, f->plan), BSMM_E_INVALID);
    if (!strstr(bsmm_error_message(), text))
        fail_msg("\"%s\" does not say \"%s\"", bsmm_error_message(), text);
}

static void put(fixture *f, int at, const char *text, size_t size) {
    memset(f->packed + at, 0, size);
    memcpy(f->packed + at, text, strlen(text));
}

static void test_header_fields(void **state) {
    (void)state;
    static const struct {
        int at;
        const char *name;
    } numbers[] = {{VERSION, "version: value is 76; must be 1"},
                   {GLOBAL_KIND, "global_kind: value is 77; must be 0"},
                   {FORMAT, "format.elem"},
                   {FORMAT + 4, "format.scale: value is 76; must be 1"},
                   {FORMAT + 8, "format.block_rows: value is 76; must be 1"},
                   {FORMAT + 12, "format.block_cols"},
                   {ROWS, "rows"},
                   {COLS, "cols"},
                   {GROUPS, "groups: value is 77; must be 0"},
                   {BYTES, "bytes"},
                   {ZERO, "zero"}};
    rng r = {46};
    fixture f;
    make_matrices(&f, format_named("mxfp4"), describe(format_named("mxfp4"), 40, 64), 3,
                  FILL_ORDINARY, &r);
    pack(&f, BSMM_PACKED_COMPACT);
    uint8_t whole[HEADER];
    memcpy(whole, f.packed, HEADER);
    assert_int_equal(run(&f, f.plan), BSMM_OK);
    for (size_t i = 0; i < BSMM_COUNT(numbers); i++) {
        char text[80];
        snprintf(text, sizeof text, "packed_b.%s", numbers[i].name);
        f.packed[numbers[i].at] ^= 77;
        expect_named(&f, text);
        memcpy(f.packed, whole, HEADER);
    }
    put(&f, FORM, "wide", 8);
    expect_named(&f, "packed_b.form: value is \"wide\"; must be \"compact\"");
    memcpy(f.packed, whole, HEADER);
    put(&f, DEVICE, "cuda", 16);
    expect_named(&f, "packed_b.device: value is \"cuda\"; must be \"cpu\"");
    memcpy(f.packed, whole, HEADER);
    put(&f, PANELS, "int8\n", 16);
    expect_named(&f, "packed_b.panels: value is \"int8?\"; must be \"\"");
    put(&f, 0, "bsmmpb1", 8);
    expect_named(&f, "packed_b.magic: value is \"bsmmpb1\", of a library before forms had names");
    put(&f, 0, "GGUF", 8);
    expect_named(&f, "packed_b.magic: value is \"GGUF\"; must be \"bsmmpb2\"");
    memcpy(f.packed, whole, HEADER);
    assert_int_equal(run(&f, f.plan), BSMM_OK);
    for (int i = 0; i < 8 * HEADER; i++) { /* The loop changes each bit of the header in turn. */
        f.packed[i / 8] ^= (uint8_t)(1 << i % 8);
        expect_named(&f, "packed_b.");
        f.packed[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    fixture_free(&f);
}

static void expect_info(const fixture *f, uint64_t bytes, bsmm_status status, const char *text) {
    bsmm_packed_info info = {.struct_size = sizeof info};
    assert_int_equal(bsmm_packed_describe(f->packed, bytes, &info), status);
    if (status && !strstr(bsmm_error_message(), text))
        fail_msg("\"%s\" does not say \"%s\"", bsmm_error_message(), text);
}

static void test_describe(void **state) {
    (void)state;
    rng r = {47};
    fixture f;
    make_matrices(&f, format_named("bf16"), describe(format_named("mxfp8"), 21, 96), 3,
                  FILL_ORDINARY, &r);
    pack(&f, BSMM_PACKED_COMPACT);
    bsmm_packed_info info = {.struct_size = sizeof info};
    assert_int_equal(bsmm_packed_describe(f.packed, f.bytes, &info), BSMM_OK);
    assert_int_equal(info.form, BSMM_PACKED_COMPACT);
    assert_int_equal(info.version, 1);
    assert_string_equal(info.device, "cpu");
    assert_string_equal(info.panels, "");
    assert_true(bsmm_format_equal(info.format, f.b.m.format));
    assert_true(info.rows == 21 && info.cols == 96 && info.groups == 0 && info.bytes == f.bytes);
    expect_info(&f, f.bytes - 1, BSMM_E_INVALID, "packed_b_bytes: value is");
    expect_info(&f, HEADER - 1, BSMM_E_INVALID, "packed_b_bytes: value is 127");
    f.packed[VERSION] = 9;
    expect_info(&f, f.bytes, BSMM_E_INVALID, "packed_b.version: value is 9; must be 1");
    f.packed[VERSION] = 1;
    put(&f, FORM, "narrow", 8);
    expect_info(&f, f.bytes, BSMM_E_INVALID, "packed_b.form: value is \"narrow\"");
    put(&f, FORM, "compact", 8);
    put(&f, 0, "bsmmpb1", 8);
    expect_info(&f, f.bytes, BSMM_E_INVALID, "bsmmpb1");
    put(&f, 0, "bsmmpb2", 8);
    expect_info(&f, f.bytes, BSMM_OK, "");
    fixture_free(&f);
}

/* Tests bsmm_unpack_b with random headers. It must not read past the end of the packed bytes. */
static void test_unpack_of_any_header(void **state) {
    (void)state;
    rng r = {48};
    fixture f;
    make_matrices(&f, format_named("bf16"), describe(format_named("mxfp4"), 21, 96), 3,
                  FILL_ORDINARY, &r);
    pack(&f, BSMM_PACKED_COMPACT);
    uint8_t *tight = guarded_alloc(f.bytes);
    for (int i = 0; i < 4096; i++) {
        memcpy(tight, f.packed, f.bytes);
        int at = VERSION + (int)rng_below(&r, HEADER - VERSION);
        tight[at] = (uint8_t)rng_next(&r);
        bsmm_packed_info info = {.struct_size = sizeof info};
        if (bsmm_packed_describe(tight, f.bytes, &info) != BSMM_OK || info.bytes != f.bytes)
            continue;
        bsmm_matrix b = describe(info.format, info.rows, info.cols);
        b.global_kind = info.global_kind;
        uint64_t data, scales = 0;
        if (bsmm_data_bytes(&b, &data) || (b.format.scale && bsmm_scale_bytes(&b, &scales)))
            continue;
        if (data > 1 << 20 || scales > 1 << 20) continue;
        float global;
        b.data = aligned(data + 64), b.scales = aligned(scales + 64), b.global_scale = &global;
        (void)bsmm_unpack_b(tight, f.bytes, info.groups ? info.groups - 1 : 0, &b);
        free(b.data);
        free(b.scales);
    }
    guarded_free(tight, f.bytes);
    fixture_free(&f);
}

/* Makes a B that is zero except for one element. Its block has the scale 2^100. */
static void make_lone_element(test_matrix *b) {
    memset(b->m.data, 0, b->data_bytes);
    memset(b->m.scales, 127, b->scale_bytes);
    bsmm_elem_store(b->m.format.elem, b->m.data, 3 * (uint64_t)b->m.cols + 20,
                    bsmm_elem_encode(b->m.format.elem, 1, true));
    ((uint8_t *)b->m.scales)[3 * b->m.cols / 32] = 127 + 100;
}

/* Tests compact packed weights with a block scale of 2^100, which is beyond the range of some
 * kernels. A kernel may replace the scale of a block of zeros, but this block contains one element
 * that is not zero. */
static void test_unusual_scales(void **state) {
    (void)state;
    static const char *const formats[] = {"mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8"};
    rng r = {51};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (uint32_t k = 0; bsmm_kernel_at(k); k++) {
            fixture f;
            bsmm_explanation e = {.struct_size = sizeof e};
            bsmm_format format = format_named(formats[i]);
            make_matrices(&f, format, describe(format, 16, 64), 2, FILL_ORDINARY, &r);
            make_lone_element(&f.b);
            f.desc.b_packed = BSMM_PACKED_COMPACT;
            assert_int_equal(bsmm_explain(&f.desc, k, &e), BSMM_OK);
            if (e.accepts) {
                f.desc.kernel = bsmm_kernel_at(k)->name;
                f.desc.b_packed = BSMM_PACKED_NONE;
                assert_int_equal(bsmm_matmul(&f.desc), BSMM_OK);
                float want = ((float *)f.d.m.data)[3];
                pack(&f, BSMM_PACKED_COMPACT);
                assert_int_equal(run(&f, f.plan), BSMM_OK);
                if (memcmp(&want, (float *)f.d.m.data + 3, sizeof want) != 0)
                    fail_msg("%s, %s: %g, not %g", formats[i], f.desc.kernel,
                             (double)((float *)f.d.m.data)[3], (double)want);
            }
            fixture_free(&f);
        }
}

static void test_refusals(void **state) {
    (void)state;
    const bsmm_matrix b = describe(format_named("mxfp4"), 16, 64);
    uint64_t bytes;
    assert_int_equal(bsmm_packed_bytes(NULL, 3, &b, 0, NULL, &bytes), BSMM_E_INVALID);
    assert_int_equal(bsmm_packed_bytes(NULL, BSMM_PACKED_WIDE, &b, 0, NULL, &bytes),
                     BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "a: value is NULL"));
    assert_int_equal(bsmm_packed_bytes(NULL, BSMM_PACKED_COMPACT, &b, -1, NULL, &bytes),
                     BSMM_E_INVALID);
    assert_int_equal(bsmm_packed_bytes(NULL, BSMM_PACKED_COMPACT, &b, 0, NULL, NULL),
                     BSMM_E_INVALID);
    assert_int_equal(bsmm_unpack_b(NULL, 128, 0, &b), BSMM_E_INVALID);
    rng r = {49};
    fixture f;
    make_matrices(&f, format_named("bf16"), b, 3, FILL_ORDINARY, &r);
    f.desc.b_packed = BSMM_PACKED_COMPACT;
    assert_int_equal(bsmm_matmul(&f.desc), BSMM_E_INVALID);
    f.desc.b_packed = BSMM_PACKED_COMPACT + 1;
    assert_int_equal(bsmm_plan_create(&f.desc, &f.plan), BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "b_packed: value is 3"));
    fixture_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_compact_is_a_permutation),
        cmocka_unit_test(test_compact_is_small),
        cmocka_unit_test(test_one_compact_b_for_all),
        cmocka_unit_test(test_wide_depends_on_panels),
        cmocka_unit_test(test_panels_by_name),
        cmocka_unit_test(test_panels_that_no_kernel_reads),
        cmocka_unit_test(test_global_scale_is_packed),
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_header_fields),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_unpack_of_any_header),
        cmocka_unit_test(test_unusual_scales),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
