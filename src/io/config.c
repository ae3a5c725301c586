/* quantization_config, the JSON that checkpoints carry in config.json. It is asked only where
 * names and types leave a choice: Quark's U8 tensors look like others'. */
#include "io/family.h"

#include <fnmatch.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const off_t config_limit = 1u << 26; /* bytes of config.json */

static json_t *load_beside(const char *folder) {
    char path[PATH_MAX];
    struct stat info;
    bsmm_map map;
    if ((size_t)snprintf(path, sizeof path, "%s/config.json", folder) >= sizeof path) return NULL;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > config_limit)
        return NULL;
    if (bsmm_map_open(path, &map) != BSMM_OK) return NULL;
    json_t *root = json_loadb((const char *)map.data, map.bytes, JSON_REJECT_DUPLICATES, NULL);
    json_t *config = json_incref(json_object_get(root, BSMM_CONFIG_KEY));
    json_decref(root);
    bsmm_map_close(&map);
    return config;
}

void bsmm_config_load(const bsmm_file *file, bsmm_config *config) {
    const char *text = bsmm_file_metadata(file, BSMM_CONFIG_KEY);
    config->root = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (!config->root && file->folder) config->root = load_beside(file->folder);
}

void bsmm_config_free(bsmm_config *config) {
    json_decref(config->root);
    config->root = NULL;
}

/* The quantization of a layer: its own entry, by name or pattern, or the global one. */
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

/* {"weight": {...}} for the evidence "quark fp4". */
static json_t *weight_config(const char *evidence) {
    const char *space = strchr(evidence, ' ');
    return json_pack("{s:{s:s, s:s, s:i, s:s, s:b}}", "weight", "dtype",
                     space ? space + 1 : evidence, "qscheme", "per_group", "group_size", 32,
                     "scale_format", "e8m0", "is_dynamic", 0);
}

char *bsmm_config_write(const char *const *layers, const char *const *evidence, size_t count) {
    json_t *own = json_object();
    for (size_t i = 1; i < count; i++)
        if (strcmp(evidence[i], evidence[0]) != 0)
            json_object_set_new(own, layers[i], weight_config(evidence[i]));
    json_t *root = json_pack("{s:s, s:o, s:o}", "quant_method", "quark", "global_quant_config",
                             weight_config(evidence[0]), "layer_quant_config", own);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}
