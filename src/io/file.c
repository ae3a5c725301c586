/* Implements an open file (bsmm_file): its lists of tensors and metadata, and the functions that
 * search them. */
#include "io/io.h"

#include <stdlib.h>
#include <string.h>

void bsmm_file_clear(bsmm_file *file) {
    for (uint64_t i = 0; i < file->map_count; i++)
        bsmm_map_close(&file->maps[i]);
    bsmm_arena_free(&file->arena);
    free(file->maps);
    free(file->tensors);
    free(file->by_name);
    free(file->metadata);
    free(file->weights);
    free(file->weights_by_name);
    *file = (bsmm_file){0};
}

bsmm_status bsmm_file_map(bsmm_file *file, const char *path, bsmm_map *map) {
    BSMM_TRY(bsmm_grow((void **)&file->maps, file->map_count, &file->map_room, sizeof *file->maps));
    const char *kept = bsmm_arena_text(&file->arena, path, strlen(path));
    if (!kept) return bsmm_fail_memory();
    BSMM_TRY(bsmm_map_open(kept, map));
    file->maps[file->map_count++] = *map;
    return BSMM_OK;
}

void bsmm_file_close(bsmm_file *file) {
    if (!file) return;
    bsmm_file_clear(file);
    free(file);
}

bsmm_status bsmm_file_add_tensor(bsmm_file *file, const bsmm_tensor *tensor) {
    BSMM_TRY(bsmm_grow((void **)&file->tensors, file->tensor_count, &file->tensor_room,
                       sizeof *file->tensors));
    file->tensors[file->tensor_count] = *tensor;
    file->tensors[file->tensor_count++].struct_size = (uint32_t)sizeof *tensor;
    return BSMM_OK;
}

bsmm_status bsmm_file_add_metadata(bsmm_file *file, const char *key, size_t key_length,
                                   const bsmm_stored_value *value) {
    const char *text = (const char *)value->at;
    bool is_text = value->type == BSMM_GGUF_STRING && bsmm_text_is_utf8(text, value->count);
    BSMM_TRY(bsmm_grow((void **)&file->metadata, file->metadata_count, &file->metadata_room,
                       sizeof *file->metadata));
    bsmm_pair pair = {.key = bsmm_arena_text(&file->arena, key, key_length),
                      .stored = *value,
                      .place = file->metadata_count};
    if (is_text) pair.value = bsmm_arena_text(&file->arena, text, value->count);
    if (!pair.key || (is_text && !pair.value)) return bsmm_fail_memory();
    if (is_text) pair.stored.at = (const uint8_t *)pair.value;
    file->metadata[file->metadata_count++] = pair;
    return BSMM_OK;
}

bsmm_status bsmm_file_add_text(bsmm_file *file, const char *key, const char *text, size_t length) {
    const bsmm_stored_value value = {
        .at = (const uint8_t *)text, .count = length, .type = BSMM_GGUF_STRING};
    return bsmm_file_add_metadata(file, key, strlen(key), &value);
}

bsmm_status bsmm_file_take_tensor(bsmm_file *file, const bsmm_tensor *from) {
    bsmm_tensor tensor = *from;
    tensor.name = bsmm_arena_text(&file->arena, from->name, strlen(from->name));
    return tensor.name ? bsmm_file_add_tensor(file, &tensor) : bsmm_fail_memory();
}

bsmm_status bsmm_file_take_metadata(bsmm_file *file, const bsmm_file *from) {
    for (uint64_t i = 0; i < from->metadata_count; i++) {
        const bsmm_pair *pair = &from->metadata[i];
        BSMM_TRY(bsmm_file_add_metadata(file, pair->key, strlen(pair->key), &pair->stored));
    }
    return BSMM_OK;
}

static bsmm_status index_tensors(bsmm_file *file) {
    file->by_name = malloc((file->tensor_count + 1) * sizeof *file->by_name);
    if (!file->by_name) return bsmm_fail_memory();
    for (uint64_t i = 0; i < file->tensor_count; i++)
        file->by_name[i] = (bsmm_name){file->tensors[i].name, i};
    BSMM_TRY(bsmm_names_sort(file->by_name, file->tensor_count));
    for (uint64_t i = 1; i < file->tensor_count; i++) {
        const char *name = file->by_name[i].name;
        if (strcmp(file->by_name[i - 1].name, name) == 0)
            return bsmm_fail(BSMM_E_FORMAT, "%.200s: two tensors have this name", name);
    }
    return BSMM_OK;
}

/* Copies the metadata entries in sorted order. A model of several files (`merged`) has several
 * headers, which may contain the same key; the first entry of the key is then kept. In any other
 * file, two entries with one key are an error. */
