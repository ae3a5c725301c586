/* The tensors of a model, as `bsmm compare` reads them. */
#ifndef CLI_COMPARE_TENSOR_H
#define CLI_COMPARE_TENSOR_H

#include "compare.h"

/* A weight of a model, or a tensor that belongs to no weight, such as a norm. */
typedef struct cli_model_tensor {
    const char *name;
    bool is_weight;
    uint64_t index;  /* index among the weights or among the tensors of the file */
    cli_text format; /* name of the format, or of the type as the file spells it */
    uint32_t ndim;
    int64_t shape[BSMM_MAX_DIMS];
} cli_model_tensor;

typedef struct cli_model_tensors {
    cli_model_tensor *items; /* sorted by name */
    size_t count;
} cli_model_tensors;

/* Lists the weights of a file and the tensors that belong to none. A broken weight is an error. On
 * failure, prints a message and returns false. The caller frees the items in any case. */
bool cli_model_tensors_list(const bsmm_file *file, const char *path, cli_model_tensors *tensors);

bool cli_same_shape(const cli_model_tensor *a, const cli_model_tensor *b);
cli_text cli_shape_text(const cli_model_tensor *tensor);
uint64_t cli_element_count(const cli_model_tensor *tensor);

/* Computes the difference of one tensor in two models. A tensor whose elements are no numbers of a
 * format is compared byte by byte: its error is 0 or NaN. On failure, the library has a message. */
bool cli_compare_tensor(const bsmm_file *const models[2], const cli_model_tensor *const pair[2],
                        uint32_t threads, cli_difference *difference);

#endif
