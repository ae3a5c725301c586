/* Tests the integer kernels with every pair of an 8-bit scale of A and an 8-bit scale of B. In each
 * row, only elements of the first block are not 0. A result therefore depends on a single pair of
 * scales, and its exact value is easy to compute. The result must be bitwise identical to the exact
 * value, rounded once. */
#include "cpu_hooks.h"
#include "product.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* K is SHORT or LONG, because some versions of a kernel accept only a long K. */
enum { CODES = 256, BLOCK = 16, SHORT = BLOCK, LONG = 256 };

static const char *const kernels[] = {"cpu_avx512_int8dot", "cpu_avx2_int8dot"};

static bool accepts(const product *p, const char *kernel) {
    bsmm_explanation e = {.struct_size = sizeof e};
    bool found = false;
    for (uint32_t i = 0; !bsmm_explain(&p->desc, i, &e); i++)
        found |= e.accepts && strcmp(e.kernel, kernel) == 0;
    return found;
}

static void check_result(float got, float want, int64_t row, int64_t col, const char *kernel) {
    if (memcmp(&got, &want, sizeof got) == 0 || (isnan(got) && isnan(want))) return;
    fail_msg("%s: scale codes 0x%02x and 0x%02x: got %a, want %a", kernel, (unsigned)row,
             (unsigned)col, (double)got, (double)want);
}

static void check_kernel(product *p, const char *kernel) {
    double *a = test_matrix_values(&p->a), *b = test_matrix_values(&p->b);
    float *d = result_of(p, kernel);
    for (int64_t i = 0; i < CODES * CODES; i++) {
        double sum = 0;
        for (int64_t k = 0; k < BLOCK; k++)
            sum += a[i / CODES * p->a.m.cols + k] * b[i % CODES * p->a.m.cols + k];
        check_result(d[i], (float)(sum + 0.0), i / CODES, i % CODES, kernel);
    }
    free(a);
    free(b);
    free(d);
}

/* Gives each scale code one row: in row r, the first block has the scale code r. The elements of
 * all other blocks are 0, and their scales are 1, so only the first block contributes to results.
 */
static void set_scales(test_matrix *t) {
    uint8_t one = t->m.format.scale == BSMM_SCALE_E8M0 ? 127 : 0x38;
    int64_t blocks = t->m.cols / BLOCK;
    for (int64_t i = 0; i < CODES * blocks; i++)
        ((uint8_t *)t->m.scales)[i] = i % blocks ? one : (uint8_t)(i / blocks);
    for (int64_t i = 0; i < CODES * t->m.cols; i++)
        if (i % t->m.cols >= BLOCK) bsmm_elem_store(t->m.format.elem, t->m.data, (uint64_t)i, 0);
}

static void check_formats(uint32_t elem, uint32_t a_scale, uint32_t b_scale, int64_t k) {
    const bsmm_format a = {elem, a_scale, 1, BLOCK}, b = {elem, b_scale, 1, BLOCK};
    rng r = {elem};
    product p;
    product_make_of(&p, a, b, CODES, CODES, k, FILL_ORDINARY, &r);
    set_scales(&p.a);
    set_scales(&p.b);
    for (size_t i = 0; i < BSMM_COUNT(kernels); i++) {
        uint32_t needed = i ? BSMM_CPU_AVX2 : BSMM_CPU_AVX512_VNNI;
        if (accepts(&p, kernels[i]))
            check_kernel(&p, kernels[i]);
        else if (bsmm_cpu_features() & needed)
            fail_msg("%s refuses element %u with scales %u and %u", kernels[i], elem, a_scale,
                     b_scale);
    }
    product_free(&p);
}

static void check_all(void) {
    static const uint32_t elems[] = {BSMM_ELEM_E2M1, BSMM_ELEM_E2M3};
    static const uint32_t scales[] = {BSMM_SCALE_E4M3, BSMM_SCALE_E8M0};
    for (size_t e = 0; e < BSMM_COUNT(elems); e++)
        for (size_t i = 0; i < 4; i++) {
            check_formats(elems[e], scales[i / 2], scales[i % 2], SHORT);
            check_formats(elems[e], scales[i / 2], scales[i % 2], LONG);
        }
}

static void test_scales(void **state) {
    (void)state;
    check_all();
}

static void test_scales_of_two_ports(void **state) {
    (void)state;
    bsmm_cpu_add_features(BSMM_CPU_TWO_PORTS);
    check_all();
    bsmm_cpu_add_features(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scales),
                                       cmocka_unit_test(test_scales_of_two_ports)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
