#include "folder_config.h"
#include "common.h"
#include "exclusion.h"
#include <fnmatch.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool is_quantized(const cli_layer *layer) {
    return strcmp(layer->family, "plain") != 0;
}

/* Returns the names of those quantized layers of the given format that have an input scale (if
 * `has_input` is true) or that have none (if it is false). */
static json_t *names_of(const cli_layers *layers, const char *format, bool has_input) {
    json_t *names = json_array();
    for (size_t i = 0; i < layers->count; i++) {
        const cli_layer *layer = &layers->items[i];
        if (is_quantized(layer) && !strcmp(layer->format, format) && layer->has_input == has_input)
            json_array_append_new(names, json_string(layer->name));
    }
    return names;
}

/* Returns the names of the layers that are not quantized. The list leaves out the token embedding,
 * because engines never look for its scales. It always contains lm_head, because engines look for
 * its scales even if the model stores no lm_head. */
static json_t *plain_names_of(const cli_layers *layers) {
    json_t *names = json_array();
    bool has_head = false;
    for (size_t i = 0; i < layers->count; i++) {
        const cli_layer *layer = &layers->items[i];
        has_head = has_head || !fnmatch("*lm_head", layer->name, 0);
        if (!is_quantized(layer) && fnmatch("*embed_tokens", layer->name, 0))
            json_array_append_new(names, json_string(layer->name));
    }
    if (!has_head) json_array_append_new(names, json_string("lm_head"));
    return names;
}

/* Lists the quantization schemes of the checkpoint family compressed-tensors. The names of the
 * schemes and the texts of their fields belong to the family's config.json, so they stand here and
 * not in the library's table of presets. If a folder's preset has no row here, the command writes
 * no quantization_config. A scheme quantizes weights only, unless the layer has an input scale.
 * `input` then says how the scheme quantizes the input. */
static const struct {
    const char *format, *name, *strategy, *scale_dtype;
    int bits, group, block; /* `group` and `block` are 0 if the strategy has none. */
    const char *input;
} schemes[] = {
    {"nvfp4", "nvfp4-pack-quantized", "tensor_group", "torch.float8_e4m3fn", 4, 16, 0,
     "{\"num_bits\": 4, \"type\": \"float\", \"strategy\": \"tensor_group\", \"group_size\": 16, "
     "\"symmetric\": true, \"dynamic\": \"local\", \"scale_dtype\": \"torch.float8_e4m3fn\"}"},
    {"mxfp4", "mxfp4-pack-quantized", "group", "torch.uint8", 4, 32, 0, NULL},
    {"mxfp6_e2m3", "mxfp6-pack-quantized", "group", "torch.uint8", 6, 32, 0, NULL},
    {"mxfp8", "mxfp8-quantized", "group", "torch.uint8", 8, 32, 0, NULL},
    {"fp8_block128", "float-quantized", "block", NULL, 8, 0, 128, NULL},
    {"fp8_channel", "float-quantized", "channel", NULL, 8, 0, 0, NULL},
    {"fp8_tensor", "float-quantized", "tensor", NULL, 8, 0, 0,
     "{\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"tensor\", \"symmetric\": true, "
     "\"dynamic\": false}"},
};

static bool has_scheme(const cli_layer *layer) {
    for (size_t i = 0; i < COUNT(schemes); i++)
        if (!strcmp(schemes[i].format, layer->format)) return true;
    return false;
}

static json_t *weights_of(size_t i) {
    json_t *weights =
        json_pack("{s:i, s:s, s:b, s:b, s:s}", "num_bits", schemes[i].bits, "strategy",
                  schemes[i].strategy, "symmetric", 1, "dynamic", 0, "type", "float");
    const int block = schemes[i].block;
    if (schemes[i].group)
        json_object_set_new(weights, "group_size", json_integer(schemes[i].group));
    if (block) json_object_set_new(weights, "block_structure", json_pack("[i, i]", block, block));
    if (schemes[i].scale_dtype)
        json_object_set_new(weights, "scale_dtype", json_string(schemes[i].scale_dtype));
    return weights;
}

