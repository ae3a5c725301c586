/* Tests conversions between f32, f16 and bf16. The processor's conversion instructions and plain C
 * must give the same bytes. The inputs include every 16-bit value and f32 values next to the
 * midpoints between two results. */
#include "cpu_hooks.h"
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void check(const test_matrix *src, uint32_t to, int64_t ld) {
    static const uint32_t processors[] = {BSMM_CPU_AVX2, ~0u};
    test_matrix plain, fast;
    rng r = {0};
    bsmm_matrix shape = describe((bsmm_format){.elem = to}, src->m.rows, src->m.cols);
    shape.ld = ld;
    test_matrix_make(&plain, shape, FILL_ORDINARY, &r);
    test_matrix_make(&fast, shape, FILL_ORDINARY, &r);
    memset(plain.m.data, 0xa5, plain.data_bytes);
    bsmm_cpu_mask_features(0);
    assert_int_equal(bsmm_dequantize(&src->m, &plain.m), BSMM_OK);
    for (size_t i = 0; i < BSMM_COUNT(processors); i++) {
        memset(fast.m.data, 0xa5, fast.data_bytes);
        bsmm_cpu_mask_features(processors[i]);
        assert_int_equal(bsmm_dequantize(&src->m, &fast.m), BSMM_OK);
        assert_memory_equal(plain.m.data, fast.m.data, plain.data_bytes);
    }
    bsmm_cpu_mask_features(~0u);
    test_matrix_free(&plain);
    test_matrix_free(&fast);
}

static void check_all(const test_matrix *src, int64_t ld) {
    for (uint32_t to = BSMM_ELEM_F32; to <= BSMM_ELEM_BF16; to++)
        check(src, to, ld);
}

static void test_every_pattern(void **state) {
    (void)state;
    static const uint32_t lows[] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { PATTERNS = 1 << 16 };
    rng r = {1};
    for (uint32_t elem = BSMM_ELEM_F32; elem <= BSMM_ELEM_BF16; elem++)
        for (size_t low = 0; low < (elem == BSMM_ELEM_F32 ? BSMM_COUNT(lows) : 1); low++) {
            test_matrix src;
            bsmm_matrix shape = describe((bsmm_format){.elem = elem}, 1, PATTERNS);
            test_matrix_make(&src, shape, FILL_ORDINARY, &r);
            for (uint32_t i = 0; i < PATTERNS; i++)
                bsmm_elem_store(elem, src.m.data, i,
                                elem == BSMM_ELEM_F32 ? i << 16 | lows[low] : i);
            check_all(&src, 0);
            test_matrix_free(&src);
        }
}

static void test_shapes(void **state) {
    (void)state;
    rng r = {2};
    for (uint32_t variant = 0; variant < 60; variant++) {
        test_matrix src;
        bsmm_matrix shape = describe((bsmm_format){.elem = BSMM_ELEM_F32 + variant % 3},
                                     1 + rng_below(&r, 3), 1 + rng_below(&r, 600));
        if (variant & 1) shape.ld = shape.cols + 3;
        test_matrix_make(&src, shape, variant & 4 ? FILL_SPECIAL : FILL_EXTREME, &r);
        check_all(&src, variant & 2 ? shape.cols + 1 : 0);
        test_matrix_free(&src);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pattern),
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
