/* Tests the library without OpenMP. This program has its own copy of src/base/threads.c, which is
 * compiled without OpenMP. The calling thread must then do all work, unless there is a pool whose
 * tasks do it. */
#include "pools.h"
#include "product.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { M = 70, N = 150, K = 320, THREADS = 4 };

static int count_threads(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static void check_kernel(product *p, const char *kernel) {
    test_pool pool;
    test_pool_make(&pool, TEST_POOL_PTHREADS);
    p->desc.pool = &pool.pool;
    float *expected = result_of(p, kernel);
    assert_true(pool.calls > 0);
    p->desc.pool = NULL;
    float *got = result_of(p, kernel);
    assert_memory_equal(got, expected, (size_t)(M * N) * sizeof(float));
    assert_int_equal(count_threads(), 1);
    free(got);
    free(expected);
}

static void test_calling_thread(void **state) {
    (void)state;
    static const char *const formats[] = {"mxfp4", "mxfp8", "f32"};
    rng r = {1};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++) {
        product p;
        bsmm_explanation e = {.struct_size = sizeof e};
        product_make(&p, formats[i], formats[i], M, N, K, FILL_ORDINARY, &r);
        p.desc.device = "cpu";
        p.desc.threads = THREADS;
        for (uint32_t q = 0; bsmm_explain(&p.desc, q, &e) == BSMM_OK; q++)
            if (e.accepts) check_kernel(&p, e.kernel);
        product_free(&p);
    }
}

static void test_processors(void **state) {
    (void)state;
    bsmm_local_device cpu = {.struct_size = sizeof cpu};
    assert_int_equal(bsmm_local_device_at(0, &cpu), BSMM_OK);
    assert_true(cpu.cores >= 1 && cpu.cores <= 4096);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calling_thread),
        cmocka_unit_test(test_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
