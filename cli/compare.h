/* Declares functions that compare two models tensor by tensor. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "common.h"

/* Describes a tensor of one or both models. x is a value in the first model, and q is the same
 * value in the second model. */
typedef struct cli_difference {
    const char *name;
    /* `formats` names the format of the tensor in each model. An entry is "" if its model has no
     * tensor of this name. */
    cli_text formats[2];
    /* `sqnr_db` is 10 log10(sum x^2 / sum (x - q)^2), or +Inf if the values are equal. */
    double sqnr_db;
    double max_error; /* `max_error` is the largest |x - q|, or NaN if one of the values is NaN. */
    double relative;  /* `relative` is max_error divided by the largest |x|. */
    /* `clipped` is the fraction of elements whose magnitude exceeds the largest value that their
     * block can represent with its scale. */
    double clipped;
} cli_difference;

typedef struct cli_differences {
    /* `items` lists the tensors. The tensors with the largest differences come first, and tensors
     * that only one model has come last. */
    cli_difference *items;
    /* `count` counts all tensors, and `shared` counts those that both models have. */
    size_t count, shared;
} cli_differences;

/* Tells whether both models have the tensor. */
bool cli_is_shared(const cli_difference *difference);

/* Compares all tensors of two open models. `paths` names the models in messages. The function
 * needs memory for a few copies of one matrix. The names in the result point into the files. On
 * failure, the function prints a message, returns false and leaves the list empty. */
bool cli_compare_models(const bsmm_file *const models[2], const char *const paths[2],
                        uint32_t threads, cli_differences *differences);

/* Draws the differences with gnuplot. Returns NULL on success, otherwise the reason. */
const char *cli_compare_draw(const cli_differences *differences, const char *const paths[2],
                             const char *path);

#endif
