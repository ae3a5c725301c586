/* Declares how `bsmm compare` reads the tensors of a model. */
#ifndef CLI_COMPARE_TENSOR_H
#define CLI_COMPARE_TENSOR_H

#include "compare.h"

/* Describes a weight of a model, or a tensor that belongs to no weight, such as the factors of a
 * norm. */
typedef struct cli_model_tensor {
    const char *name;
    bool is_weight;
    uint64_t index; /* `index` is the index of the weight or of the tensor in the file. */
    /* `format` is the name of the weight's format, or the tensor's type as the file names it. */
    cli_text format;
    uint32_t ndim;
    int64_t shape[BSMM_MAX_DIMS];
} cli_model_tensor;

typedef struct cli_model_tensors {
    cli_model_tensor *items; /* `items` holds the tensors, sorted by name. */
    size_t count;
} cli_model_tensors;

/* Lists the weights of a file and the tensors that belong to no weight. A broken weight is an
 * error. On failure, the function prints a message and returns false. The caller frees the items
 * in any case. */
bool cli_model_tensors_list(const bsmm_file *file, const char *path, cli_model_tensors *tensors);

bool cli_same_shape(const cli_model_tensor *a, const cli_model_tensor *b);
cli_text cli_shape_text(const cli_model_tensor *tensor);
uint64_t cli_element_count(const cli_model_tensor *tensor);

/* Computes the difference of one tensor in two models. If the elements of the tensor have no
 * number format, the function compares the bytes, and the error is 0 or NaN. On failure, the
 * library's error message gives the reason. */
bool cli_compare_tensor(const bsmm_file *const models[2], const cli_model_tensor *const pair[2],
                        uint32_t threads, cli_difference *difference);

#endif
