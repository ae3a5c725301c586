/* Parses the options --format, --tensor, --recipe and --family of `bsmm quantize`, which together
 * decide the format of each weight. */
#ifndef CLI_QUANTIZE_CHOICE_H
#define CLI_QUANTIZE_CHOICE_H

#include "device.h"
#include "report.h"
#include "transfer.h"

/* Describes the format to which the command quantizes some weights, and names these weights by a
 * pattern. */
typedef struct quantize_choice {
    char *pattern; /* `pattern` is the pattern that the names of the weights must match. */
    bsmm_format format;
    const char *recipe;
    /* `global_kind` is the kind of global scale that the recipe writes, i.e. multiplier or divisor
     * (bsmm_global). */
    uint32_t global_kind;
    bool used; /* `used` is true if this choice decides the format of at least one weight. */
} quantize_choice;

typedef struct quantize_values {
    cli_transfer_values transfer;
    bsmm_format format;
    cli_list tensors; /* `tensors` holds the options --tensor, each of which is "PATTERN=FORMAT". */
    /* The list begins with the option --format, and the options --tensor follow. For each weight,
       the last choice with a matching pattern applies. */
    quantize_choice *choices;
    size_t choice_count;
    cli_layout_values layout;
    const char *recipe, *family, *device, *input_scales;
    cli_calibration *calibration; /* `calibration` is NULL if the user gave no --input-scales. */
    /* `excluded` holds the patterns with which ModelOpt's configuration names the layers that are
     * not quantized (exclusion.h). */
    const struct json_t *excluded;
    bench_device *opened;
    int64_t threads;
    bool pow2, one_level, report, fidelity;
    /* `reports` collects the error reports of all matrices of the current weight, for one row of
     * the output table. */
    cli_report *reports;
    /* `amax` holds the largest magnitude of the weights that share a scale with this weight, or 0
     * if there are none. */
    float *amax;
} quantize_values;

/* Parses and checks all choices of a format, i.e. the options --format and --tensor. Fails with a
 * usage error if the options contradict each other. */
int quantize_take_choices(quantize_values *options);
void quantize_free_choices(const quantize_values *options);
/* Returns the name of the format of a choice, such as "nvfp4" or "fp8_tensor". */
const char *quantize_format_name(const quantize_choice *to);

#endif
