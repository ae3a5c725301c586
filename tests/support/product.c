#include "product.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void product_make_of(product *p, bsmm_format a, bsmm_format b, int64_t m, int64_t n, int64_t k,
                     fill how, rng *r) {
    *p = (product){.d = describe(format_named("f32"), m, n)};
    test_matrix_make(&p->a, describe(a, m, k), how, r);
    test_matrix_make(&p->b, describe(b, n, k), how, r);
    p->d.data = malloc((size_t)(m * n) * sizeof(float));
    p->desc =
        (bsmm_matmul_desc){.struct_size = sizeof p->desc, .a = &p->a.m, .b = &p->b.m, .d = &p->d};
}

void product_make(product *p, const char *a, const char *b, int64_t m, int64_t n, int64_t k,
                  fill how, rng *r) {
    product_make_of(p, format_named(a), format_named(b), m, n, k, how, r);
}

void product_free(product *p) {
    test_matrix_free(&p->a);
    test_matrix_free(&p->b);
    free(p->d.data);
}

float *result_of(product *p, const char *kernel) {
    size_t bytes = (size_t)(p->d.rows * p->d.cols) * sizeof(float);
    float *copy = malloc(bytes);
    p->desc.kernel = kernel;
    memset(p->d.data, 0xa5, bytes);
    if (bsmm_matmul(&p->desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    p->desc.kernel = NULL;
    memcpy(copy, p->d.data, bytes);
    return copy;
}

void product_run(product *p, const bsmm_plan *plan) {
    bsmm_buffers buffers = BSMM_INIT(bsmm_buffers);
    buffers.a = p->a.m.data, buffers.a_scales = p->a.m.scales;
    buffers.b = p->b.m.data, buffers.b_scales = p->b.m.scales;
    buffers.d = p->d.data;
    buffers.workspace_bytes = bsmm_plan_workspace_bytes(plan);
    buffers.workspace = aligned_alloc(64, (buffers.workspace_bytes / 64 + 1) * 64);
    void *packed = NULL;
    if (p->desc.b_packed) {
        buffers.packed_b_bytes = bsmm_plan_packed_b_bytes(plan);
        packed = aligned_alloc(64, (buffers.packed_b_bytes / 64 + 1) * 64);
        assert_int_equal(bsmm_pack_b(plan, &buffers, packed, buffers.packed_b_bytes), BSMM_OK);
        buffers.packed_b = packed;
    }
    memset(p->d.data, 0xa5, (size_t)(p->d.rows * p->d.cols) * sizeof(float));
    if (bsmm_plan_run(plan, &buffers) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    free(packed);
    free(buffers.workspace);
}

void product_check(product *p, const char *kernel) {
    size_t bytes = (size_t)(p->d.rows * p->d.cols) * sizeof(float);
    float *got = malloc(bytes);
    memcpy(got, p->d.data, bytes);
    p->desc.b_packed = BSMM_PACKED_NONE;
    float *packed = result_of(p, kernel);
    assert_memory_equal(got, packed, bytes);
    free(got);
    free(packed);
}