static json_t *scheme_of(size_t i, bool has_input, json_t *targets) {
    json_t *input = has_input ? json_loads(schemes[i].input, 0, NULL) : json_null();
    return json_pack("{s:s, s:o, s:n, s:o, s:o}", "format", schemes[i].name, "input_activations",
                     input, "output_activations", "targets", targets, "weights", weights_of(i));
}

static json_t *compressed_tensors(const cli_layers *layers) {
    json_t *groups = json_object();
    const char *format = NULL;
    for (size_t k = 0; k < 2 * COUNT(schemes); k++) {
        const size_t i = k / 2;
        json_t *names = names_of(layers, schemes[i].format, k % 2);
        char group[32];
        snprintf(group, sizeof group, "group_%zu", json_object_size(groups));
        if (json_array_size(names)) {
            const bool other = format && strcmp(format, schemes[i].name) != 0;
            format = other ? "mixed-precision" : schemes[i].name;
            json_object_set_new(groups, group, scheme_of(i, k % 2, json_incref(names)));
        }
        json_decref(names);
    }
    if (json_object_size(groups) == 1)
        json_object_set_new(json_object_get(groups, "group_0"), "targets",
                            json_pack("[s]", "Linear"));
    return json_pack("{s:o, s:s, s:n, s:o, s:n, s:s, s:s}", "config_groups", groups, "format",
                     format, "global_compression_ratio", "ignore", plain_names_of(layers),
                     "kv_cache_scheme", "quant_method", "compressed-tensors", "quantization_status",
                     "compressed");
}

/* Lists the names of ModelOpt's quantization algorithms, by the format of the weight and whether
 * the layer has an input scale. */
static const struct {
    const char *format;
    bool has_input;
    const char *algorithm;
    int bits, group; /* `group` is 0 if the algorithm has none. */
} algorithms[] = {
    {"nvfp4", false, "W4A16_NVFP4", 4, 16},
    {"nvfp4", true, "NVFP4", 4, 16},
    {"fp8_tensor", true, "FP8", 8, 0},
};

static bool has_algorithm(const cli_layer *layer) {
    for (size_t i = 0; i < COUNT(algorithms); i++)
        if (!strcmp(algorithms[i].format, layer->format) &&
            algorithms[i].has_input == layer->has_input)
            return true;
    return false;
}

static json_t *numbers_of(size_t i) {
    json_t *numbers =
        json_pack("{s:b, s:i, s:s}", "dynamic", 0, "num_bits", algorithms[i].bits, "type", "float");
    if (algorithms[i].group)
        json_object_set_new(numbers, "group_size", json_integer(algorithms[i].group));
    return numbers;
}

/* Makes the entry of config_groups for a quantization algorithm, as ModelOpt writes it. */
static json_t *group_of(size_t i, json_t *targets) {
    json_t *group = json_object();
    if (algorithms[i].has_input) json_object_set_new(group, "input_activations", numbers_of(i));
    json_object_set_new(group, "weights", numbers_of(i));
    json_object_set_new(group, "targets", targets);
    return group;
}

/* Makes the JSON object that says which algorithm quantized a layer, for the list of quantized
 * layers of ModelOpt. */
static json_t *algorithm_of(size_t i) {
    json_t *object = json_pack("{s:s}", "quant_algo", algorithms[i].algorithm);
    if (algorithms[i].group)
        json_object_set_new(object, "group_size", json_integer(algorithms[i].group));
    return object;
}

/* Fills `groups` (ModelOpt's config_groups) with one entry for each algorithm, and `quantized` (its
 * quantized_layers) with one entry for each quantized layer. Returns the index of the last
 * algorithm that a layer uses. */
static size_t list_algorithms(const cli_layers *layers, json_t *groups, json_t *quantized) {
    size_t last = 0;
    for (size_t i = 0; i < COUNT(algorithms); i++) {
        json_t *names = names_of(layers, algorithms[i].format, algorithms[i].has_input), *name;
        char key[32];
        size_t at;
        snprintf(key, sizeof key, "group_%zu", json_object_size(groups));
        json_array_foreach(names, at, name)
            json_object_set_new(quantized, json_string_value(name), algorithm_of(i));
        if (json_array_size(names)) {
            json_object_set_new(groups, key, group_of(i, json_incref(names)));
            last = i;
        }
        json_decref(names);
    }
    return last;
}

