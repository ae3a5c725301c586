/* Reads quantization_config, the JSON object with which checkpoints describe their quantization in
 * config.json. The reader needs it only if the names and types of a weight's tensors fit several
 * checkpoint families, i.e. naming conventions of quantization tools. For example, the names and
 * types of Quark's U8 tensors also fit ModelOpt. */
#include "io/family.h"
#include "io/json.h"

#include <errno.h>
#include <fnmatch.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* `config_limit` is the largest accepted size of config.json, in bytes. */
static const off_t config_limit = 1u << 26;

/* Stores in `config` the reason why the file's quantization_config cannot be read. The text of the
 * reason lives as long as the file. */
static void note_unreadable(bsmm_file *file, bsmm_config *config, const char *what,
                            const char *why) {
    char text[512];
    snprintf(text, sizeof text, "%s cannot be read: %s", what, why);
    config->unreadable = bsmm_arena_text(&file->arena, text, strlen(text));
    if (!config->unreadable) config->unreadable = "out of memory";
}

static json_t *parse_beside(const bsmm_map *map, char *why, size_t size) {
    json_t *root = bsmm_json_of_python((const char *)map->data, map->bytes, why, size);
    json_t *config = json_incref(json_object_get(root, BSMM_CONFIG_KEY));
    json_decref(root);
    return config;
}

/* Loads config.json from the folder of the model file. A missing config.json is no error: the
 * config is then empty. After any other failure the reason is stored in `config`. */
static void load_beside(bsmm_file *file, bsmm_config *config) {
    char path[PATH_MAX], why[256] = "";
    struct stat info;
    bsmm_map map;
    if ((size_t)snprintf(path, sizeof path, "%s/config.json", file->folder) >= sizeof path) return;
    if (stat(path, &info) != 0 && errno == ENOENT) return;
    if (info.st_size > config_limit) {
        snprintf(why, sizeof why, "it has %lld bytes; at most %lld are read",
                 (long long)info.st_size, (long long)config_limit);
    } else if (bsmm_map_open(path, &map) != BSMM_OK) {
        snprintf(why, sizeof why, "%s", bsmm_error_message());
    } else {
        config->root = parse_beside(&map, why, sizeof why);
        bsmm_map_close(&map);
    }
    if (why[0]) note_unreadable(file, config, "config.json", why);
}

void bsmm_config_load(bsmm_file *file, bsmm_config *config) {
    const char *text = bsmm_file_metadata(file, BSMM_CONFIG_KEY);
    char why[256];
    *config = (bsmm_config){0};
    if (text) config->root = bsmm_json_of_python(text, strlen(text), why, sizeof why);
    if (text && !config->root)
        note_unreadable(file, config, "metadata " BSMM_CONFIG_KEY, why);
    else if (!text && file->folder)
        load_beside(file, config);
}

void bsmm_config_free(bsmm_config *config) {
    json_decref(config->root);
    config->root = NULL;
}

/* Finds the entry of a Quark config that describes the quantization of a layer. The layer may have
 * an entry of its own under its name or under a pattern. If it has none, the result is the global
 * entry. */
static const json_t *layer_config(const json_t *root, const char *layer) {
    json_t *layers = json_object_get(root, "layer_quant_config");
    const json_t *own = json_object_get(layers, layer);
    if (own) return own;
    const char *pattern;
    json_t *value;
    json_object_foreach(layers, pattern, value) if (fnmatch(pattern, layer, 0) == 0) return value;
    return json_object_get(root, "global_quant_config");
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

void bsmm_config_evidence(const bsmm_config *config, const char *layer, char *text, size_t size) {
    const char *method = text_of(config->root, "quant_method");
    text[0] = 0;
    if (strcmp(method, "quark") != 0) return;
    const json_t *weight = json_object_get(layer_config(config->root, layer), "weight");
    const char *dtype = text_of(weight, "dtype"), *element = text_of(weight, "mx_element_dtype");
    bool legacy = strcmp(dtype, "mx") == 0;
    snprintf(text, size, "%s %s%s%s", method, dtype, legacy ? " " : "", legacy ? element : "");
}

/* Makes the entry of a Quark config that describes a weight, {"weight": {...}}. From this entry,
 * bsmm_config_evidence makes the text `evidence` again, such as "quark fp4". */
static json_t *weight_config(const char *evidence) {
    const char *space = strchr(evidence, ' ');
    return json_pack("{s:{s:s, s:s, s:i, s:s, s:b}}", "weight", "dtype",
                     space ? space + 1 : evidence, "qscheme", "per_group", "group_size", 32,
                     "scale_format", "e8m0", "is_dynamic", 0);
}

char *bsmm_config_write(const char *const *layers, const char *const *evidence, size_t count) {
    json_t *own = json_object();
    bool whole = own != NULL;
    for (size_t i = 1; i < count && whole; i++)
        if (strcmp(evidence[i], evidence[0]) != 0)
            whole = json_object_set_new(own, layers[i], weight_config(evidence[i])) == 0;
    json_t *root = json_pack("{s:s, s:o, s:o}", "quant_method", "quark", "global_quant_config",
                             weight_config(evidence[0]), "layer_quant_config", own);
    char *text = whole ? bsmm_json_text(root) : NULL;
    json_decref(root);
    return text;
}
