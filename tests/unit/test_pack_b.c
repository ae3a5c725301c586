/* Tests packed weights. Every kernel that packs B must give bitwise identical results with packed
 * and with unpacked weights, for any M. The packed bytes must not depend on the number of threads.
 * A plan must refuse packed weights whose header is not the one that it expects. */
#include "operand.h"
#include "sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    N = 133,
    K = 420,
    MOST = 40,
    HEADER = 128 /* HEADER is the number of bytes before the packed matrix. */
};

static const char *const pairs[][2] = {
    {"mxfp4", "mxfp4"},      {"mxfp6_e2m3", "mxfp4"}, {"nvfp4", "nvfp4"},
    {"mxfp8", "mxfp4"},      {"bf16", "nvfp4"},       {"fp8_group128", "fp8_block128"},
    {"mxfp8", "mxfp8"},      {"f32", "mxfp4"},        {"mxfp8", "mxfp6_e2m3"},
    {"mxfp4", "mxfp6_e2m3"},
};

typedef struct fixture {
    test_matrix a, b, d;
    bsmm_matmul_desc desc;
} fixture;

static void fixture_make_long(fixture *f, const char *const pair[2], int64_t m, int64_t k, fill how,
                              rng *r) {
    test_matrix_make(&f->a, describe(format_named(pair[0]), m, k), how, r);
    test_matrix_make(&f->b, describe(format_named(pair[1]), N, k), how, r);
    test_matrix_make(&f->d, describe(format_named("f32"), m, N), FILL_ORDINARY, r);
    f->desc =
        (bsmm_matmul_desc){.struct_size = sizeof f->desc, .a = &f->a.m, .b = &f->b.m, .d = &f->d.m};
}

static void fixture_make(fixture *f, const char *const pair[2], int64_t m, fill how, rng *r) {
    fixture_make_long(f, pair, m, K, how, r);
}

static void fixture_free(fixture *f) {
    test_matrix_free(&f->a);
    test_matrix_free(&f->b);
    test_matrix_free(&f->d);
}

static void *aligned(uint64_t bytes) {
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static bsmm_buffers buffers_of(fixture *f) {
    return (bsmm_buffers){.struct_size = sizeof(bsmm_buffers),
                          .a = f->a.m.data,
                          .a_scales = f->a.m.scales,
                          .b = f->b.m.data,
                          .b_scales = f->b.m.scales,
                          .d = f->d.m.data};
}

/* Packs B into memory whose bytes are `old` before. */
static void *pack_over(fixture *f, const bsmm_plan *plan, uint8_t old, uint64_t *bytes) {
    *bytes = bsmm_plan_packed_b_bytes(plan);
    void *packed = aligned(*bytes);
    memset(packed, old, *bytes);
    bsmm_buffers buffers = {
        .struct_size = sizeof buffers, .b = f->b.m.data, .b_scales = f->b.m.scales};
    assert_int_equal(bsmm_pack_b(plan, &buffers, packed, *bytes), BSMM_OK);
    return packed;
}

static bsmm_status run(const bsmm_plan *plan, bsmm_buffers buffers) {
    buffers.workspace_bytes = bsmm_plan_workspace_bytes(plan);
    buffers.workspace = aligned(buffers.workspace_bytes);
    bsmm_status status = bsmm_plan_run(plan, &buffers);
    free(buffers.workspace);
    return status;
}

static void *pack(fixture *f, const bsmm_plan *plan, uint64_t *bytes) {
    return pack_over(f, plan, 0xa5, bytes);
}

/* Compares the results of the kernel in `desc` with unpacked and with packed weights. The run with
 * packed weights gets no pointer to B. */
static void check_same_bits(fixture *f, uint32_t form) {
    bsmm_plan *plan;
    assert_int_equal(bsmm_plan_create(&f->desc, &plan), BSMM_OK);
    assert_int_equal(run(plan, buffers_of(f)), BSMM_OK);
    uint64_t with_room = bsmm_plan_workspace_bytes(plan);
    bsmm_plan_destroy(plan);
    float *unpacked = malloc(f->d.data_bytes);
    memcpy(unpacked, f->d.m.data, f->d.data_bytes);

    f->desc.b_packed = form;
    assert_int_equal(bsmm_plan_create(&f->desc, &plan), BSMM_OK);
    if (form == BSMM_PACKED_WIDE) assert_true(bsmm_plan_workspace_bytes(plan) < with_room);
    bsmm_buffers buffers = buffers_of(f);
    void *packed = pack(f, plan, &buffers.packed_b_bytes);
    buffers.packed_b = packed;
    buffers.b = buffers.b_scales = NULL;
    memset(f->d.m.data, 0xa5, f->d.data_bytes);
    assert_int_equal(run(plan, buffers), BSMM_OK);
    if (memcmp(unpacked, f->d.m.data, f->d.data_bytes) != 0)
        fail_msg("form %u, %s, %s x %s, %lld rows: other bits", form, f->desc.kernel,
                 bsmm_format_name(f->a.m.format), bsmm_format_name(f->b.m.format),
                 (long long)f->a.m.rows);
    bsmm_plan_destroy(plan);
    f->desc.b_packed = 0;
    free(unpacked);
    free(packed);
}

static int check_every_kernel(fixture *f, uint32_t form) {
    int packing = 0;
    bsmm_explanation e = {.struct_size = sizeof e};
    for (uint32_t i = 0;; i++) {
        f->desc.b_packed = form;
        if (bsmm_explain(&f->desc, i, &e) != BSMM_OK) break;
        f->desc.b_packed = 0;
        if (!e.accepts) continue;
        f->desc.kernel = e.kernel;
        check_same_bits(f, form);
        packing++;
    }
    f->desc.b_packed = 0;
    f->desc.kernel = NULL;
    return packing;
}

static void test_packed_gives_the_same_bits(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 7, 31};
    rng r = {31};
    int packing = 0;
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        for (size_t j = 0; j < BSMM_COUNT(rows); j++)
            for (fill how = FILL_ORDINARY; how <= FILL_SPECIAL; how++) {
                if (!test_takes_next()) continue;
                fixture f;
                fixture_make(&f, pairs[i], rows[j], how, &r);
                packing += check_every_kernel(&f, BSMM_PACKED_WIDE);
                assert_true(check_every_kernel(&f, BSMM_PACKED_COMPACT) >= 2);
                fixture_free(&f);
            }
    if (packing == 0) print_message("no kernel of this processor packs B\n");
}

