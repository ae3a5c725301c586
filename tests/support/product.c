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
