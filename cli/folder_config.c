#include "folder_config.h"
#include "common.h"
#include <fnmatch.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *copy_text(const char *text, size_t length) {
    char *copy = cli_alloc(length + 1, 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
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
            (cli_layer){copy_text(weight.name, length),
                        copy_text(weight.family, strlen(weight.family)), weight.format};
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

static bool is_quantized(const cli_layer *layer) {
    return strcmp(layer->family, "plain") != 0;
}

static bool has_format(const cli_layer *layer, const char *format) {
    return is_quantized(layer) && !strcmp(bsmm_format_name(layer->format), format);
}

/* Returns the names of the layers that have the given format. */
static json_t *names_of(const cli_layers *layers, const char *format) {
    json_t *names = json_array();
    for (size_t i = 0; i < layers->count; i++)
        if (has_format(&layers->items[i], format))
            json_array_append_new(names, json_string(layers->items[i].name));
    return names;
}

/* Returns the names of the layers that are not quantized. The list leaves out the embedding table
 * of tokens, because engines do not look for a quantized one. The list always contains lm_head,
 * because engines would otherwise look for its scales in models that store no lm_head. */
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

static size_t count_of(const cli_layers *layers, const char *format) {
    size_t count = 0;
    for (size_t i = 0; i < layers->count; i++)
        count += has_format(&layers->items[i], format);
    return count;
}

/* Lists the schemes of compressed-tensors that quantize weights only. They need no calibrated
 * scale of the activations. */
static const struct {
    const char *format, *name, *strategy, *scale_dtype;
    int bits, group;
} schemes[] = {
    {"nvfp4", "nvfp4-pack-quantized", "tensor_group", "torch.float8_e4m3fn", 4, 16},
    {"mxfp4", "mxfp4-pack-quantized", "group", "torch.uint8", 4, 32},
    {"mxfp8", "mxfp8-quantized", "group", "torch.uint8", 8, 32},
};

static json_t *scheme_of(size_t i, json_t *targets) {
    return json_pack("{s:s, s:n, s:n, s:o, s:{s:i, s:i, s:s, s:b, s:b, s:s, s:s}}", "format",
                     schemes[i].name, "input_activations", "output_activations", "targets", targets,
                     "weights", "num_bits", schemes[i].bits, "group_size", schemes[i].group,
                     "strategy", schemes[i].strategy, "symmetric", 1, "dynamic", 0, "type", "float",
                     "scale_dtype", schemes[i].scale_dtype);
}

static json_t *compressed_tensors(const cli_layers *layers) {
    json_t *groups = json_object();
    const char *only = NULL;
    size_t formats = 0;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (count_of(layers, schemes[i].format)) only = schemes[i].name, formats++;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        char group[32];
        if (!count_of(layers, schemes[i].format)) continue;
        snprintf(group, sizeof group, "group_%zu", json_object_size(groups));
        json_t *targets =
            formats == 1 ? json_pack("[s]", "Linear") : names_of(layers, schemes[i].format);
        json_object_set_new(groups, group, scheme_of(i, targets));
    }
    return json_pack("{s:o, s:s, s:n, s:o, s:n, s:s, s:s}", "config_groups", groups, "format",
                     formats == 1 ? only : "mixed-precision", "global_compression_ratio", "ignore",
                     plain_names_of(layers), "kv_cache_scheme", "quant_method",
                     "compressed-tensors", "quantization_status", "compressed");
}

/* Makes ModelOpt's quantization_config, as modelopt/torch/export/convert_hf_config.py does. The
 * algorithm is one that does not quantize activations. */