/* Returns ModelOpt's patterns of the layers that are not quantized. The keys of `quantized` are the
 * names of the quantized layers. */
static json_t *excluded_by(const cli_layers *layers, json_t *quantized) {
    json_t *plain = plain_names_of(layers), *names = json_array(), *unused;
    const char *name;
    json_object_foreach(quantized, name, unused) json_array_append_new(names, json_string(name));
    json_t *patterns = cli_exclusion_of(plain, names);
    json_decref(plain);
    json_decref(names);
    return patterns;
}

/* Makes ModelOpt's quantization_config, as modelopt/torch/export/convert_hf_config.py does. */
static json_t *modelopt(const cli_layers *layers) {
    json_t *groups = json_object(), *quantized = json_object();
    const size_t last = list_algorithms(layers, groups, quantized);
    const bool mixed = json_object_size(groups) > 1;
    if (!mixed)
        json_object_set_new(json_object_get(groups, "group_0"), "targets",
                            json_pack("[s]", "Linear"));
    json_t *config = json_pack("{s:o, s:o, s:s, s:{s:s}, s:s}", "config_groups", groups, "ignore",
                               excluded_by(layers, quantized), "quant_algo",
                               mixed ? "MIXED_PRECISION" : algorithms[last].algorithm, "producer",
                               "name", "modelopt", "quant_method", "modelopt");
    if (mixed) json_object_set(config, "quantized_layers", quantized);
    json_decref(quantized);
    return config;
}

/* Makes hf_quant_config.json, as modelopt/torch/export/quant_utils.py does. */
static json_t *modelopt_second(const cli_layers *layers) {
    json_t *groups = json_object(), *quantized = json_object();
    const size_t last = list_algorithms(layers, groups, quantized);
    json_t *details = json_object_size(groups) > 1
                          ? json_pack("{s:s, s:O}", "quant_algo", "MIXED_PRECISION",
                                      "quantized_layers", quantized)
                          : algorithm_of(last);
    json_object_set_new(details, "kv_cache_quant_algo", json_null());
    json_object_set_new(details, "exclude_modules", excluded_by(layers, quantized));
    json_decref(groups);
    json_decref(quantized);
    return json_pack("{s:{s:s}, s:o}", "producer", "name", "modelopt", "quantization", details);
}

/* Makes the quantization_config that config.json of DeepSeek-V3 has. */
static json_t *deepseek(const cli_layers *layers) {
    return json_pack("{s:s, s:s, s:s, s:[i, i], s:o}", "activation_scheme", "dynamic", "fmt",
                     "e4m3", "quant_method", "fp8", "weight_block_size", 128, 128,
                     "modules_to_not_convert", plain_names_of(layers));
}

/* Makes the quantization_config that config.json of gpt-oss-20b has. */
static json_t *gpt_oss(const cli_layers *layers) {
    return json_pack("{s:s, s:o}", "quant_method", "mxfp4", "modules_to_not_convert",
                     plain_names_of(layers));
}

/* Makes Quark's quantization_config, as quark/torch/export/config does. A dtype such as "fp6_e2m3"
 * is the format's name without "mx". */
static json_t *quark(const cli_layers *layers) {
    static const char *const formats[][2] = {
        {"mxfp4", "fp4"}, {"mxfp6_e2m3", "fp6_e2m3"}, {"mxfp6_e3m2", "fp6_e3m2"}};
    json_t *own = json_object(), *most = NULL;
    size_t largest = 0;
    for (size_t i = 0; i < COUNT(formats); i++) {
        json_t *names = names_of(layers, formats[i][0], false), *name;
        json_t *entry =
            json_pack("{s:{s:s, s:s, s:i, s:s, s:b}, s:n, s:n, s:n}", "weight", "dtype",
                      formats[i][1], "qscheme", "per_group", "group_size", 32, "scale_format",
                      "e8m0", "is_dynamic", 0, "input_tensors", "output_tensors", "bias");
        size_t at;
        json_array_foreach(names, at, name) json_object_set(own, json_string_value(name), entry);
        if (at > largest) {
            json_decref(most);
            most = json_incref(entry), largest = at;
        }
        json_decref(entry);
        json_decref(names);
    }
    /* layer_quant_config contains an entry for a layer only if it differs from the global entry. */
    const char *layer;
    json_t *entry;
    void *next;
    json_object_foreach_safe(own, next, layer, entry) {
        if (entry == most) json_object_del(own, layer);
    }
    return json_pack("{s:s, s:o, s:o, s:o, s:{s:s}}", "quant_method", "quark",
                     "global_quant_config", most, "layer_quant_config", own, "exclude",
                     plain_names_of(layers), "export", "weight_format", "real_quantized");
}

