/* Tests thread pools that the caller provides in place of OpenMP. Products and conversions must be
 * bitwise identical to those with OpenMP, whatever the order in which the pool runs its tasks. The
 * library must not ask the pool for more tasks than the number of threads that the caller
 * requested. */
#include "base/threads.h"
#include "pools.h"
#include "product.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { THREADS = 3 };

/* Each CPU kernel accepts at least one of these products. The numbers of rows and threads vary, so
 * that every way to divide the work among threads occurs. */
static const struct {
    const char *a, *b, *d;
    int64_t m;
    fill how;
} products[] = {
    {"mxfp4", "mxfp4", "f32", 1, FILL_ORDINARY},
    {"nvfp4", "nvfp4", "bf16", 16, FILL_ORDINARY},
    {"mxfp4", "mxfp4", "f32", 39, FILL_ORDINARY},
    {"mxfp4", "mxfp4", "f32", 192, FILL_EXTREME},
    {"nvfp4", "nvfp4", "mxfp8", 65, FILL_ORDINARY},
    {"mxfp8", "mxfp4", "f32", 20, FILL_EXTREME},
    {"mxfp8", "mxfp8", "f32", 192, FILL_ORDINARY},
    {"bf16", "mxfp4", "bf16", 3, FILL_ORDINARY},
    {"bf16", "mxfp4", "e4m3", 70, FILL_EXTREME},
    {"fp8_group128", "fp8_block128", "bf16", 3, FILL_ORDINARY},
    {"fp8_group128", "fp8_block128", "f32", 130, FILL_ORDINARY},
    {"f32", "mxfp4", "f32", 1, FILL_ORDINARY},
    {"f16", "f32", "f32", 90, FILL_EXTREME},
};

enum { N = 270, K = 300, MOST_KERNELS = 32 };

typedef struct triple {
    test_matrix a, b, d;
    bsmm_matmul_desc desc;
} triple;

static void triple_make(triple *t, size_t i, rng *r) {
    *t = (triple){0};
    test_matrix_make(&t->a, describe(format_named(products[i].a), products[i].m, K),
                     products[i].how, r);
    test_matrix_make(&t->b, describe(format_named(products[i].b), N, K), products[i].how, r);
    test_matrix_make(&t->d, describe(format_named(products[i].d), products[i].m, N), FILL_ORDINARY,
                     r);
    t->desc = (bsmm_matmul_desc){.struct_size = sizeof t->desc,
                                 .a = &t->a.m,
                                 .b = &t->b.m,
                                 .d = &t->d.m,
                                 .device = "cpu",
                                 .threads = THREADS};
}

static void triple_free(triple *t) {
    test_matrix_free(&t->a);
    test_matrix_free(&t->b);
    test_matrix_free(&t->d);
}

static void poison(test_matrix *t) {
    memset(t->m.data, 0xa5, t->data_bytes);
    if (t->scale_bytes) memset(t->m.scales, 0xa5, t->scale_bytes);
}

/* Returns a copy of the matrix's elements, followed by a copy of its scales. */
static uint8_t *bytes_of(const test_matrix *t) {
    uint8_t *copy = malloc(t->data_bytes + t->scale_bytes);
    memcpy(copy, t->m.data, t->data_bytes);
    if (t->scale_bytes) memcpy(copy + t->data_bytes, t->m.scales, t->scale_bytes);
    return copy;
}

