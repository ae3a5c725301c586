/* Makes the headers of output files, byte for byte as the reference writers of the file formats
 * make them. */
#include "io/json.h"
#include "io/writer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct placed {
    bsmm_item *item;
} placed;

/* Orders the output file's tensors (items) by type and then by name. The types come in the reverse
 * order of the type table. Wide types then come first, so that every tensor is aligned. */
static int compare_items(const void *left, const void *right) {
    const bsmm_item *a = ((const placed *)left)->item, *b = ((const placed *)right)->item;
    if (a->dtype != b->dtype) return a->dtype > b->dtype ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Describes a tensor as JSON. Returns NULL if there is no memory. */
static json_t *item_json(const bsmm_item *item) {
    json_t *shape = json_array();
    for (uint32_t i = 0; i < item->ndim; i++)
        json_array_append_new(shape, json_integer(item->shape[i]));
    if (json_array_size(shape) != item->ndim) {
        json_decref(shape);
        return NULL;
    }
    uint64_t end = item->offset + item->bytes;
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", item->dtype->name, "shape", shape,
                     "data_offsets", (json_int_t)item->offset, (json_int_t)end);
}

static int compare_keys(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Returns the metadata sorted by key, so that files with equal content have equal bytes. Returns
 * NULL if there is no memory. */
static json_t *sorted_metadata(json_t *metadata) {
    size_t count = json_object_size(metadata), used = 0;
    const char **keys = malloc((count + 1) * sizeof *keys);
    json_t *sorted = keys ? json_object() : NULL;
    const char *key;
    json_t *value;
    if (!sorted) {
        free(keys);
        return NULL;
    }
    json_object_foreach(metadata, key, value) keys[used++] = key;
    qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 0; i < count; i++)
        json_object_set(sorted, keys[i], json_object_get(metadata, keys[i]));
    free(keys);
    if (json_object_size(sorted) == count) return sorted;
    json_decref(sorted);
    return NULL;
}

/* Sets the offsets of the output file's tensors (items), one after another, and writes their
 * descriptions as JSON. */
static char *header_text(bsmm_writer *writer, const placed *order) {
    json_t *root = json_object();
    uint64_t at = 0;
    if (json_object_size(writer->metadata))
        json_object_set_new(root, "__metadata__", sorted_metadata(writer->metadata));
    for (uint64_t i = 0; i < writer->item_count; i++) {
        order[i].item->offset = at;
        at += order[i].item->bytes;
        json_object_set_new(root, order[i].item->name, item_json(order[i].item));
    }
    bool whole =
        json_object_size(root) == writer->item_count + (json_object_size(writer->metadata) ? 1 : 0);
    char *text = whole ? bsmm_json_text(root) : NULL;
    json_decref(root);
    return text;
}

/* Makes the complete header of a safetensors file: the length, the JSON text, and spaces up to a
 * multiple of 8 bytes. */
static bsmm_status frame(const char *text, char **header, uint64_t *bytes) {
    uint64_t used = strlen(text), padded = (used + 7) / 8 * 8;
    if (padded > BSMM_HEADER_LIMIT)
        return bsmm_fail(BSMM_E_INVALID, "header: takes %llu bytes; readers accept at most %u",
                         (unsigned long long)padded, BSMM_HEADER_LIMIT);
    *bytes = 8 + padded;
    *header = malloc(*bytes);
    if (!*header) return bsmm_fail_memory();
    for (unsigned i = 0; i < 8; i++)
        (*header)[i] = (char)(padded >> (8 * i) & 255);
    memset(*header + 8, ' ', padded);
    memcpy(*header + 8, text, used);
    return BSMM_OK;
}

bsmm_status bsmm_writer_header_safetensors(bsmm_writer *writer, char **header, uint64_t *bytes) {
    uint64_t count = writer->item_count;
    placed *order = malloc((count + 1) * sizeof *order);
    if (!order) return bsmm_fail_memory();
    for (uint64_t i = 0; i < count; i++)
        order[i].item = &writer->items[i];
    qsort(order, count, sizeof *order, compare_items);
    char *text = header_text(writer, order);
    free(order);
    bsmm_status status = text ? frame(text, header, bytes) : bsmm_fail_memory();
    free(text);
    for (uint64_t i = 0; i < count; i++)
        writer->items[i].offset += *bytes;
    return status;
}

bsmm_status bsmm_writer_header_npy(bsmm_writer *writer, char **header, uint64_t *bytes) {
    if (writer->item_count != 1 || json_object_size(writer->metadata))
        return bsmm_fail(BSMM_E_INVALID,
                         "kind: npy holds one tensor and no metadata; %llu tensors were added "
                         "(write safetensors)",
                         (unsigned long long)writer->item_count);
    bsmm_item *item = &writer->items[0];
    if (!item->dtype->npy)
        return bsmm_fail(BSMM_E_UNSUPPORTED,
                         "dtype: numpy has no %s; write F32 or F16, or a safetensors file",
                         item->dtype->name);
    *bytes = item->offset = bsmm_npy_header(item->dtype, item->ndim, item->shape, NULL);
    *header = malloc(*bytes);
    if (!*header) return bsmm_fail_memory();
    bsmm_npy_header(item->dtype, item->ndim, item->shape, *header);
    return BSMM_OK;
}
