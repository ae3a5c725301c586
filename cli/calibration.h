/* Reads and computes input scales. Some quantization schemes also quantize the input (activations)
 * of each layer, with a scale that was calibrated beforehand. This scale is the layer's input
 * scale. A checkpoint stores it in a tensor of its own. */
#ifndef CLI_CALIBRATION_H
#define CLI_CALIBRATION_H

#include "command.h"

struct json_t;

/* `cli_calibration` holds the largest magnitudes that calibration saw in the inputs of layers. */
typedef struct cli_calibration {
    const char *path;
    /* `layers` is a JSON object that maps the name of each layer to the largest magnitude of its
     * input. */
    struct json_t *layers;
    /* `used` holds the names of the layers whose values the command has used. */
    struct json_t *used;
} cli_calibration;

/* Describes how a checkpoint family stores the input scale of weights of one format. */
typedef struct cli_input_rule {
    const char *family, *format;
    /* An input scale is stored in a tensor. The tensor's name is the weight's name with `suffix`
     * instead of ".weight". */
    const char *suffix;
    uint32_t ndim; /* The scale's tensor has one element and `ndim` dimensions. */
    /* The stored number is the input's largest magnitude divided by `full`. If is_divisor is true,
     * it is `full` divided by the largest magnitude. */
    float full;
    bool is_divisor;
} cli_input_rule;

/* Some checkpoints store beside a layer's weight a number from which the scale of the layer's
 * inputs follows. Returns the rule by which checkpoints of the family `family` compute this number
 * for a weight in the format `format`, such as "nvfp4" or "fp8_tensor". Returns NULL if they store
 * no such number. */
const cli_input_rule *cli_input_rule_of(const char *family, const char *format);
/* Returns suffix number `index` of the suffixes with which names of input scales may end, such as
 * ".input_scale". Returns NULL after the last suffix. */
const char *cli_input_suffix_at(size_t index);
/* Returns the name of the input scale that belongs to a weight: the weight's name with `suffix`
 * instead of ".weight". The caller frees the name. */
char *cli_input_scale_name(const char *weight, const char *suffix);
/* Returns the name of the weight whose input scale is called `name`, or NULL if no input scale can
 * be called `name`. The caller frees the returned name. */
char *cli_input_scale_weight(const char *name);
/* Tells whether a tensor has the type and size of an input scale. */
bool cli_is_input_scale(const bsmm_tensor *tensor);
/* Tells whether a scale and its reciprocal are positive and finite. Inference engines need both
 * numbers: they multiply by one and divide by the other. */
bool cli_input_scale_is_valid(float scale);
/* Returns the input scale for the largest magnitude of a layer's input. */
float cli_input_scale(const cli_input_rule *rule, double amax);
/* Reads the input scale of a weight from a file. *found is false if the file has none. If the scale
 * is not one valid number, the function prints a message and returns false. */
bool cli_input_scale_read(const bsmm_file *file, const cli_input_rule *rule, const char *weight,
                          float *scale, bool *found);

/* Reads a calibration from a JSON file. On failure it prints a message and returns false. */
bool cli_calibration_open(const char *path, cli_calibration *calibration);
void cli_calibration_close(cli_calibration *calibration);
/* Finds the largest magnitude that the calibration file gives for the input of a weight. Inference
 * engines fuse some weights, which have the same input. For such weights, the result is the largest
 * value that the file gives for any of them. If the file has no value for `weight` itself, the
 * function prints a message and returns false. */
bool cli_calibration_find(cli_calibration *calibration, const char *weight, double *amax);
/* Warns of each layer in the calibration file whose value the command has not used. */
void cli_calibration_warn(const cli_calibration *calibration);

#endif
