/* Tests that bsmm_plan_run allocates no memory on the cpu. The test runs every kernel that this
 * processor supports, and it counts the allocations of the whole process. */
#include "allocator.h"
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Tests that each function of the replaced allocator counts its calls. The test calls them through
 * a volatile pointer, because a compiler may remove an allocation that is never used. */
static void test_every_allocator_counts(void **state) {
    (void)state;
    if (!can_count()) {
        print_message("skipped: this allocator is not glibc's\n");
        skip();
    }
    void *volatile memory[6] = {0};
    void *aligned = NULL;
    start_counting(0);
    memory[0] = malloc(10);
    memory[1] = calloc(2, 10);
    memory[2] = realloc(NULL, 10);
    memory[3] = aligned_alloc(64, 64);
    int failed = posix_memalign(&aligned, 64, 10);
    int found = stop_counting();
    memory[4] = aligned;
    for (size_t i = 0; i < 5; i++)
        free(memory[i]);
    assert_int_equal(failed, 0);
    assert_int_equal(found, 5);
}

/* Each CPU kernel accepts at least one of these products. M and the number of threads vary, so that
 * every way to divide the work among threads occurs. FILL_EXTREME makes scales outside the range of
 * fp32. */
static const struct {
    const char *a, *b, *d;
    int64_t m;
    fill how;
    bool adds; /* `adds` is true if the product adds C and a bias. */
} cases[] = {
    {"mxfp4", "mxfp4", "f32", 1, FILL_ORDINARY, false},
    {"nvfp4", "nvfp4", "bf16", 5, FILL_ORDINARY, true},
    {"mxfp4", "mxfp4", "f32", 40, FILL_ORDINARY, false},
    {"mxfp4", "mxfp4", "f32", 128, FILL_EXTREME, false},
    {"nvfp4", "mxfp6_e2m3", "f16", 65, FILL_ORDINARY, true},
    {"nvfp4", "nvfp4", "mxfp8", 65, FILL_ORDINARY, false},
    {"mxfp8", "mxfp4", "f32", 1, FILL_EXTREME, false},
    {"mxfp8", "mxfp8", "f32", 128, FILL_ORDINARY, false},
    {"bf16", "mxfp4", "e4m3", 70, FILL_EXTREME, true},
    {"fp8_group128", "fp8_block128", "bf16", 3, FILL_ORDINARY, false},
    {"fp8_group128", "fp8_block128", "f32", 130, FILL_ORDINARY, false},
    {"f32", "mxfp4", "f32", 1, FILL_ORDINARY, false},
    {"f16", "f32", "f32", 60, FILL_EXTREME, false},
};

enum { N = 140, K = 300, MOST_KERNELS = 32 };

/* Tells for each kernel, in the order of bsmm_explain, whether a product has run on it (`ran`) and
 * whether this processor cannot run the kernel (`absent`). */
typedef struct seen {
    bool ran[MOST_KERNELS], absent[MOST_KERNELS];
    char names[MOST_KERNELS][32];
    uint32_t count;
} seen;

typedef struct product {
    test_matrix a, b, c, d;
    test_matrix bias;
    bsmm_matmul_desc desc;
    float beta;
} product;

static void product_make(product *p, size_t i, rng *r) {
    bool adds = cases[i].adds;
    *p = (product){.beta = 0.5f};
    test_matrix_make(&p->a, describe(format_named(cases[i].a), cases[i].m, K), cases[i].how, r);
    test_matrix_make(&p->b, describe(format_named(cases[i].b), N, K), cases[i].how, r);
    test_matrix_make(&p->c, describe(format_named("f16"), cases[i].m, N), FILL_ORDINARY, r);
    test_matrix_make(&p->d, describe(format_named(cases[i].d), cases[i].m, N), FILL_ORDINARY, r);
    test_matrix_make(&p->bias, describe(format_named("f32"), 1, N), FILL_ORDINARY, r);
    p->desc =
        (bsmm_matmul_desc){.struct_size = sizeof p->desc, .a = &p->a.m, .b = &p->b.m, .d = &p->d.m};
    if (!adds) return;
    p->desc.c = &p->c.m;
    p->desc.beta = &p->beta;
    p->desc.bias = p->bias.m.data;
    p->desc.bias_elem = BSMM_ELEM_F32;
}

