/* The main job: a model's linear layers, quantized, multiplied with real token embeddings, and
 * compared with double. */
#ifndef JOB_H
#define JOB_H

#include <bsmm.h>
#include <stdbool.h>
#include <stddef.h>

enum { JOB_MAX_TOKENS = 128 };

/* Prints "main job: ..." and ends the program with status 1. */
void job_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* The same with the library's message when status is a failure. */
void job_check(bsmm_status status, const char *what);
void *job_alloc(size_t count, size_t size);

/* A dense row-major fp32 matrix, and its description for the library. */
typedef struct job_batch {
    int64_t rows, cols;
    float *values;
} job_batch;
bsmm_matrix job_matrix(const job_batch *batch);
job_batch job_batch_create(int64_t rows, int64_t cols);

/* A matrix of the format with memory of its own (data, scales and a global scale of 1). */
bsmm_matrix job_matrix_create(bsmm_format format, int64_t rows, int64_t cols);
void job_matrix_destroy(bsmm_matrix *matrix);

/* y[rows of x][rows of w] = x w^T, sums in double, by all threads. */
void job_multiply_exactly(const job_batch *x, const job_batch *w, double *y);

/* Ids of a text's tokens, their number returned. WordPiece of the lower-cased text, up to
 * JOB_MAX_TOKENS, by a vocabulary of one token a line. */
size_t job_tokenize(const char *vocabulary_path, const char *text_path, int64_t *ids);
/* Without a vocabulary: every word's hash, below `below`. */
size_t job_hash_words(const char *text_path, int64_t below, int64_t *ids);

/* What the first layer of a BERT reads: word, position and type embeddings, normalised. */
job_batch job_embed(const bsmm_file *model, const int64_t *ids, size_t count);
/* What a layer's output.dense reads: gelu of its intermediate.dense on x. */
job_batch job_feed_forward(const bsmm_file *model, const char *output_name, const job_batch *x);

/* An fp32 weight of the model, mapped. */
job_batch job_weight(const bsmm_file *model, const char *name);

/* Writes a model of two layers with random weights and some large channels. */
void job_generate(const char *path);

/* What becomes of the model in one format. */
typedef struct job_result {
    double bits, weights;               /* stored bits, values */
    double weight_signal, weight_noise; /* quantized weights against the model's */
    double output_signal, output_noise; /* outputs against the model's in double */
    double both_noise;                  /* the same with quantized activations too */
    double exact_signal, exact_noise;   /* outputs against the same product in double */
    double seconds;                     /* of all products with quantized weights */
    uint64_t layers;
} job_result;
job_result job_measure(const bsmm_file *model, const bsmm_file *quantized, const job_batch *tokens);

#endif
