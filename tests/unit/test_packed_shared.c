/* Tests that weights that were packed in form wide for one plan on a GPU can be used by other plans
 * with the same formats of A and B, even if these have a C or a column-major A and the first one
 * has not. All such plans must pack the same bytes. A run with weights that another plan has packed
 * must give the bits that the same kernel computes from B as it is stored. The test is important
 * because host code cannot check packed weights in device memory: with weights of another layout, a
 * run would give wrong results without an error. */
#include "gpu.h"
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { M = 130, N = 40, K = 128, CHANGES = 4 };

static const char *const pairs[][2] = {
    {"f16", "mxfp4"}, {"f16", "mxfp8"},   {"f16", "f16"},
    {"f32", "f32"},   {"bf16", "bf16"},   {"rows", "rows"},
    {"bf16", "rows"}, {"mxfp4", "mxfp4"}, {"bf16", "fp8_block128"},
};

/* Returns a format by its name. "rows" is e4m3 with one fp32 scale for each row. */
static bsmm_format find_format(const char *name) {
    if (strcmp(name, "rows") == 0) return (bsmm_format){BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, K};
    return format_named(name);
}

/* Holds a product on a GPU: the matrices in host memory, and their copies in device memory. The
 * tests run the product in several variants. The number of a variant has two bits: bit 0 is 1 if
 * the product adds a C, and bit 1 is 1 if A is column-major. */
typedef struct fixture {
    const char *device;
    test_matrix a[2], b, c, d;
    float beta;
    bsmm_buffers there[2];
    void *d_there;
} fixture;

static void *send(const fixture *f, const void *from, uint64_t bytes) {
    return from && bytes ? test_gpu_new(f->device, from, bytes) : NULL;
}

/* Changes e8m0 scales to powers of two from 2^-3 to 1. f16 then holds all values, so that packing
 * to f16 succeeds. */
static void limit_scales(test_matrix *b) {
    enum { ONE = 127 };
    uint8_t *const codes = b->m.scales;
    if (b->m.format.scale != BSMM_SCALE_E8M0) return;
    for (uint64_t i = 0; i < b->scale_bytes; i++)
        codes[i] = (uint8_t)(ONE - codes[i] % 4);
}

static void fixture_make(fixture *f, const char *device, const char *const pair[2], fill how) {
    rng r = {61};
    *f = (fixture){.device = device, .beta = 0.5f};
    for (int i = 0; i < 2; i++) {
        bsmm_matrix a = describe(find_format(pair[0]), M, K);
        if (i) a.order = BSMM_ORDER_COL;
        test_matrix_make(&f->a[i], a, how, &r);
    }
    test_matrix_make(&f->b, describe(find_format(pair[1]), N, K), how, &r);
    if (how == FILL_ORDINARY) limit_scales(&f->b);
    test_matrix_make(&f->c, describe(format_named("f32"), M, N), FILL_ORDINARY, &r);
    test_matrix_make(&f->d, describe(format_named("f32"), M, N), FILL_ORDINARY, &r);
    f->d_there = send(f, f->d.m.data, f->d.data_bytes);
    const void *const c = send(f, f->c.m.data, f->c.data_bytes),
                      *const b = send(f, f->b.m.data, f->b.data_bytes),
                      *const b_scales = send(f, f->b.m.scales, f->b.scale_bytes);
    for (int i = 0; i < 2; i++)
        f->there[i] = (bsmm_buffers){.struct_size = sizeof f->there[i],
                                     .a = send(f, f->a[i].m.data, f->a[i].data_bytes),
                                     .a_scales = send(f, f->a[i].m.scales, f->a[i].scale_bytes),
                                     .b = b,
                                     .b_scales = b_scales,
                                     .c = c,
                                     .d = f->d_there};
}

static void release(const fixture *f, const void *memory) {
    test_gpu_free(f->device, (void *)(uintptr_t)memory);
}

static void fixture_free(fixture *f) {
    for (int i = 0; i < 2; i++) {
        release(f, f->there[i].a);
        release(f, f->there[i].a_scales);
        test_matrix_free(&f->a[i]);
    }
    release(f, f->there[0].b);
    release(f, f->there[0].b_scales);
    release(f, f->there[0].c);
    release(f, f->d_there);
    test_matrix_free(&f->b);
    test_matrix_free(&f->c);
    test_matrix_free(&f->d);
}

