/* Input scales. Some quantization schemes also quantize the input (activations) of each layer, with
 * a scale that was calibrated beforehand. A checkpoint stores this scale in a tensor of its own. */
#ifndef CLI_CALIBRATION_H
#define CLI_CALIBRATION_H

#include "command.h"

struct json_t;

/* The largest magnitudes that calibration saw in the inputs of layers. */
typedef struct cli_calibration {
    const char *path;
    struct json_t *layers; /* A JSON object from names of layers to largest magnitudes. */
    struct json_t *used;   /* The names that a weight used. */
} cli_calibration;

/* Describes how a checkpoint family stores the input scale of weights of one format. */
typedef struct cli_input_rule {
    const char *family, *format;
    /* The tensor's name is the weight's name with this suffix instead of ".weight". */
    const char *suffix;
    uint32_t ndim; /* The tensor has one element and this number of dimensions. */
    /* The scale is the largest magnitude divided by `full`, or the reciprocal for a divisor. */
    float full;
    bool is_divisor;
} cli_input_rule;

/* Returns the rule of a family for a format (whole.h), or NULL if its inputs have no such scale. */
const cli_input_rule *cli_input_rule_of(const char *family, const char *format);
/* Tells whether a name is that of an input scale, and copies the name of its weight. */
bool cli_is_input_scale(const char *name, char *weight, size_t size);
/* Returns the input scale for the largest magnitude of a layer's input. */
float cli_input_scale(const cli_input_rule *rule, double amax);
/* Reads the input scale of a weight from a file. Returns false if the file has none. */
bool cli_input_scale_read(const bsmm_file *file, const cli_input_rule *rule, const char *weight,
                          float *scale);

/* Reads a calibration from a JSON file. On failure it prints a message and returns false. */
bool cli_calibration_open(const char *path, cli_calibration *calibration);
void cli_calibration_close(cli_calibration *calibration);
/* Finds the largest magnitude of the input of a weight. Weights that engines fuse have one input,
 * so the result is the largest value given for any of them. Returns false after printing a message
 * if the file has no value for the weight itself. */
bool cli_calibration_find(cli_calibration *calibration, const char *weight, double *amax);
/* Warns of each name in the file that no weight used. */
void cli_calibration_warn(const cli_calibration *calibration);

#endif