static void product_free(product *p) {
    test_matrix *const all[] = {&p->a, &p->b, &p->c, &p->d, &p->bias};
    for (size_t i = 0; i < BSMM_COUNT(all); i++)
        test_matrix_free(all[i]);
}

static bsmm_buffers buffers_of(const product *p) {
    return (bsmm_buffers){.struct_size = sizeof(bsmm_buffers),
                          .a = p->a.m.data,
                          .a_scales = p->a.m.scales,
                          .b = p->b.m.data,
                          .b_scales = p->b.m.scales,
                          .c = p->desc.beta ? p->c.m.data : NULL,
                          .d = p->d.m.data,
                          .d_scales = p->d.m.scales,
                          .bias = p->desc.bias};
}

static void *room(uint64_t bytes) {
    return aligned_alloc(64, (bytes + 64) / 64 * 64);
}

/* Returns the number of allocations of the second run of a plan. The first run may allocate,
 * because it starts threads and fills tables of the process. */
static int allocations_of(const product *p) {
    bsmm_plan *plan;
    if (bsmm_plan_create(&p->desc, &plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    bsmm_buffers buffers = buffers_of(p);
    buffers.workspace_bytes = bsmm_plan_workspace_bytes(plan);
    buffers.workspace = room(buffers.workspace_bytes);
    if (p->desc.b_packed) {
        uint64_t bytes = bsmm_plan_packed_b_bytes(plan);
        void *packed = room(bytes);
        assert_int_equal(bsmm_pack_b(plan, &buffers, packed, bytes), BSMM_OK);
        buffers.packed_b = packed;
        buffers.packed_b_bytes = bytes;
    }
    if (bsmm_plan_run(plan, &buffers) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    start_counting(0);
    bsmm_status status = bsmm_plan_run(plan, &buffers);
    if (status == BSMM_OK) status = bsmm_plan_run(plan, &buffers);
    int found = stop_counting();
    assert_int_equal(status, BSMM_OK);
    free(buffers.workspace);
    free((void *)(uintptr_t)buffers.packed_b);
    bsmm_plan_destroy(plan);
    return found;
}

static void check_threads(product *p, const char *kernel) {
    static const uint32_t threads[] = {0, 1, 2, 3};
    p->desc.kernel = kernel;
    for (size_t i = 0; i < BSMM_COUNT(threads); i++)
        for (uint32_t packed = 0; packed <= BSMM_PACKED_COMPACT; packed++) {
            bsmm_plan *plan;
            p->desc.threads = threads[i];
            p->desc.b_packed = packed;
            if (bsmm_plan_create(&p->desc, &plan) == BSMM_E_UNSUPPORTED && packed) continue;
            bsmm_plan_destroy(plan);
            int found = allocations_of(p);
            if (found)
                fail_msg("%s with %u threads, %s x %s, %lld rows: %d allocations", kernel,
                         threads[i], bsmm_format_name(p->a.m.format),
                         bsmm_format_name(p->b.m.format), (long long)p->a.m.rows, found);
        }
    p->desc.kernel = NULL;
    p->desc.b_packed = 0;
}

static void check_kernels(product *p, seen *kernels) {
    bsmm_explanation e = {.struct_size = sizeof e};
    for (uint32_t i = 0; bsmm_explain(&p->desc, i, &e) == BSMM_OK; i++) {
        assert_true(i < MOST_KERNELS);
        strncpy(kernels->names[i], e.kernel, sizeof kernels->names[i] - 1);
        kernels->count = i + 1;
        kernels->absent[i] |= strstr(e.reason, "the processor has no") != NULL;
        kernels->absent[i] |= strcmp(e.device, "cpu") != 0;
        if (!e.accepts) continue;
        check_threads(p, e.kernel);
        kernels->ran[i] = true;
    }
}

static void test_runs_allocate_nothing(void **state) {
    (void)state;
    seen kernels = {0};
    rng r = {1};
    if (!can_count()) skip();
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        product p;
        product_make(&p, i, &r);
        check_kernels(&p, &kernels);
        product_free(&p);
    }
    for (uint32_t i = 0; i < kernels.count; i++)
        if (!kernels.ran[i] && !kernels.absent[i]) fail_msg("%s took no case", kernels.names[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocator_counts),
        cmocka_unit_test(test_runs_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
