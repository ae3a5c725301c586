#include "calibration.h"
#include "common.h"
#include "folder_config.h"
#include <stdlib.h>
#include <string.h>

static char *copy_text(const char *text, size_t length) {
    char *copy = cli_alloc(length + 1, 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

/* Returns the name of a weight's format. A weight of 128 columns has the block of fp8_group128 if
 * it has one scale a row, so the shape of the scale tensor decides. */
static const char *format_of(const bsmm_file *file, uint64_t index, const bsmm_weight *weight) {
    uint64_t tensors[BSMM_WEIGHT_TENSORS];
    bsmm_tensor scale = BSMM_INIT(bsmm_tensor);
    const bool fp32 = weight->format.scale == BSMM_SCALE_F32 && strcmp(weight->family, "bsmm") != 0;
    if (!fp32 || bsmm_weight_tensors(file, index, tensors) ||
        bsmm_file_tensor_at(file, tensors[1], &scale))
        return bsmm_format_name(weight->format);
    if (scale.ndim < 2) return "fp8_tensor";
    return weight->format.block_rows == 1 ? "fp8_channel" : bsmm_format_name(weight->format);
}

static bool has_input(const bsmm_file *file, const cli_layer *layer, const char *weight) {
    const cli_input_rule *rule = cli_input_rule_of(layer->family, layer->format);
    float scale;
    return rule && cli_input_scale_read(file, rule, weight, &scale);
}

void cli_layers_add(cli_layers *layers, const bsmm_file *file) {
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    for (uint64_t i = 0; i < bsmm_file_weight_count(file); i++) {
        if (bsmm_file_weight_at(file, i, &weight)) continue;
        if (layers->count == layers->room) {
            layers->room = 2 * layers->room + 64;
            layers->items = cli_realloc(layers->items, layers->room, sizeof *layers->items);
        }
        const char *end = strrchr(weight.name, '.');
        const bool named = end && !strcmp(end, ".weight");
        const size_t length = named ? (size_t)(end - weight.name) : strlen(weight.name);
        layers->items[layers->count++] =
            (cli_layer){.name = copy_text(weight.name, length),
                        .family = copy_text(weight.family, strlen(weight.family)),
                        .format = format_of(file, i, &weight)};
        cli_layer *layer = &layers->items[layers->count - 1];
        layer->has_input = named && has_input(file, layer, weight.name);
    }
}

void cli_layers_free(cli_layers *layers) {
    for (size_t i = 0; i < layers->count; i++) {
        free((char *)layers->items[i].name);
        free((char *)layers->items[i].family);
    }
    free(layers->items);
    *layers = (cli_layers){0};
}
