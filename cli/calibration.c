#include "calibration.h"
#include "common.h"
#include "fused.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lists the rules by which checkpoint families store input scales, i.e. scales of a layer's input
 * that were calibrated beforehand. The columns are the fields of cli_input_rule. 2688 = 6 * 448 is
 * the largest value that nvfp4 elements and block scales can represent before the global scale is
 * applied, and 448 is that of e4m3. The sources are ModelOpt's export/quant_utils.py,
 * compressed-tensors' helpers.py (generate_gparam) and llama.cpp's conversion of ModelOpt's
 * files. */
static const cli_input_rule rules[] = {
    {"modelopt", "nvfp4", ".input_scale", 0, 2688, false},
    {"modelopt", "fp8_tensor", ".input_scale", 0, 448, false},
    {"gguf", "nvfp4", ".input_scale", 1, 2688, false},
    {"compressed-tensors", "nvfp4", ".input_global_scale", 1, 2688, true},
    {"compressed-tensors", "fp8_tensor", ".input_scale", 1, 448, false},
};
enum { RULES = sizeof rules / sizeof rules[0] };

const cli_input_rule *cli_input_rule_of(const char *family, const char *format) {
    for (size_t i = 0; family && i < RULES; i++)
        if (!strcmp(rules[i].family, family) && !strcmp(rules[i].format, format)) return &rules[i];
    return NULL;
}

const char *cli_input_suffix_at(size_t index) {
    static const char *const suffixes[] = {".input_scale", ".input_global_scale"};
    return index < sizeof suffixes / sizeof suffixes[0] ? suffixes[index] : NULL;
}

/* Returns the first `length` bytes of a name, followed by `end`. */
static char *join(const char *name, size_t length, const char *end) {
    char *joined = cli_alloc(length + strlen(end) + 1, 1);
    memcpy(joined, name, length);
    strcpy(joined + length, end);
    return joined;
}

char *cli_input_scale_name(const char *weight, const char *suffix) {
    return join(weight, cli_module_length(weight), suffix);
}

char *cli_input_scale_weight(const char *name) {
    const char *suffix;
    for (size_t i = 0; (suffix = cli_input_suffix_at(i)); i++)
        if (cli_ends_with(name, suffix))
            return join(name, strlen(name) - strlen(suffix), ".weight");
    return NULL;
}

bool cli_is_input_scale(const bsmm_tensor *tensor) {
    return !strcmp(tensor->dtype, "F32") && tensor->bytes == sizeof(float);
}

bool cli_input_scale_is_valid(float scale) {
    return scale > 0 && isfinite(scale) && isfinite(1 / scale) && 1 / scale > 0;
}

/* Computes an input scale from the largest magnitude of the layer's input. The division is in fp32,
 * as in ModelOpt and compressed-tensors. */
float cli_input_scale(const cli_input_rule *rule, double amax) {
    return rule->is_divisor ? rule->full / (float)amax : (float)amax / rule->full;
}

/* Prints the message that a tensor is not a single number. The message contains the tensor's type
 * and shape. */
static void fail_shape(const char *name, const bsmm_tensor *tensor) {
    char shape[128] = "";
    for (uint32_t i = 0; i < tensor->ndim && strlen(shape) + 24 < sizeof shape; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", i ? ", " : "",
                 (long long)tensor->shape[i]);
    cli_fail("%s: is %s [%s]; must be one F32 number", name, tensor->dtype, shape);
}

bool cli_input_scale_read(const bsmm_file *file, const cli_input_rule *rule, const char *weight,
                          float *scale, bool *found) {
    bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
    char *name = cli_input_scale_name(weight, rule->suffix);
    *found = !bsmm_file_tensor_find(file, name, &tensor);
    bool good = !*found || cli_is_input_scale(&tensor);
    if (!good) fail_shape(name, &tensor);
    if (*found && good) {
        memcpy(scale, tensor.data, sizeof *scale);
        good = cli_input_scale_is_valid(*scale);
        if (!good)
            cli_fail("%s: value is %g; must be a positive number with a finite reciprocal", name,
                     (double)*scale);
    }
    free(name);
    return good;
}

/* Checks that every value of the calibration file is a positive float. */
static bool check(const char *path, json_t *layers) {
    const char *layer;
    json_t *value;
    if (!json_is_object(layers)) {
        cli_fail("%s: is no JSON object of names of layers and largest magnitudes", path);
        return false;
    }
    json_object_foreach(layers, layer, value) {
        const float amax = (float)json_number_value(value);
        if (json_is_number(value) && isfinite(amax) && amax > 0) continue;
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        cli_fail("%s: \"%s\": value is %.100s; must be a positive number, the largest magnitude "
                 "of the layer's input",
                 path, layer, text ? text : "?");
        free(text);
        return false;
    }
    return true;
}

bool cli_calibration_open(const char *path, cli_calibration *calibration) {
    json_error_t error;
    *calibration = (cli_calibration){.path = path};
    json_t *layers = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!layers) cli_fail("%s: line %d: %s", path, error.line, error.text);
    if (!layers || !check(path, layers)) {
        json_decref(layers);
        return false;
    }
    calibration->layers = layers;
    calibration->used = json_object();
    return true;
}

void cli_calibration_close(cli_calibration *calibration) {
    json_decref(calibration->layers);
    json_decref(calibration->used);
}

/* Returns the largest magnitude that the calibration file gives for the layer of this weight, or 0
 * if the file does not list the layer. */
static double value_of(cli_calibration *calibration, const char *weight) {
    char *layer = join(weight, cli_module_length(weight), "");
    const json_t *value = json_object_get(calibration->layers, layer);
    if (value) json_object_set_new(calibration->used, layer, json_true());
    free(layer);
    return json_number_value(value);
}

bool cli_calibration_find(cli_calibration *calibration, const char *weight, double *amax) {
    char *name;
    *amax = value_of(calibration, weight);
    if (*amax == 0) {
        cli_fail("%s: --input-scales: %s has no value for this layer", weight, calibration->path);
        return false;
    }
    for (int k = 0; (name = cli_fused_name(weight, k)); k++) {
        *amax = fmax(*amax, value_of(calibration, name));
        free(name);
    }
    return true;
}

void cli_calibration_warn(const cli_calibration *calibration) {
    const char *layer;
    json_t *value;
    json_object_foreach(calibration->layers, layer, value) {
        if (!json_object_get(calibration->used, layer))
            cli_warn("--input-scales: '%s' in %s is the name of no layer whose input gets a scale",
                     layer, calibration->path);
    }
}