static uint8_t *multiply(triple *t, const bsmm_pool *pool) {
    t->desc.pool = pool;
    poison(&t->d);
    if (bsmm_matmul(&t->desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    t->desc.pool = NULL;
    return bytes_of(&t->d);
}

/* Checks one product with each test pool. Returns the number of calls of the pools. */
static int check_product(triple *t) {
    int calls = 0;
    uint8_t *expected = multiply(t, NULL);
    for (size_t i = 0; i < TEST_POOL_KINDS; i++) {
        test_pool pool;
        test_pool_make(&pool, (test_pool_kind)i);
        uint8_t *got = multiply(t, &pool.pool);
        if (memcmp(got, expected, t->d.data_bytes + t->d.scale_bytes) != 0)
            fail_msg("%s, %lld rows: other bits by pool %zu", t->desc.kernel,
                     (long long)t->a.m.rows, i);
        assert_true(pool.most_tasks <= THREADS);
        calls += pool.calls;
        free(got);
    }
    free(expected);
    return calls;
}

static void test_every_kernel(void **state) {
    (void)state;
    bool ran[MOST_KERNELS] = {false}, absent[MOST_KERNELS] = {false};
    int calls[MOST_KERNELS] = {0};
    rng r = {1};
    bsmm_explanation e = {.struct_size = sizeof e};
    for (size_t i = 0; i < BSMM_COUNT(products); i++) {
        triple t;
        triple_make(&t, i, &r);
        for (uint32_t q = 0; bsmm_explain(&t.desc, q, &e) == BSMM_OK; q++) {
            assert_true(q < MOST_KERNELS);
            absent[q] = absent[q] || strstr(e.reason, "the processor has no") != NULL ||
                        strcmp(e.device, "cpu") != 0;
            if (!e.accepts) continue;
            t.desc.kernel = e.kernel;
            ran[q] = true;
            calls[q] += check_product(&t);
        }
        t.desc.kernel = NULL;
        triple_free(&t);
    }
    triple t;
    triple_make(&t, 0, &r);
    for (uint32_t q = 0; bsmm_explain(&t.desc, q, &e) == BSMM_OK; q++)
        if (!absent[q] && (!ran[q] || calls[q] == 0))
            fail_msg("%s took no case or gave no pool work", e.kernel);
    triple_free(&t);
}

typedef struct planned {
    product p;
    bsmm_plan *plan;
    bsmm_buffers buffers;
} planned;

static void planned_make(planned *x, const bsmm_pool *pool, uint32_t b_packed) {
    rng r = {3};
    product_make(&x->p, "mxfp8", "mxfp4", 192, N, K, FILL_ORDINARY, &r);
    x->p.desc.pool = pool;
    x->p.desc.threads = THREADS;
    x->p.desc.b_packed = b_packed;
    if (bsmm_plan_create(&x->p.desc, &x->plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    x->buffers = (bsmm_buffers){.struct_size = sizeof x->buffers,
                                .a = x->p.a.m.data,
                                .a_scales = x->p.a.m.scales,
                                .b = x->p.b.m.data,
                                .b_scales = x->p.b.m.scales,
                                .d = x->p.d.data,
                                .workspace_bytes = bsmm_plan_workspace_bytes(x->plan)};
    x->buffers.workspace = aligned_alloc(64, (x->buffers.workspace_bytes + 63) / 64 * 64);
}

static void planned_free(planned *x) {
    free(x->buffers.workspace);
    bsmm_plan_destroy(x->plan);
    product_free(&x->p);
}

/* Tests a run whose buffers contain a pool. The run must use this pool instead of the pool of the
 * plan. */
static void test_which_pool(void **state) {
    (void)state;
    planned x;
    test_pool of_plan, of_run;
    test_pool_make(&of_plan, TEST_POOL_SERIAL);
    test_pool_make(&of_run, TEST_POOL_SERIAL);
    bsmm_pool given = of_plan.pool;
    planned_make(&x, &given, 0);
    given = (bsmm_pool){0};
    assert_int_equal(bsmm_plan_run(x.plan, &x.buffers), BSMM_OK);
    assert_true(of_plan.calls > 0);
    int calls = of_plan.calls;
    x.buffers.pool = &of_run.pool;
    assert_int_equal(bsmm_plan_run(x.plan, &x.buffers), BSMM_OK);
    assert_int_equal(of_plan.calls, calls);
    assert_int_equal(of_run.calls, calls);
    planned_free(&x);
}

static uint8_t *pack(const planned *x, const bsmm_pool *pool) {
    uint64_t bytes = bsmm_plan_packed_b_bytes(x->plan);
    uint8_t *packed = aligned_alloc(64, (bytes + 63) / 64 * 64);
    bsmm_buffers buffers = x->buffers;
    buffers.pool = pool;
    memset(packed, 0xa5, bytes);
    assert_int_equal(bsmm_pack_b(x->plan, &buffers, packed, bytes), BSMM_OK);
    return packed;
}

static void test_packing(void **state) {
    (void)state;
    planned x;
    planned_make(&x, NULL, 0);
    uint64_t bytes = bsmm_plan_packed_b_bytes(x.plan);
    if (bytes == 0) {
        planned_free(&x);
        skip(); /* No kernel for this processor packs B, so the test is skipped. */
    }
    uint8_t *expected = pack(&x, NULL);
    for (size_t i = 0; i < TEST_POOL_KINDS; i++) {
        test_pool pool;
        test_pool_make(&pool, (test_pool_kind)i);
        uint8_t *got = pack(&x, &pool.pool);
        assert_memory_equal(got, expected, bytes);
        /* The library must use the pool to pack B. */
        assert_true(pool.calls > 0);
        free(got);
    }
    free(expected);
    planned_free(&x);
}

/* Tests that the library does not call a pool if one thread is requested. */
static void test_one_thread(void **state) {
    (void)state;
    triple t;
    rng r = {4};
    test_pool pool;
    test_pool_make(&pool, TEST_POOL_SERIAL);
    triple_make(&t, 3, &r);
    t.desc.threads = 1;
    free(multiply(&t, &pool.pool));
    assert_int_equal(pool.calls, 0);
    triple_free(&t);
}

typedef struct converted {
    bsmm_exec exec;
    const test_matrix *src;
    test_matrix dst;
    bsmm_quantize_report report;
    float amax;
} converted;

static bsmm_status run_dequantize(converted *c) {
    return bsmm_dequantize_on(&c->exec, &c->src->m, &c->dst.m);
}

static bsmm_status run_convert(converted *c) {
    return bsmm_convert_on(&c->exec, &c->src->m, &c->dst.m);
}

static bsmm_status run_amax(converted *c) {
    return bsmm_amax_on(&c->exec, &c->src->m, &c->amax);
}

/* Compares src with a dst of zeros, so that every run gives the same report. */
static bsmm_status run_compare(converted *c) {
    memset(c->dst.m.data, 0, c->dst.data_bytes);
    return bsmm_compare_on(&c->exec, &c->src->m, &c->dst.m, &c->report);
}

static bsmm_status run_relayout(converted *c) {
    return bsmm_relayout_scales_on(&c->exec, &c->src->m, &c->dst.m);
}

static bsmm_status run_quantize(converted *c) {
    const bsmm_quantize_desc desc = {.struct_size = sizeof desc,
                                     .src = &c->src->m,
                                     .dst = &c->dst.m,
                                     .threads = c->exec.threads,
                                     .pool = c->exec.pool};
    return bsmm_quantize(&desc, &c->report);
}

static const struct {
    const char *src, *dst;
    uint32_t order; /* `order` is the order of src. */
    bool on_one_thread;
    bsmm_status (*run)(converted *);
} conversions[] = {
    {"mxfp4", "f32", BSMM_ORDER_ROW, false, run_dequantize},
    {"nvfp4", "bf16", BSMM_ORDER_COL, false, run_dequantize},
    {"f32", "f16", BSMM_ORDER_ROW, false, run_dequantize},
    {"mxfp4", "nvfp4", BSMM_ORDER_ROW, false, run_convert},
    {"mxfp4", "fp8_block128", BSMM_ORDER_ROW, false, run_convert},
    {"mxfp6", "mxfp6", BSMM_ORDER_COL, false, run_convert},
    {"f32", "f32", BSMM_ORDER_ROW, false, run_amax},
    {"bf16", "bf16", BSMM_ORDER_COL, false, run_amax},
    {"f16", "mxfp8", BSMM_ORDER_ROW, false, run_compare},
    {"mxfp8", "mxfp8", BSMM_ORDER_ROW, true, run_relayout},
    {"f32", "mxfp4", BSMM_ORDER_ROW, false, run_quantize},
    {"bf16", "nvfp4", BSMM_ORDER_COL, false, run_quantize},
    {"f16", "fp8_block128", BSMM_ORDER_ROW, false, run_quantize},
};

enum { ROWS = 515, COLS = 640 };

static void run_conversion(size_t i, converted *c, const bsmm_pool *pool) {
    c->exec = (bsmm_exec){.struct_size = sizeof c->exec, .threads = THREADS, .pool = pool};
    c->report = (bsmm_quantize_report){.struct_size = sizeof c->report};
    poison(&c->dst);
    c->dst.m.global_scale = c->dst.m.format.scale == BSMM_SCALE_E4M3 ? &c->dst.global : NULL;
    if (conversions[i].run(c) != BSMM_OK) fail_msg("%s", bsmm_error_message());
}

static void check_conversion(size_t i, converted *c) {
    run_conversion(i, c, NULL);
    const converted expected = *c;
    uint8_t *bytes = bytes_of(&c->dst);
    for (size_t k = 0; k < TEST_POOL_KINDS; k++) {
        test_pool pool;
        test_pool_make(&pool, (test_pool_kind)k);
        run_conversion(i, c, &pool.pool);
        assert_true(pool.most_tasks <= THREADS);
        assert_int_equal(pool.calls == 0, conversions[i].on_one_thread);
        assert_memory_equal(c->dst.m.data, bytes, c->dst.data_bytes);
        if (c->dst.scale_bytes)
            assert_memory_equal(c->dst.m.scales, bytes + c->dst.data_bytes, c->dst.scale_bytes);
        assert_memory_equal(&c->report, &expected.report, sizeof c->report);
        assert_memory_equal(&c->dst.global, &expected.dst.global, sizeof c->dst.global);
        assert_memory_equal(&c->amax, &expected.amax, sizeof c->amax);
    }
    free(bytes);
}

/* Tests that every conversion gives the same bytes with each pool. The scales of the random mxfp4
 * matrices are so similar that bsmm_convert can convert these matrices exactly. */
static void test_every_conversion(void **state) {
    (void)state;
    rng r = {5};
    for (size_t i = 0; i < BSMM_COUNT(conversions); i++) {
        test_matrix src;
        converted c = {.src = &src};
        bsmm_matrix shape = describe(format_named(conversions[i].src), ROWS, COLS);
        shape.order = conversions[i].order;
        if (shape.order == BSMM_ORDER_COL) shape.ld = bsmm_round_up(ROWS, 4);
        test_matrix_make(&src, shape, FILL_ORDINARY, &r);
        test_matrix_make(&c.dst, describe(format_named(conversions[i].dst), ROWS, COLS),
                         FILL_ORDINARY, &r);
        src.m.global_scale = NULL;
        check_conversion(i, &c);
        test_matrix_free(&src);
        test_matrix_free(&c.dst);
    }
}

static void leave_out_the_last(void *context, bsmm_task task, void *work, size_t count) {
    (void)context;
    for (size_t i = 0; i + 1 < count; i++)
        task(work, i);
}

static void run_past_the_end(void *context, bsmm_task task, void *work, size_t count) {
    (void)context;
    for (size_t i = 0; i <= count; i++)
        task(work, i);
}

static void run_the_first_twice(void *context, bsmm_task task, void *work, size_t count) {
    task(work, 0);
    leave_out_the_last(context, task, work, count);
}

static void run_all_twice(void *context, bsmm_task task, void *work, size_t count) {
    (void)context;
    for (size_t i = 0; i < 2 * count; i++)
        task(work, i % count);
}

static void test_fields(void **state) {
    (void)state;
    static const bsmm_pool bad[] = {
        {.struct_size = sizeof(bsmm_pool)},
        {.struct_size = sizeof(bsmm_pool), .reserved = 7, .run = leave_out_the_last},
        {.struct_size = 4, .run = leave_out_the_last},
    };
    static const char *const messages[] = {"pool.run: value is NULL; must be given",
                                           "pool.reserved: value is 7; must be 0",
                                           "pool.struct_size: value is 4"};
    triple t;
    rng r = {6};
    triple_make(&t, 0, &r);
    for (size_t i = 0; i < BSMM_COUNT(bad); i++) {
        float amax;
        const bsmm_exec exec = {.struct_size = sizeof exec, .pool = &bad[i]};
        t.desc.pool = &bad[i];
        assert_int_equal(bsmm_matmul(&t.desc), BSMM_E_INVALID);
        assert_non_null(strstr(bsmm_error_message(), messages[i]));
        assert_int_equal(bsmm_amax_on(&exec, &t.a.m, &amax), BSMM_E_INVALID);
        assert_non_null(strstr(bsmm_error_message(), messages[i]));
    }
    triple_free(&t);
}

static void test_tasks_left_out(void **state) {
    (void)state;
    const bsmm_pool pool = {.struct_size = sizeof pool, .run = leave_out_the_last};
    const bsmm_pool past = {.struct_size = sizeof past, .run = run_past_the_end};
    triple t;
    rng r = {7};
    triple_make(&t, 3, &r);
    t.desc.pool = &pool;
    assert_int_equal(bsmm_matmul(&t.desc), BSMM_E_INVALID);
    assert_string_equal(bsmm_error_message(),
                        "pool.run: returned after 2 of 3 tasks; must run each of them once");
    free(multiply(&t, &past));
    triple_free(&t);
    test_matrix f32;
    test_matrix_make(&f32, describe(format_named("f32"), ROWS, COLS), FILL_ORDINARY, &r);
    float amax = -1;
    const bsmm_exec exec = {.struct_size = sizeof exec, .threads = THREADS, .pool = &pool};
    assert_int_equal(bsmm_amax_on(&exec, &f32.m, &amax), BSMM_E_INVALID);
    assert_true(amax == -1);
    test_matrix_free(&f32);
}

/* Tests pools that run tasks twice. If a pool runs the first task twice and omits the last one, the
 * library must report an error. If a pool runs every task twice, the results must not change. */
static void test_tasks_repeated(void **state) {
    (void)state;
    const bsmm_pool instead = {.struct_size = sizeof instead, .run = run_the_first_twice};
    const bsmm_pool besides = {.struct_size = sizeof besides, .run = run_all_twice};
    triple t;
    rng r = {8};
    triple_make(&t, 3, &r);
    uint8_t *expected = multiply(&t, NULL), *got = multiply(&t, &besides);
    assert_memory_equal(got, expected, t.d.data_bytes);
    t.desc.pool = &instead;
    assert_int_equal(bsmm_matmul(&t.desc), BSMM_E_INVALID);
    assert_string_equal(bsmm_error_message(),
                        "pool.run: returned after 2 of 3 tasks; must run each of them once");
    free(expected);
    free(got);
    triple_free(&t);
}

/* Tests a pool in a child process after fork. The threads of OpenMP do not survive a fork, but the
 * child can start new threads for a pool. */
static void test_after_fork(void **state) {
    (void)state;
    triple t;
    rng r = {8};
    triple_make(&t, 3, &r);
    uint8_t *expected = multiply(&t, NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        test_pool pool;
        test_pool_make(&pool, TEST_POOL_PTHREADS);
        alarm(60);
        uint8_t *got = multiply(&t, &pool.pool);
        _exit(memcmp(got, expected, t.d.data_bytes) != 0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    free(expected);
    triple_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kernel),     cmocka_unit_test(test_which_pool),
        cmocka_unit_test(test_packing),          cmocka_unit_test(test_one_thread),
        cmocka_unit_test(test_every_conversion), cmocka_unit_test(test_fields),
        cmocka_unit_test(test_tasks_left_out),   cmocka_unit_test(test_tasks_repeated),
        cmocka_unit_test(test_after_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
