/* Compares two models tensor by tensor. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "common.h"

/* A tensor of one or both models. x is its value in the first model, q its value in the second. */
typedef struct cli_difference {
    const char *name;
    /* format of the tensor in each model; "" if the model has no tensor of this name */
    cli_text formats[2];
    double sqnr_db;   /* 10 log10(sum x^2 / sum (x - q)^2); +Inf if the values are equal */
    double max_error; /* largest |x - q|; NaN if one of the values is NaN */
    double relative;  /* max_error divided by the largest |x| */
    double clipped;   /* fraction of elements above the largest value of their block */
} cli_difference;

typedef struct cli_differences {
    cli_difference *items; /* the worst first, and at the end those of one model only */
    size_t count, shared;  /* number of items; number of items that both models have */
} cli_differences;

/* Tells whether both models have the tensor. */
bool cli_is_shared(const cli_difference *difference);

/* Compares all tensors of two open models. `paths` names the models in messages. Memory is needed
 * for a few copies of one matrix. The names point into the files. On failure, prints a message and
 * returns false; the list is then empty. */
bool cli_compare_models(const bsmm_file *const models[2], const char *const paths[2],
                        uint32_t threads, cli_differences *differences);

/* Draws the differences with gnuplot. Returns NULL on success, otherwise the reason. */
const char *cli_compare_draw(const cli_differences *differences, const char *const paths[2],
                             const char *path);

#endif
