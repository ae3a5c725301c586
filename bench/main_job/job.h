/* Declares the main job of `make run`. It quantizes the linear layers of a model, multiplies them
 * by real token embeddings, and compares the products with products in double. */
#ifndef JOB_H
#define JOB_H

#include <bsmm.h>
#include <stdbool.h>
#include <stddef.h>

enum { JOB_MAX_TOKENS = 128 };

/* Prints "main job: ..." and ends the program with status 1. */
void job_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Ends the program with the library's message if `status` is a failure. `what` says which step
 * failed. */
void job_check(bsmm_status status, const char *what);
void *job_alloc(size_t count, size_t size);

/* Holds a row-major fp32 matrix. job_matrix returns its description for the library. */
typedef struct job_batch {
    int64_t rows, cols;
    float *values;
} job_batch;
bsmm_matrix job_matrix(const job_batch *batch);
job_batch job_batch_create(int64_t rows, int64_t cols);

/* Creates a matrix of a format with its own memory for elements and scales, and a global scale of
 * 1. */
bsmm_matrix job_matrix_create(bsmm_format format, int64_t rows, int64_t cols);
void job_matrix_destroy(bsmm_matrix *matrix);

/* Computes y = x w^T in double, with all threads. y has a row for each row of x and a column for
 * each row of w. */
void job_multiply_exactly(const job_batch *x, const job_batch *w, double *y);

/* Splits a text in lower case into words and returns their number, at most JOB_MAX_TOKENS. The id
 * of a word is its hash modulo `below`. */
size_t job_hash_words(const char *text_path, int64_t below, int64_t *ids);

/* Returns the input of the first layer of a BERT model: the normalized sum of the word, position
 * and type embeddings of the tokens. */
job_batch job_embed(const bsmm_file *model, const int64_t *ids, size_t count);
/* Returns the input of `output_name`, the second linear layer (output.dense) of a feed-forward
 * block. This input is gelu(y), where y is the output of the first linear layer
 * (intermediate.dense) for the input x. */
job_batch job_feed_forward(const bsmm_file *model, const char *output_name, const job_batch *x);

/* Returns an fp32 weight of the model. Its values are in the mapping of the file. */
job_batch job_weight(const bsmm_file *model, const char *name);

/* Writes a model of two layers with random weights. Some channels of the weights are large. */
void job_generate(const char *path);

/* Holds the quality and speed of the model with weights in one format. Each signal is sum x^2 over
 * the exact values x. Each noise is sum (x - y)^2, where y are the values after quantization or
 * computation. */
typedef struct job_result {
    double bits, weights; /* `bits` and `weights` are the stored bits and the number of weights. */
    /* These fields describe the error of quantizing the weights. weight_signal is the sum of the
     * squares of the model's weights, and weight_noise is the sum of the squares of their errors.
     */
    double weight_signal, weight_noise;
    /* These fields describe the outputs of layers. The exact values x are computed in double with
     * the original weights, and the values y are computed with quantized weights. */
    double output_signal, output_noise;
    /* `both_noise` is the noise of the outputs of layers if both weights and activations are
     * quantized. */
    double both_noise;
    /* These fields describe the rounding error of the GEMM alone. A result of the GEMM is compared
     * with the exact sum, which is computed in double from the same quantized values. */
    double exact_signal, exact_noise;
    double seconds; /* `seconds` is the time in seconds of all GEMMs with quantized weights. */
    uint64_t layers;
} job_result;
job_result job_measure(const bsmm_file *model, const bsmm_file *quantized, const job_batch *tokens);

#endif
