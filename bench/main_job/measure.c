/* Measures one format. The program multiplies the weights of every layer with the library, and
 * compares the results with sums in double. */
#include "job.h"

#include <omp.h>
#include <stdlib.h>

/* Adds sum (a - b)^2 to *noise, and sum a^2 to *signal if `signal` is not NULL. */
static void compare(const double *a, const float *b, int64_t count, double *signal, double *noise) {
    for (int64_t i = 0; i < count; i++) {
        double difference = a[i] - (double)b[i];
        if (signal) *signal += a[i] * a[i];
        *noise += difference * difference;
    }
}

static void multiply(const bsmm_matrix *a, const bsmm_matrix *b, const job_batch *to) {
    bsmm_matrix d = job_matrix(to);
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    desc.a = a, desc.b = b, desc.d = &d;
    job_check(bsmm_matmul(&desc), "matmul");
}

/* Returns the format to which activations are quantized for weights of the format `weights`. It is
 * the same format, but its blocks have one row. */
static bsmm_format activation_format(bsmm_format weights) {
    weights.block_rows = 1;
    return weights;
}

static bsmm_matrix quantize_activations(bsmm_format weights, const job_batch *x) {
    bsmm_matrix src = job_matrix(x);
    bsmm_matrix dst = job_matrix_create(activation_format(weights), x->rows, x->cols);
    bsmm_quantize_desc desc = BSMM_INIT(bsmm_quantize_desc);
    desc.src = &src, desc.dst = &dst;
    job_check(bsmm_quantize(&desc, NULL), "quantize activations");
    return dst;
}

static void add_storage(const bsmm_matrix *w, job_result *result) {
    uint64_t data_bytes, scale_bytes;
    job_check(bsmm_data_bytes(w, &data_bytes), "size");
    job_check(bsmm_scale_bytes(w, &scale_bytes), "size");
    uint64_t global_bytes = w->global_scale ? sizeof *w->global_scale : 0;
    result->bits += 8 * (double)(data_bytes + scale_bytes + global_bytes);
    result->weights += (double)w->rows * (double)w->cols;
}

/* Measures one layer. `w` holds its quantized weights, and `original` holds the model's weights. */
static void measure_layer(const bsmm_matrix *w, const job_batch *original, const job_batch *x,
                          job_result *result) {
    int64_t outputs = x->rows * w->rows;
    bsmm_matrix a = job_matrix(x), source = job_matrix(original);
    job_batch d = job_batch_create(x->rows, w->rows), wide = job_batch_create(w->rows, w->cols);
    bsmm_matrix wide_matrix = job_matrix(&wide);
    double *exact = job_alloc((size_t)outputs, sizeof *exact);
    bsmm_quantize_report report = BSMM_INIT(bsmm_quantize_report);
    job_check(bsmm_compare(&source, w, &report), "compare");
    job_check(bsmm_dequantize(w, &wide_matrix), "dequantize");
    result->weight_signal += report.signal;
    result->weight_noise += report.noise;
    add_storage(w, result);

    double started = omp_get_wtime();
    multiply(&a, w, &d);
    result->seconds += omp_get_wtime() - started;
    job_multiply_exactly(x, &wide, exact);
    compare(exact, d.values, outputs, &result->exact_signal, &result->exact_noise);
    job_multiply_exactly(x, original, exact);
    compare(exact, d.values, outputs, &result->output_signal, &result->output_noise);
    bsmm_matrix narrow = quantize_activations(w->format, x);
    multiply(&narrow, w, &d);
    compare(exact, d.values, outputs, NULL, &result->both_noise);

    job_matrix_destroy(&narrow);
    free(exact);
    free(wide.values);
    free(d.values);
    result->layers++;
}

job_result job_measure(const bsmm_file *model, const bsmm_file *quantized,
                       const job_batch *tokens) {
    job_result result = {0};
    for (uint64_t i = 0; i < bsmm_file_weight_count(quantized); i++) {
        bsmm_weight weight = BSMM_INIT(bsmm_weight);
        bsmm_matrix w = BSMM_INIT(bsmm_matrix);
        job_check(bsmm_file_weight_at(quantized, i, &weight), "weight");
        if (!weight.format.scale) continue;
        job_check(bsmm_weight_matrix(quantized, i, 0, &w), weight.name);
        job_batch original = job_weight(model, weight.name), second = {0};
        if (original.cols != tokens->cols) second = job_feed_forward(model, weight.name, tokens);
        measure_layer(&w, &original, second.values ? &second : tokens, &result);
        free(second.values);
    }
    return result;
}