static const struct {
    const char *family;
    json_t *(*make)(const cli_layers *layers);
    /* `make_second` makes the content of hf_quant_config.json, a second file with the
     * configuration. It is NULL if the checkpoint family has only config.json. */
    json_t *(*make_second)(const cli_layers *layers);
    /* `describes` tells whether the configuration can describe a layer. It is NULL if the
     * configuration describes all layers. */
    bool (*describes)(const cli_layer *layer);
} makers[] = {
    {"compressed-tensors", compressed_tensors, NULL, has_scheme},
    {"modelopt", modelopt, modelopt_second, has_algorithm},
    {"deepseek", deepseek, NULL, NULL},
    {"gpt-oss-hf", gpt_oss, NULL, NULL},
    {"quark", quark, NULL, NULL},
};

/* Returns the checkpoint family of the quantized layers. If the layers have several families,
 * returns NULL and stores the reason in *why. */
static const char *family_of(const cli_layers *layers, const char **why) {
    const char *family = NULL;
    *why = NULL;
    for (size_t i = 0; i < layers->count; i++) {
        const cli_layer *layer = &layers->items[i];
        if (!is_quantized(layer)) continue;
        if (family && strcmp(family, layer->family))
            *why = "its weights are of several families, which no engine reads together";
        family = layer->family;
    }
    return *why ? NULL : family;
}

/* Tells whether the quantization_config that makers[maker] writes can describe all quantized
 * layers. If it cannot, *why names a format for which it has no scheme. */
static bool describes_all(size_t maker, const cli_layers *layers, const char **why) {
    static char reason[200];
    for (size_t i = 0; i < layers->count && makers[maker].describes; i++) {
        const cli_layer *layer = &layers->items[i];
        if (!is_quantized(layer) || makers[maker].describes(layer)) continue;
        snprintf(reason, sizeof reason, "the family %s has no scheme for %s %s input scales",
                 layer->family, layer->format, layer->has_input ? "with" : "without");
        *why = reason;
        return false;
    }
    return true;
}

/* Returns the number of the entry of `makers` that makes the configuration for these layers. If no
 * entry fits, the result is COUNT(makers). *why is then the reason, or NULL if no layer is
 * quantized. */
static size_t find_maker(const cli_layers *layers, const char **why) {
    const char *family = family_of(layers, why);
    size_t i = 0;
    while (family && i < COUNT(makers) && strcmp(makers[i].family, family))
        i++;
    if (family && i == COUNT(makers)) *why = "no engine reads the family of its weights by one";
    return family && i < COUNT(makers) && describes_all(i, layers, why) ? i : COUNT(makers);
}

/* Returns the text of a JSON object and frees the object. */
static char *text_of(json_t *config) {
    char *text = config ? json_dumps(config, JSON_INDENT(2)) : NULL;
    json_decref(config);
    if (!text) exit(cli_fail("no memory for config.json"));
    return text;
}

char *cli_config_of(const cli_layers *layers, const char **why) {
    const size_t i = find_maker(layers, why);
    return i < COUNT(makers) ? text_of(makers[i].make(layers)) : NULL;
}

char *cli_second_config_of(const cli_layers *layers) {
    const char *why;
    const size_t i = find_maker(layers, &why);
    return i < COUNT(makers) && makers[i].make_second ? text_of(makers[i].make_second(layers))
                                                      : NULL;
}