static bsmm_plan *open_plan(const fixture *f, int number, uint32_t form, const char *kernel) {
    bsmm_plan *plan;
    const bool has_c = number & 1;
    const bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                                   .a = &f->a[number >> 1].m,
                                   .b = &f->b.m,
                                   .c = has_c ? &f->c.m : NULL,
                                   .beta = has_c ? &f->beta : NULL,
                                   .d = &f->d.m,
                                   .device = f->device,
                                   .b_packed = form,
                                   .kernel = kernel};
    if (bsmm_plan_create(&desc, &plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    return plan;
}

/* Packs B by a plan. Returns the packed weights in device memory, and stores a copy of them in
 * *host. */
static void *pack(const fixture *f, const bsmm_plan *plan, uint8_t **host) {
    const uint64_t bytes = bsmm_plan_packed_b_bytes(plan);
    void *const there = test_gpu_new(f->device, NULL, bytes);
    if (bsmm_pack_b(plan, &f->there[0], there, bytes) != BSMM_OK)
        fail_msg("%s", bsmm_error_message());
    *host = malloc(bytes);
    assert_non_null(*host);
    test_gpu_read(f->device, *host, there, bytes);
    return there;
}

/* Runs a plan, with packed weights unless `packed` is NULL, and returns the bytes of D. */
static void *run(const fixture *f, const bsmm_plan *plan, int number, const void *packed) {
    const bsmm_exec exec = {.struct_size = sizeof exec, .device = f->device};
    bsmm_buffers buffers = f->there[number >> 1];
    if (packed) buffers.b = buffers.b_scales = NULL;
    if (!(number & 1)) buffers.c = NULL;
    buffers.packed_b = packed;
    buffers.packed_b_bytes = packed ? bsmm_plan_packed_b_bytes(plan) : 0;
    buffers.workspace_bytes = bsmm_plan_workspace_bytes(plan);
    buffers.workspace = test_gpu_new(f->device, NULL, buffers.workspace_bytes);
    assert_int_equal(bsmm_fill_memory(&exec, f->d_there, 0xA5, f->d.data_bytes), BSMM_OK);
    if (bsmm_plan_run(plan, &buffers) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    void *const bits = malloc(f->d.data_bytes);
    assert_non_null(bits);
    test_gpu_read(f->device, bits, f->d_there, f->d.data_bytes);
    test_gpu_free(f->device, buffers.workspace);
    return bits;
}

/* Checks that a plan packs B to the bytes `first`. */
static void check_bytes(const fixture *f, const bsmm_plan *plan, int number, const char *form,
                        const uint8_t *first, uint64_t bytes) {
    uint8_t *host;
    if (bsmm_plan_packed_b_bytes(plan) == 0) return;
    release(f, pack(f, plan, &host));
    if (bsmm_plan_packed_b_bytes(plan) != bytes || memcmp(host, first, bytes) != 0)
        fail_msg("%s, %s x %s, change %d, b_packed %s: other packed weights", f->device,
                 bsmm_format_name(f->a[0].m.format), bsmm_format_name(f->b.m.format), number, form);
    free(host);
}

static void check_change(const fixture *f, int number, const void *packed, const uint8_t *first,
                         uint64_t bytes) {
    bsmm_plan *const wide = open_plan(f, number, BSMM_PACKED_WIDE, NULL);
    bsmm_plan *const none = open_plan(f, number, BSMM_PACKED_NONE, NULL);
    bsmm_plan *const same = open_plan(f, number, BSMM_PACKED_NONE, bsmm_plan_kernel(wide));
    check_bytes(f, wide, number, "WIDE", first, bytes);
    check_bytes(f, none, number, "NONE", first, bytes);
    if (number == 0) check_bytes(f, same, number, "NONE and kernel", first, bytes);
    void *const want = run(f, same, number, NULL), *const got = run(f, wide, number, packed);
    if (memcmp(want, got, f->d.data_bytes) != 0)
        fail_msg("%s, %s, %s x %s, change %d: other bits with packed weights", f->device,
                 bsmm_plan_kernel(wide), bsmm_format_name(f->a[0].m.format),
                 bsmm_format_name(f->b.m.format), number);
    free(want);
    free(got);
    bsmm_plan_destroy(wide);
    bsmm_plan_destroy(none);
    bsmm_plan_destroy(same);
}

/* Packs B once, for a pair of formats of A and B. Then runs the CHANGES variants of the product
 * (with and without a C, with a row-major and a column-major A) with these packed weights. Fails
 * unless each variant gives the bits that the same kernel gives with unpacked B. Returns false if
 * no kernel of the device reads packed weights of the form wide for this pair. */
static bool check_pair(const char *device, const char *const pair[2], fill how) {
    fixture f;
    uint8_t *first;
    uint64_t bytes;
    const bsmm_format a = find_format(pair[0]);
    const bsmm_matrix b = describe(find_format(pair[1]), N, K);
    if (bsmm_packed_bytes(device, BSMM_PACKED_WIDE, &b, 0, &a, &bytes) != BSMM_OK) return false;
    fixture_make(&f, device, pair, how);
    bsmm_plan *const plan = open_plan(&f, 0, BSMM_PACKED_WIDE, NULL);
    assert_int_equal(bsmm_plan_packed_b_bytes(plan), bytes);
    void *const packed = pack(&f, plan, &first);
    for (int number = 0; number < CHANGES; number++)
        check_change(&f, number, packed, first, bytes);
    bsmm_plan_destroy(plan);
    release(&f, packed);
    free(first);
    fixture_free(&f);
    return true;
}

static void check_devices(fill how, size_t count_of_pairs) {
    int count = 0;
    test_gpu_need();
    for (uint32_t i = 0; test_gpu_at(i); i++)
        for (size_t n = 0; n < count_of_pairs; n++)
            count += check_pair(test_gpu_at(i), pairs[n], how);
    print_message("%d pairs of formats\n", count);
    if (count == 0) skip(); /* No kernel of the devices reads panels. */
}

static void test_ordinary_values(void **state) {
    (void)state;
    check_devices(FILL_ORDINARY, BSMM_COUNT(pairs));
}

/* Tests products of an f16 A by a B with e8m0 scales from the whole range of e8m0. f16 does not
 * hold the values of such a B, so packed weights of form wide, i.e. of decoded values, hold them as
 * bf16. */
static void test_extreme_values(void **state) {
    (void)state;
    check_devices(FILL_EXTREME, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordinary_values),
        cmocka_unit_test(test_extreme_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
