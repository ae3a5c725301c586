/* Computes the inputs of the linear layers of a BERT model. The main job does not run the model
 * layer by layer. The input of nearly every linear layer is the normalized embeddings of the
 * tokens. Only the second linear layer of a feed-forward block (output.dense) needs an input of
 * another width. Its input is gelu of what the block's first linear layer (intermediate.dense)
 * computes from the embeddings. */
#include "job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

job_batch job_weight(const bsmm_file *model, const char *name) {
    uint64_t index;
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    job_check(bsmm_file_weight_find(model, name, &index), name);
    job_check(bsmm_weight_matrix(model, index, 0, &m), name);
    if (!m.data || m.format.elem != BSMM_ELEM_F32 || m.order != BSMM_ORDER_ROW)
        job_fail("%s: is not a mapped f32 matrix", name);
    return (job_batch){m.rows, m.cols, m.data};
}

static const float *vector(const bsmm_file *model, const char *name, int64_t length) {
    bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
    job_check(bsmm_file_tensor_find(model, name, &tensor), name);
    if (tensor.elem != BSMM_ELEM_F32 || tensor.ndim != 1 || tensor.shape[0] != length)
        job_fail("%s: is not a vector of %lld f32", name, (long long)length);
    return tensor.data;
}

/* Applies layer normalization: x = (x - mean) / sqrt(variance + 1e-12) * weight + bias. */
static void normalise(float *x, int64_t count, const float *weight, const float *bias) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < count; i++)
        mean += (double)x[i] / (double)count;
    for (int64_t i = 0; i < count; i++)
        variance += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)count;
    double factor = 1 / sqrt(variance + 1e-12);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(((double)x[i] - mean) * factor * (double)weight[i] + (double)bias[i]);
}

job_batch job_embed(const bsmm_file *model, const int64_t *ids, size_t count) {
    job_batch words = job_weight(model, "embeddings.word_embeddings.weight");
    job_batch positions = job_weight(model, "embeddings.position_embeddings.weight");
    job_batch types = job_weight(model, "embeddings.token_type_embeddings.weight");
    const float *weight = vector(model, "embeddings.LayerNorm.weight", words.cols);
    const float *bias = vector(model, "embeddings.LayerNorm.bias", words.cols);
    job_batch x = job_batch_create((int64_t)count, words.cols);
    if (positions.rows < x.rows || positions.cols != x.cols || types.cols != x.cols)
        job_fail("the embeddings' shapes do not fit together");
    for (int64_t r = 0; r < x.rows; r++) {
        if (ids[r] < 0 || ids[r] >= words.rows)
            job_fail("token %lld: the embeddings have %lld", (long long)ids[r],
                     (long long)words.rows);
        float *row = x.values + r * x.cols;
        for (int64_t c = 0; c < x.cols; c++)
            row[c] = words.values[ids[r] * x.cols + c] + positions.values[r * x.cols + c] +
                     types.values[c];
        normalise(row, x.cols, weight, bias);
    }
    return x;
}

static double gelu(double x) {
    return 0.5 * x * (1 + erf(x * 0.7071067811865476));
}

job_batch job_feed_forward(const bsmm_file *model, const char *output_name, const job_batch *x) {
    char name[256], bias_name[256];
    const char *tail = strstr(output_name, "output.dense");
    if (!tail) job_fail("%s: nothing is known of its inputs", output_name);
    int prefix = (int)(tail - output_name);
    snprintf(name, sizeof name, "%.*sintermediate.dense.weight", prefix, output_name);
    snprintf(bias_name, sizeof bias_name, "%.*sintermediate.dense.bias", prefix, output_name);
    job_batch w = job_weight(model, name), y = job_batch_create(x->rows, w.rows);
    const float *bias = vector(model, bias_name, w.rows);
    double *sums = job_alloc((size_t)(x->rows * w.rows), sizeof *sums);
    job_multiply_exactly(x, &w, sums);
    for (int64_t i = 0; i < y.rows * y.cols; i++)
        y.values[i] = (float)gelu(sums[i] + (double)bias[i % y.cols]);
    free(sums);
    return y;
}