/* Tests packed weights of form compact, in which pieces of 16 rows are interleaved, with a long K.
 * The kernels for few rows of A copy a row of such weights in several chunks, the last of which is
 * incomplete. */
static void test_compact_of_long_rows(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 2, 3, 6, 16};
    rng r = {35};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        for (size_t j = 0; j < BSMM_COUNT(rows); j++)
            for (int64_t k = 4500; k < 4504; k += 3) {
                if (!test_takes_next()) continue;
                fixture f;
                fixture_make_long(&f, pairs[i], rows[j], k, FILL_ORDINARY, &r);
                check_every_kernel(&f, BSMM_PACKED_COMPACT);
                fixture_free(&f);
            }
}

/* Returns a plan with packed weights for the first pair of formats that allows it, or NULL if no
 * kernel packs B. */
static bsmm_plan *any_packing_plan(fixture *f, int64_t m, uint32_t threads, rng *r) {
    bsmm_plan *plan = NULL;
    for (size_t i = 0; i < BSMM_COUNT(pairs) && !plan; i++) {
        fixture_make(f, pairs[i], m, FILL_ORDINARY, r);
        f->desc.b_packed = 1;
        f->desc.threads = threads;
        if (bsmm_plan_create(&f->desc, &plan) != BSMM_OK) fixture_free(f);
    }
    return plan;
}

static void test_bytes_depend_on_b_alone(void **state) {
    (void)state;
    rng r = {32};
    fixture f;
    bsmm_plan *plan = any_packing_plan(&f, 5, 1, &r);
    if (!plan) skip();
    uint64_t bytes, again_bytes;
    void *packed = pack(&f, plan, &bytes);
    bsmm_plan_destroy(plan);
    test_matrix a = f.a, d = f.d;
    test_matrix_make(&f.a, describe(a.m.format, MOST, K), FILL_ORDINARY, &r);
    test_matrix_make(&f.d, describe(d.m.format, MOST, N), FILL_ORDINARY, &r);
    f.desc.threads = 3;
    assert_int_equal(bsmm_plan_create(&f.desc, &plan), BSMM_OK);
    void *again = pack(&f, plan, &again_bytes);
    assert_int_equal(bytes, again_bytes);
    assert_memory_equal(packed, again, bytes);
    bsmm_plan_destroy(plan);
    free(packed);
    free(again);
    test_matrix_free(&a);
    test_matrix_free(&d);
    fixture_free(&f);
}

/* Tests that packing writes every byte, also those between the arrays of codes and scales. The
 * packed bytes must not depend on the old contents of the memory. */
static void test_bytes_do_not_depend_on_memory(void **state) {
    (void)state;
    rng r = {36};
    int packing = 0;
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        for (uint32_t form = BSMM_PACKED_WIDE; form <= BSMM_PACKED_COMPACT; form++) {
            fixture f;
            bsmm_plan *plan;
            fixture_make(&f, pairs[i], 5, FILL_ORDINARY, &r);
            f.desc.b_packed = form;
            if (bsmm_plan_create(&f.desc, &plan) == BSMM_OK) {
                uint64_t bytes;
                void *packed = pack_over(&f, plan, 0, &bytes);
                void *again = pack_over(&f, plan, 0xff, &bytes);
                assert_memory_equal(packed, again, bytes);
                bsmm_plan_destroy(plan);
                free(packed);
                free(again);
                packing++;
            }
            fixture_free(&f);
        }
    assert_true(packing >= (int)BSMM_COUNT(pairs)); /* Every pair can be packed in form compact. */
}

