/* An open file: its tensors and its metadata. */
#define _GNU_SOURCE /* qsort_r */
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
                                   const char *value, size_t value_length) {
    BSMM_TRY(bsmm_grow((void **)&file->metadata, file->metadata_count, &file->metadata_room,
                       sizeof *file->metadata));
    bsmm_pair pair = {bsmm_arena_text(&file->arena, key, key_length),
                      value ? bsmm_arena_text(&file->arena, value, value_length) : NULL};
    if (!pair.key || (value && !pair.value)) return bsmm_fail_memory();
    file->metadata[file->metadata_count++] = pair;
    return BSMM_OK;
}

static int compare_tensors(const void *left, const void *right, void *context) {
    const bsmm_tensor *tensors = context;
    return strcmp(tensors[*(const uint64_t *)left].name, tensors[*(const uint64_t *)right].name);
}

static bsmm_status index_tensors(bsmm_file *file) {
    file->by_name = malloc((file->tensor_count + 1) * sizeof *file->by_name);
    if (!file->by_name) return bsmm_fail_memory();
    for (uint64_t i = 0; i < file->tensor_count; i++)
        file->by_name[i] = i;
    if (file->tensor_count > 1)
        qsort_r(file->by_name, file->tensor_count, sizeof *file->by_name, compare_tensors,
                file->tensors);
    for (uint64_t i = 1; i < file->tensor_count; i++) {
        const char *name = file->tensors[file->by_name[i]].name;
        if (strcmp(file->tensors[file->by_name[i - 1]].name, name) == 0)
            return bsmm_fail(BSMM_E_FORMAT, "%.200s: two tensors have this name", name);
    }
    return BSMM_OK;
}

/* Sorted by key, then by age: the arena's addresses do not tell age, the positions do. */
static int compare_pairs(const void *left, const void *right, void *context) {
    const bsmm_pair *pairs = context;
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    int order = strcmp(pairs[a].key, pairs[b].key);
    return order ? order : (a > b) - (a < b);
}

/* Copies the pairs in order; of equal keys the first stays, or they are refused. */
static bsmm_status take_pairs(bsmm_file *file, const uint64_t *order, bsmm_pair *to) {
    uint64_t kept = 0;
    for (uint64_t i = 0; i < file->metadata_count; i++) {
        bsmm_pair pair = file->metadata[order[i]];
        bool again = kept && strcmp(to[kept - 1].key, pair.key) == 0;
        if (again && !file->merged)
            return bsmm_fail(BSMM_E_FORMAT, "%.200s: two metadata values have this key", pair.key);
        if (!again) to[kept++] = pair;
    }
    memcpy(file->metadata, to, kept * sizeof *to);
    file->metadata_count = kept;
    return BSMM_OK;
}

static bsmm_status sort_metadata(bsmm_file *file, uint64_t *order, bsmm_pair *sorted) {
    if (!order || !sorted) return bsmm_fail_memory();
    for (uint64_t i = 0; i < file->metadata_count; i++)
        order[i] = i;
    qsort_r(order, file->metadata_count, sizeof *order, compare_pairs, file->metadata);
    return take_pairs(file, order, sorted);
}

static bsmm_status index_metadata(bsmm_file *file) {
    if (file->metadata_count == 0) return BSMM_OK;
    uint64_t *order = malloc(file->metadata_count * sizeof *order);
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

static int compare_joined(const char *candidate, const char *name, size_t base,
                          const char *suffix) {
    int order = strncmp(candidate, name, base);
    return order ? order : strcmp(candidate + base, suffix);
}

uint64_t bsmm_file_sibling(const bsmm_file *file, const char *name, size_t base,
                           const char *suffix) {
    uint64_t low = 0, high = file->tensor_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        const char *candidate = file->tensors[file->by_name[middle]].name;
        int order = compare_joined(candidate, name, base, suffix);
        if (order == 0) return file->by_name[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return BSMM_NO_TENSOR;
}

uint64_t bsmm_file_lookup(const bsmm_file *file, const char *name) {
    return bsmm_file_sibling(file, name, strlen(name), "");
}

static int compare_key(const void *key, const void *pair) {
    return strcmp(key, ((const bsmm_pair *)pair)->key);
}

const char *bsmm_file_metadata(const bsmm_file *file, const char *key) {
    if (!file || !key || file->metadata_count == 0) return NULL;
    const bsmm_pair *pair =
        bsearch(key, file->metadata, file->metadata_count, sizeof *file->metadata, compare_key);
    return pair ? pair->value : NULL;
}

const char *bsmm_file_kind(const bsmm_file *file) {
    return file ? file->kind : "";
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
