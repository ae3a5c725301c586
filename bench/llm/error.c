/* Compares results of a language model's products with sums in double. */
#include "measure.h"

#include <math.h>
#include <stdint.h>

static const bsmm_format f32 = {.elem = BSMM_ELEM_F32};

/* Copies memory of the product's device to host memory. */
static void copy_back(const llm_product *p, void *to, const void *from, uint64_t bytes) {
    bsmm_exec exec = {sizeof exec, .device = p->formats->device};
    if (!from) return;
    llm_check(bsmm_copy_memory(&exec, to, from, bytes), "copy");
    llm_check(bsmm_synchronize_stream(&exec), "copy");
}

/* Returns the weights of a product in host memory. If w->host.data is NULL, the result is a copy,
 * which the caller must destroy. */
static bsmm_matrix host_weights(const llm_product *p, const llm_weight *w) {
    if (w->host.data) return w->host;
    bsmm_matrix m = llm_matrix_create(p->b.format, p->b.rows, p->b.cols);
    if (w->packed) {
        llm_check(bsmm_unpack_b(w->packed, p->buffers.packed_b_bytes, 0, &m), "unpack");
        return m;
    }
    copy_back(p, m.data, w->data, m.data_bytes);
    copy_back(p, m.scales, w->scales, m.scale_bytes);
    copy_back(p, m.global_scale, w->global, sizeof(float));
    return m;
}

/* Returns the error bound of the kernel for a product with `rows` rows of activations. */
static double stated_bound(const llm_product *p, int64_t rows) {
    bsmm_explanation e = BSMM_INIT(bsmm_explanation);
    bsmm_matrix a, d;
    bsmm_matmul_desc desc =
        llm_product_describe(p, rows > 1 && p->plan_of_one ? p->a.rows : rows, &a, &d);
    for (uint32_t i = 0; !e.accepts; i++)
        llm_check(bsmm_explain(&desc, i, &e), "explain");
    return e.bound;
}

/* Describes row `row` of the activations. */
static bsmm_matrix row_of(const bsmm_matrix *a, int64_t row) {
    bsmm_matrix m = *a;
    uint64_t scale_bytes = 0;
    m.rows = 1;
    m.data_bytes = m.scale_bytes = 0;
    llm_check(bsmm_data_bytes(&m, &m.data_bytes), "row");
    m.data = (uint8_t *)a->data + (uint64_t)row * m.data_bytes;
    if (a->scales) llm_check(bsmm_scale_bytes(&m, &scale_bytes), "row");
    if (a->scales) m.scales = (uint8_t *)a->scales + (uint64_t)row * scale_bytes;
    return m;
}

double product_error(const llm_product *p, const llm_weight *w, int64_t rows, const float *y) {
    const int64_t n = p->b.rows, k = p->b.cols;
    bsmm_matrix a = row_of(&p->a, rows - 1), b = host_weights(p, w),
                d = llm_matrix_create(f32, 1, n), x = llm_matrix_create(f32, 1, k),
                values = llm_matrix_create(f32, n, k);
    bsmm_matmul_desc desc = {sizeof desc, .a = &a, .b = &b, .d = &d, .kernel = "ref"};
    llm_check(bsmm_matmul(&desc), "ref");
    llm_check(bsmm_dequantize(&a, &x), "activations");
    llm_check(bsmm_dequantize(&b, &values), "weights");
    const double bound = stated_bound(p, rows);
    const float *exact = d.data, *left = x.data, *right = values.data;
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0, error = fabs((double)y[(rows - 1) * n + i] - (double)exact[i]);
        for (int64_t j = 0; j < k; j++)
            sum += fabs((double)left[j] * (double)right[i * k + j]);
        /* y and exact[i] are both rounded to f32, so the tolerance includes two rounding errors of
         * f32. */
        double allowed = bound * sum + 0x1p-23 * fabs((double)exact[i]);
        worst = fmax(worst, error == 0 ? 0 : error / allowed);
    }
    if (!w->host.data) llm_matrix_destroy(&b);
    llm_matrix_destroy(&d);
    llm_matrix_destroy(&x);
    llm_matrix_destroy(&values);
    return worst;
}