/* Writes the bytes of `packed` to a file and frees them. Returns a read-only mapping of the
 * file. */
static void *map_through_file(void *packed, uint64_t bytes) {
    char path[] = "/tmp/bsmm-test-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    unlink(path);
    assert_int_equal(write(file, packed, bytes), (ssize_t)bytes);
    memset(packed, 0xa5, bytes);
    free(packed);
    void *mapped = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    assert_true(mapped != MAP_FAILED);
    close(file);
    return mapped;
}

/* Tests packed weights in a file. One plan packs them, and a plan with another M uses the mapped
 * file. */
static void test_mapped_from_a_file(void **state) {
    (void)state;
    rng r = {34};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++) {
        fixture f;
        bsmm_plan *plan;
        fixture_make(&f, pairs[i], MOST, FILL_EXTREME, &r);
        assert_int_equal(bsmm_matmul(&f.desc), BSMM_OK);
        float *expected = malloc(f.d.data_bytes);
        memcpy(expected, f.d.m.data, f.d.data_bytes);
        f.desc.b_packed = 1;
        f.a.m.rows = f.d.m.rows = 1;
        if (bsmm_plan_create(&f.desc, &plan) == BSMM_OK) {
            bsmm_buffers buffers = buffers_of(&f);
            void *packed = pack(&f, plan, &buffers.packed_b_bytes);
            bsmm_plan_destroy(plan);
            void *mapped = map_through_file(packed, buffers.packed_b_bytes);
            buffers.packed_b = mapped;
            f.a.m.rows = f.d.m.rows = MOST;
            f.a.m.data_bytes = f.a.m.scale_bytes = f.d.m.data_bytes = 0;
            assert_int_equal(bsmm_plan_create(&f.desc, &plan), BSMM_OK);
            memset(f.d.m.data, 0xa5, f.d.data_bytes);
            if (run(plan, buffers) != BSMM_OK) fail_msg("%s", bsmm_error_message());
            assert_memory_equal(expected, f.d.m.data, f.d.data_bytes);
            bsmm_plan_destroy(plan);
            munmap(mapped, buffers.packed_b_bytes);
        }
        free(expected);
        fixture_free(&f);
    }
}

static void test_refusals(void **state) {
    (void)state;
    rng r = {33};
    fixture f;
    bsmm_plan *plan = any_packing_plan(&f, 3, 1, &r);
    if (!plan) skip();
    bsmm_buffers buffers = buffers_of(&f);
    /* The run must fail, because its buffers lack packed_b. */
    assert_int_equal(run(plan, buffers), BSMM_E_INVALID);
    uint8_t *packed = pack(&f, plan, &buffers.packed_b_bytes);
    buffers.packed_b = packed;
    assert_int_equal(run(plan, buffers), BSMM_OK);
    for (int i = 0; i < HEADER; i++) {
        packed[i] ^= 1;
        assert_int_equal(run(plan, buffers), BSMM_E_INVALID);
        assert_non_null(strstr(bsmm_error_message(), "packed_b"));
        packed[i] ^= 1;
    }
    buffers.packed_b_bytes--;
    assert_int_equal(run(plan, buffers), BSMM_E_INVALID);
    buffers.packed_b_bytes++;
    buffers.packed_b = packed + 4;
    assert_int_equal(run(plan, buffers), BSMM_E_INVALID);
    buffers.packed_b = packed;
    bsmm_plan *plain;
    f.desc.b_packed = 0;
    assert_int_equal(bsmm_plan_create(&f.desc, &plain), BSMM_OK);
    /* The run must fail, because its buffers have packed_b although the description of the plan has
     * no b_packed. */
    assert_int_equal(run(plain, buffers), BSMM_E_INVALID);
    f.desc.b_packed = 1;
    assert_int_equal(bsmm_matmul(&f.desc), BSMM_E_INVALID);
    f.desc.kernel = "ref";
    bsmm_plan *none;
    assert_int_equal(bsmm_plan_create(&f.desc, &none), BSMM_E_UNSUPPORTED);
    f.desc.b_packed = BSMM_PACKED_COMPACT + 1;
    assert_int_equal(bsmm_plan_create(&f.desc, &none), BSMM_E_INVALID);
    assert_int_equal(bsmm_plan_packed_b_bytes(NULL), 0);
    assert_int_equal(bsmm_pack_b(NULL, &buffers, packed, 1), BSMM_E_INVALID);
    bsmm_plan_destroy(plan);
    bsmm_plan_destroy(plain);
    free(packed);
    fixture_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed_gives_the_same_bits),
        cmocka_unit_test(test_compact_of_long_rows),
        cmocka_unit_test(test_bytes_depend_on_b_alone),
        cmocka_unit_test(test_bytes_do_not_depend_on_memory),
        cmocka_unit_test(test_mapped_from_a_file),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