static bsmm_status take_pairs(bsmm_file *file, const bsmm_name *order, bsmm_pair *to) {
    uint64_t kept = 0;
    for (uint64_t i = 0; i < file->metadata_count; i++) {
        bsmm_pair pair = file->metadata[order[i].index];
        bool again = kept && strcmp(to[kept - 1].key, pair.key) == 0;
        if (again && !file->merged)
            return bsmm_fail(BSMM_E_FORMAT, "%.200s: two metadata values have this key", pair.key);
        if (!again) to[kept++] = pair;
    }
    memcpy(file->metadata, to, kept * sizeof *to);
    file->metadata_count = kept;
    return BSMM_OK;
}

static bsmm_status sort_metadata(bsmm_file *file, bsmm_name *order, bsmm_pair *sorted) {
    if (!order || !sorted) return bsmm_fail_memory();
    for (uint64_t i = 0; i < file->metadata_count; i++)
        order[i] = (bsmm_name){file->metadata[i].key, i};
    BSMM_TRY(bsmm_names_sort(order, file->metadata_count));
    return take_pairs(file, order, sorted);
}

static bsmm_status index_metadata(bsmm_file *file) {
    if (file->metadata_count == 0) return BSMM_OK;
    bsmm_name *order = malloc(file->metadata_count * sizeof *order);
    bsmm_pair *sorted = malloc(file->metadata_count * sizeof *sorted);
    bsmm_status status = sort_metadata(file, order, sorted);
    free(order);
    free(sorted);
    return status;
}

bsmm_status bsmm_file_index(bsmm_file *file) {
    BSMM_TRY(index_tensors(file));
    return index_metadata(file);
}

uint64_t bsmm_file_sibling(const bsmm_file *file, const char *name, size_t base,
                           const char *suffix) {
    uint64_t at = bsmm_names_find(file->by_name, file->tensor_count, name, base, suffix);
    if (at == file->tensor_count || !bsmm_name_is(file->by_name[at].name, name, base, suffix))
        return BSMM_NO_TENSOR;
    return file->by_name[at].index;
}

uint64_t bsmm_file_lookup(const bsmm_file *file, const char *name) {
    return bsmm_file_sibling(file, name, strlen(name), "");
}

static int compare_key(const void *key, const void *pair) {
    return strcmp(key, ((const bsmm_pair *)pair)->key);
}

const bsmm_pair *bsmm_file_pair(const bsmm_file *file, const char *key) {
    if (!file || !key || file->metadata_count == 0) return NULL;
    return bsearch(key, file->metadata, file->metadata_count, sizeof *file->metadata, compare_key);
}

const char *bsmm_file_metadata(const bsmm_file *file, const char *key) {
    const bsmm_pair *pair = bsmm_file_pair(file, key);
    return pair ? pair->value : NULL;
}

bsmm_status bsmm_file_metadata_at(const bsmm_file *file, uint64_t index, const char **key,
                                  const char **value) {
    if (!file || !key || !value)
        return bsmm_fail(BSMM_E_INVALID, "file, key, value: one is NULL; all must be given");
    if (index >= file->metadata_count)
        return bsmm_fail(BSMM_E_NOT_FOUND,
                         "index: value is %llu; the file has %llu metadata values",
                         (unsigned long long)index, (unsigned long long)file->metadata_count);
    *key = file->metadata[index].key;
    *value = file->metadata[index].value;
    return BSMM_OK;
}

const char *bsmm_file_kind(const bsmm_file *file) {
    return file ? file->kind : "";
}

bsmm_status bsmm_file_part_at(const bsmm_file *file, uint64_t index, bsmm_file_part *out) {
    if (!file) return bsmm_fail(BSMM_E_INVALID, "file: value is NULL; must be an open file");
    if (index >= file->map_count)
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %llu; the file has %llu parts",
                         (unsigned long long)index, (unsigned long long)file->map_count);
    const bsmm_map *map = &file->maps[index];
    bsmm_file_part part = {.path = map->path, .data = map->data, .bytes = map->bytes};
    return bsmm_give_struct(out, &part, sizeof part, "out");
}

uint64_t bsmm_file_tensor_count(const bsmm_file *file) {
    return file ? file->tensor_count : 0;
}

bsmm_status bsmm_file_tensor_at(const bsmm_file *file, uint64_t index, bsmm_tensor *out) {
    if (!file) return bsmm_fail(BSMM_E_INVALID, "file: value is NULL; must be an open file");
    if (index >= file->tensor_count)
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %llu; the file has %llu tensors",
                         (unsigned long long)index, (unsigned long long)file->tensor_count);
    return bsmm_give_struct(out, &file->tensors[index], sizeof *out, "out");
}

bsmm_status bsmm_file_tensor_find(const bsmm_file *file, const char *name, bsmm_tensor *out) {
    if (!file || !name)
        return bsmm_fail(BSMM_E_INVALID, "%s: value is NULL; must be given",
                         file ? "name" : "file");
    uint64_t index = bsmm_file_lookup(file, name);
    if (index == BSMM_NO_TENSOR)
        return bsmm_fail(BSMM_E_NOT_FOUND, "name: \"%.200s\" is not a tensor of this file", name);
    return bsmm_give_struct(out, &file->tensors[index], sizeof *out, "out");
}
