/* The main job of `make run`: it quantizes the linear layers of a model, multiplies them by real
 * token embeddings, and compares the results with double. */
#ifndef JOB_H
#define JOB_H

#include <bsmm.h>
#include <stdbool.h>
#include <stddef.h>

enum { JOB_MAX_TOKENS = 128 };

/* Prints "main job: ..." and ends the program with status 1. */
void job_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Ends the program with the library's message if `status` is a failure. */
void job_check(bsmm_status status, const char *what);
void *job_alloc(size_t count, size_t size);

/* A dense row-major fp32 matrix. job_matrix returns its description for the library. */
typedef struct job_batch {
    int64_t rows, cols;
    float *values;
} job_batch;
bsmm_matrix job_matrix(const job_batch *batch);
job_batch job_batch_create(int64_t rows, int64_t cols);

/* Creates a matrix of a format with memory of its own: data, scales, and a global scale of 1. */
bsmm_matrix job_matrix_create(bsmm_format format, int64_t rows, int64_t cols);
void job_matrix_destroy(bsmm_matrix *matrix);

/* Computes y[rows of x][rows of w] = x w^T in double, with all threads. */
void job_multiply_exactly(const job_batch *x, const job_batch *w, double *y);

/* Tokenizes a text and returns the number of ids. It applies WordPiece to the lower-case text, with
 * a vocabulary of one token per line, and stops at JOB_MAX_TOKENS. */
size_t job_tokenize(const char *vocabulary_path, const char *text_path, int64_t *ids);
/* Tokenizes a text without a vocabulary: the id of a word is its hash modulo `below`. */
size_t job_hash_words(const char *text_path, int64_t below, int64_t *ids);

/* Returns the input of the first layer of a BERT: the normalized sum of word, position and type
 * embeddings. */
job_batch job_embed(const bsmm_file *model, const int64_t *ids, size_t count);
/* Returns the input of a layer's output.dense: the gelu of its intermediate.dense applied to x. */
job_batch job_feed_forward(const bsmm_file *model, const char *output_name, const job_batch *x);

/* Returns an fp32 weight of the model, mapped from the file. */
job_batch job_weight(const bsmm_file *model, const char *name);

/* Writes a model of two layers with random weights and some large channels. */
void job_generate(const char *path);

/* Measured quality and speed of the model in one format. */
typedef struct job_result {
    double bits, weights; /* the number of stored bits, and the number of weights */
    /* signal and noise of the quantized weights, compared with the model's own weights */
    double weight_signal, weight_noise;
    /* signal and noise of the outputs, compared with the model's outputs in double */
    double output_signal, output_noise;
    double both_noise; /* the noise of the outputs if activations are quantized too */
    /* signal and noise of the outputs, compared with the same GEMM in double */
    double exact_signal, exact_noise;
    double seconds; /* the time of all GEMMs with quantized weights, in seconds */
    uint64_t layers;
} job_result;
job_result job_measure(const bsmm_file *model, const bsmm_file *quantized, const job_batch *tokens);

#endif