static json_t *modelopt(const cli_layers *layers) {
    return json_pack("{s:{s:{s:{s:b, s:i, s:s, s:i}, s:[s]}}, s:o, s:s, s:{s:s}, s:s}",
                     "config_groups", "group_0", "weights", "dynamic", 0, "num_bits", 4, "type",
                     "float", "group_size", 16, "targets", "Linear", "ignore",
                     plain_names_of(layers), "quant_algo", "W4A16_NVFP4", "producer", "name",
                     "modelopt", "quant_method", "modelopt");
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
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        const size_t count = count_of(layers, formats[i][0]);
        json_t *names = names_of(layers, formats[i][0]), *name;
        json_t *entry =
            json_pack("{s:{s:s, s:s, s:i, s:s, s:b}, s:n, s:n, s:n}", "weight", "dtype",
                      formats[i][1], "qscheme", "per_group", "group_size", 32, "scale_format",
                      "e8m0", "is_dynamic", 0, "input_tensors", "output_tensors", "bias");
        size_t at;
        json_array_foreach(names, at, name) json_object_set(own, json_string_value(name), entry);
        if (count > largest) {
            json_decref(most);
            most = json_incref(entry), largest = count;
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
} makers[] = {
    {"compressed-tensors", compressed_tensors},
    {"modelopt", modelopt},
    {"deepseek", deepseek},
    {"gpt-oss-hf", gpt_oss},
    {"quark", quark},
};

char *cli_config_of(const cli_layers *layers, const char **why) {
    const char *family = NULL;
    *why = NULL;
    for (size_t i = 0; i < layers->count; i++) {
        const cli_layer *layer = &layers->items[i];
        if (!is_quantized(layer)) continue;
        if (family && strcmp(family, layer->family))
            *why = "its weights are of several families, which no engine reads together";
        family = layer->family;
    }
    if (*why || !family) return NULL;
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        if (strcmp(makers[i].family, family)) continue;
        json_t *config = makers[i].make(layers);
        char *text = config ? json_dumps(config, JSON_INDENT(2)) : NULL;
        json_decref(config);
        if (!text) exit(cli_fail("no memory for config.json"));
        return text;
    }
    *why = "no engine reads the family of its weights by one";
    return NULL;
}

static const char *skip_blanks(const char *at) {
    return at + strspn(at, " \t\r\n");
}

/* Returns the end of the JSON string that begins at `at`. */
static const char *skip_string(const char *at) {
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1]) at++;
    return *at ? at + 1 : at;
}

/* Returns the end of the JSON value that begins at `at`. */
static const char *skip_value(const char *at) {
    int depth = 0;
    while (*at) {
        if (*at == '"') {
            at = skip_string(at);
        } else {
            depth += *at == '{' || *at == '[';
            if (depth == 0 && strchr(",]}", *at)) return at;
            depth -= *at == '}' || *at == ']';
            at++;
        }
        if (depth == 0 && strchr("\"}]", at[-1])) return at;
    }
    return at;
}

/* Describes a member of a JSON object by its text, from the key to the end of the value, with the
 * comma before or after it. */
typedef struct member {
    const char *begin, *end;
} member;

/* Finds the member `key` of the JSON object that begins at `at`. If there is no such member, both
 * pointers of the result point to the closing brace. Returns false if the text is not an object. */
static bool find_member(const char *at, const char *key, member *found) {
    const char *comma = NULL;
    if (*(at = skip_blanks(at)) != '{') return false;
    for (at = skip_blanks(at + 1); *at == '"';) {
        const char *begin = at, *name = at + 1;
        at = skip_string(at);
        const bool same =
            (size_t)(at - name) == strlen(key) + 1 && !strncmp(name, key, strlen(key));
        if (*(at = skip_blanks(at)) != ':') return false;
        at = skip_blanks(skip_value(skip_blanks(at + 1)));
        const bool more = *at == ',';
        if (same) {
            *found = (member){comma ? comma : begin, comma ? at : at + more};
            return true;
        }
        comma = more ? at : NULL;
        at = more ? skip_blanks(at + 1) : at;
    }
    *found = (member){at, at};
    return *at == '}';
}

/* Removes every member `key` from the text of a JSON object. A key may occur twice, and readers
 * take the last one. Returns false if the text is not an object. */
static bool remove_members(char *text, const char *key) {
    member found;
    while (find_member(text, key, &found)) {
        if (found.begin == found.end) return true;
        memmove(text + (found.begin - text), found.end, strlen(found.end) + 1);
    }
    return false;
}

char *cli_config_replace(const char *text, const char *key, const char *value) {
    char *rest = copy_text(text, strlen(text)), *out = NULL;
    size_t size;
    FILE *stream = remove_members(rest, key) ? open_memstream(&out, &size) : NULL;
    if (stream) {
        /* The new member becomes the first one of the object, because a comma can then only follow
           it. */
        const char *first = skip_blanks(rest) + 1;
        fprintf(stream, "%.*s", (int)(first - rest), rest);
        if (value) fprintf(stream, "\n  \"%s\": ", key);
        for (const char *at = value; at && *at; at++)
            fputs(*at == '\n' ? "\n  " : (char[]){*at, 0}, stream);
        if (value) fputs(*skip_blanks(first) != '}' ? "," : "\n", stream);
        fputs(first, stream);
    }
    free(rest);
    return stream && !fclose(stream) ? out : NULL;
}
