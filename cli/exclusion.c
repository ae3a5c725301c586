#include "exclusion.h"
#include "common.h"
#include "folder_config.h"
#include "paths.h"
#include <fnmatch.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions from here on make a list of patterns from the names of tensors. */

/* Tells whether the name of any layer in the list begins with the first `length` characters of
 * `name`, followed by `tail`. */
static bool has_prefix(const json_t *layers, const char *name, size_t length, const char *tail) {
    const json_t *layer;
    size_t i;
    json_array_foreach(layers, i, layer) {
        const char *text = json_string_value(layer);
        if (!strncmp(text, name, length) && !strncmp(text + length, tail, strlen(tail)))
            return true;
    }
    return false;
}

static bool has_name(const json_t *layers, const char *name, size_t length) {
    const json_t *layer;
    size_t i;
    json_array_foreach(layers, i, layer) {
        if (json_string_length(layer) == length && !strncmp(json_string_value(layer), name, length))
            return true;
    }
    return false;
}

/* Adds the shortest pattern that covers the layer `name` and no quantized layer. The pattern
 * becomes a key of `found`. */
static void add_pattern(json_t *found, const char *name, const json_t *quantized) {
    char *pattern = cli_alloc(strlen(name) + 3, 1);
    strcpy(pattern, name);
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        const size_t length = (size_t)(dot - name);
        const bool inside = has_prefix(quantized, name, length, ".");
        const char *tail = !has_prefix(quantized, name, length, "") ? "*" : ".*";
        if (!strcmp(tail, ".*") && (inside || has_name(quantized, name, length))) continue;
        sprintf(pattern, "%.*s%s", (int)length, name, tail);
        break;
    }
    json_object_set_new(found, pattern, json_true());
    free(pattern);
}

static int compare_names(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

json_t *cli_exclusion_of(const json_t *plain, const json_t *quantized) {
    json_t *found = json_object(), *sorted = json_array(), *unused;
    const json_t *layer;
    const char *pattern;
    size_t i;
    json_array_foreach(plain, i, layer) add_pattern(found, json_string_value(layer), quantized);
    const char **patterns = cli_alloc(json_object_size(found) + 1, sizeof *patterns);
    size_t count = 0;
    json_object_foreach(found, pattern, unused) patterns[count++] = pattern;
    qsort(patterns, count, sizeof *patterns, compare_names);
    for (i = 0; i < count; i++)
        json_array_append_new(sorted, json_string(patterns[i]));
    free(patterns);
    json_decref(found);
    return sorted;
}

/* The functions from here on read a list of patterns. */

bool cli_exclusion_covers(const json_t *patterns, const char *layer) {
    const json_t *entry;
    size_t i;
    json_array_foreach(patterns, i, entry) {
        const char *pattern = json_string_value(entry);
        const size_t length = pattern ? strlen(pattern) : 0;
        if (!length) continue;
        if (!fnmatch(pattern, layer, 0)) return true;
        if (!strncmp(pattern, layer, length) && layer[length] == '.') return true;
    }
    return false;
}

/* Reads the JSON file `file` of the model's folder and returns the member `list` of its member
 * `object`, or NULL. jansson parses only that member, because it refuses NaN and half surrogate
 * pairs, which Python writes in other members. */
static json_t *read_list(const char *folder, const char *file, const char *object,
                         const char *list) {
    char *path = cli_path_join(folder, file), *text = cli_read_text(path);
    char *value = text ? cli_config_member(text, object) : NULL;
    json_t *json = value ? json_loads(value, 0, NULL) : NULL;
    if (value && !json)
        cli_warn("%s: the list of excluded layers is ignored, because \"%s\" cannot be read", path,
                 object);
    const char *method = json_string_value(json_object_get(json, "quant_method"));
    const bool other = method && strncmp(method, "modelopt", strlen("modelopt")) != 0;
    json_t *found = other ? NULL : json_object_get(json, list);
    found = json_array_size(found) ? json_incref(found) : NULL;
    json_decref(json);
    free(value);
    free(text);
    free(path);
    return found;
}

json_t *cli_exclusion_read(const char *in) {
    if (!cli_is_folder(in)) return NULL;
    json_t *found = read_list(in, "hf_quant_config.json", "quantization", "exclude_modules");
    if (found) return found;
    return read_list(in, "config.json", "quantization_config", "ignore");
}
