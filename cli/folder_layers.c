#include "calibration.h"
#include "common.h"
#include "folder_config.h"
#include "whole.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static char *copy_text(const char *text, size_t length) {
    char *copy = cli_alloc(length + 1, 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

/* Records the names of the tensors that may be input scales. A later step needs them, because a
 * weight and its input scale may be in different shards. */
static void keep_inputs(cli_layers *layers, const bsmm_file *file) {
    bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
    if (!layers->inputs) layers->inputs = json_object();
    for (uint64_t i = 0; !bsmm_file_tensor_at(file, i, &tensor); i++) {
        char *weight = cli_is_input_scale(&tensor) ? cli_input_scale_weight(tensor.name) : NULL;
        if (weight) json_object_set_new(layers->inputs, tensor.name, json_true());
        free(weight);
    }
}

void cli_layers_add(cli_layers *layers, const bsmm_file *file) {
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    keep_inputs(layers, file);
    for (uint64_t i = 0; i < bsmm_file_weight_count(file); i++) {
        if (bsmm_file_weight_at(file, i, &weight)) continue;
        if (layers->count == layers->room) {
            layers->room = 2 * layers->room + 64;
            layers->items = cli_realloc(layers->items, layers->room, sizeof *layers->items);
        }
        layers->items[layers->count++] =
            (cli_layer){.name = copy_text(weight.name, cli_module_length(weight.name)),
                        .family = copy_text(weight.family, strlen(weight.family)),
                        .format = cli_stored_name(file, i, &weight)};
    }
}

void cli_layers_find_inputs(cli_layers *layers) {
    for (size_t i = 0; i < layers->count; i++) {
        cli_layer *layer = &layers->items[i];
        const cli_input_rule *rule = cli_input_rule_of(layer->family, layer->format);
        char *name = rule ? cli_input_scale_name(layer->name, rule->suffix) : NULL;
        layer->has_input = name && json_object_get(layers->inputs, name);
        free(name);
    }
}

void cli_layers_free(cli_layers *layers) {
    for (size_t i = 0; i < layers->count; i++) {
        free((char *)layers->items[i].name);
        free((char *)layers->items[i].family);
    }
    free(layers->items);
    json_decref(layers->inputs);
    *layers = (cli_layers){0};
}
