/* Tests the tables of backends and kernels. All entries must be complete, and names must be
 * unique. */
#include "core/describe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HAS(row, what, hook)                                                                       \
    if (!(row)->hook) fail_msg(what " %s: its " #hook " is NULL", (row)->name)

/* Tells whether some device name could belong to both backends. */
static bool share_models(const bsmm_backend *a, const bsmm_backend *b) {
    if (!a->models || !b->models) return true;
    for (uint32_t i = 0; a->models[i]; i++)
        for (uint32_t j = 0; b->models[j]; j++)
            if (!strcmp(a->models[i], b->models[j])) return true;
    return false;
}

static void test_backends_are_whole(void **state) {
    (void)state;
    const bsmm_backend *b;
    for (uint32_t i = 0; (b = bsmm_backend_at(i)); i++) {
        if (!b->name || !*b->name) fail_msg("backend %u: it has no name", i);
        HAS(b, "backend", open);
        HAS(b, "backend", describe);
        HAS(b, "backend", check_pointer);
        HAS(b, "backend", allocate);
        HAS(b, "backend", release);
        HAS(b, "backend", store);
        HAS(b, "backend", copy);
        HAS(b, "backend", fill);
        HAS(b, "backend", finish);
        if (b->quantize) {
            HAS(b, "backend", make_quantizer);
            HAS(b, "backend", run_quantizer);
        }
        for (uint32_t j = 0; j < i; j++)
            if (!strcmp(bsmm_backend_at(j)->name, b->name) && share_models(bsmm_backend_at(j), b))
                fail_msg("backend %s: there are two of this name", b->name);
    }
    assert_string_equal(bsmm_backend_at(0)->name, "cpu");
}

static bool is_backend(const char *name) {
    const bsmm_backend *b;
    for (uint32_t i = 0; (b = bsmm_backend_at(i)); i++)
        if (!strcmp(b->name, name)) return true;
    return false;
}

static void test_kernels_are_whole(void **state) {
    (void)state;
    const bsmm_kernel *k;
    for (uint32_t i = 0; (k = bsmm_kernel_at(i)); i++) {
        if (!k->name || !*k->name) fail_msg("kernel %u: it has no name", i);
        HAS(k, "kernel", device);
        HAS(k, "kernel", refuse);
        HAS(k, "kernel", workspace_bytes);
        HAS(k, "kernel", bound);
        HAS(k, "kernel", run);
        if (!is_backend(k->device))
            fail_msg("kernel %s: no backend is named %s", k->name, k->device);
        if (k->alignment & (k->alignment - 1))
            fail_msg("kernel %s: its alignment %u is no power of 2", k->name, k->alignment);
        for (uint32_t j = 0; j < i; j++)
            if (!strcmp(bsmm_kernel_at(j)->name, k->name))
                fail_msg("kernel %s: there are two of this name", k->name);
    }
}

/* Tests that `ref` is the last entry of the kernel table. `ref` accepts every product, so the
 * library would never choose a kernel after it. */
static void test_the_reference_is_last(void **state) {
    (void)state;
    uint32_t last = 0;
    while (bsmm_kernel_at(last + 1))
        last++;
    assert_string_equal(bsmm_kernel_at(last)->name, "ref");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backends_are_whole),
        cmocka_unit_test(test_kernels_are_whole),
        cmocka_unit_test(test_the_reference_is_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
