/* safetensors: 8 bytes of length, a JSON header, the tensors' bytes without gaps.
 * Rules: the reference implementation, huggingface/safetensors, safetensors/src/tensor.rs. */
#include "io/io.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    bsmm_tensor tensor;
    uint64_t begin, end;
} entry;

typedef struct reading {
    const uint8_t *body; /* after the header */
    uint64_t body_bytes;
    entry *entries;
    uint64_t count;
    bsmm_file *file;
} reading;

static bsmm_status check_header(const uint8_t *data, size_t bytes, uint64_t *length) {
    if (bytes < 8)
        return bsmm_fail(BSMM_E_FORMAT,
                         "header: the file has %zu bytes; must have 8 for the header's length",
                         bytes);
    *length = bsmm_load_u64(data);
    if (*length > BSMM_HEADER_LIMIT)
        return bsmm_fail(BSMM_E_FORMAT,
                         "header length: value is %" PRIu64 "; must be at most %u (is this a "
                         "safetensors, GGUF or .npy file?)",
                         *length, BSMM_HEADER_LIMIT);
    if (*length > bytes - 8)
        return bsmm_fail(BSMM_E_FORMAT,
                         "header length: value is %" PRIu64 "; the file has only %zu bytes after "
                         "it",
                         *length, bytes - 8);
    if (*length == 0 || data[8] != '{')
        return bsmm_fail(BSMM_E_FORMAT, "header: byte 8 of the file; must be '{'");
    return BSMM_OK;
}

static bsmm_status read_shape(const json_t *shape, const char *what, bsmm_tensor *tensor) {
    if (!json_is_array(shape))
        return bsmm_fail(BSMM_E_FORMAT, "%s.shape: must be an array of integers", what);
    size_t ndim = json_array_size(shape);
    if (ndim > BSMM_MAX_DIMS)
        return bsmm_fail(BSMM_E_UNSUPPORTED, "%s.shape: has %zu dimensions; at most %u are read",
                         what, ndim, BSMM_MAX_DIMS);
    tensor->ndim = (uint32_t)ndim;
    for (size_t i = 0; i < ndim; i++) {
        const json_t *extent = json_array_get(shape, i);
        if (!json_is_integer(extent))
            return bsmm_fail(BSMM_E_FORMAT, "%s.shape[%zu]: must be an integer", what, i);
        tensor->shape[i] = json_integer_value(extent);
    }
    return BSMM_OK;
}

static bsmm_status read_offsets(const json_t *offsets, const char *what, const reading *r,
                                entry *to) {
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return bsmm_fail(BSMM_E_FORMAT, "%s.data_offsets: must be an array of two integers", what);
    json_int_t from = json_integer_value(begin), till = json_integer_value(end);
    if (from < 0 || till < from || (uint64_t)till > r->body_bytes)
        return bsmm_fail(BSMM_E_FORMAT,
                         "%s.data_offsets: value is [%" JSON_INTEGER_FORMAT
                         ", %" JSON_INTEGER_FORMAT "]; must rise and end within the %" PRIu64
                         " bytes after the header",
                         what, from, till, r->body_bytes);
    to->begin = (uint64_t)from;
    to->end = (uint64_t)till;
    return BSMM_OK;
}

static bsmm_status read_entry(reading *r, const char *name, const json_t *value) {
    char what[160];
    snprintf(what, sizeof what, "header.%s", name);
    const char *dtype_name = json_string_value(json_object_get(value, "dtype"));
    if (!dtype_name) return bsmm_fail(BSMM_E_FORMAT, "%s.dtype: must be a string", what);
    const bsmm_dtype *dtype = bsmm_dtype_find(dtype_name);
    if (!dtype)
        return bsmm_fail(BSMM_E_FORMAT, "%s.dtype: value is \"%.40s\"; is not a known type", what,
                         dtype_name);
    entry *to = &r->entries[r->count];
    *to = (entry){.tensor = {.dtype = dtype->name, .elem = dtype->elem}};
    BSMM_TRY(read_shape(json_object_get(value, "shape"), what, &to->tensor));
    BSMM_TRY(read_offsets(json_object_get(value, "data_offsets"), what, r, to));
    uint64_t bytes;
    BSMM_TRY(
        bsmm_shape_bytes(BSMM_E_FORMAT, what, dtype, to->tensor.ndim, to->tensor.shape, &bytes));
    if (bytes != to->end - to->begin)
        return bsmm_fail(BSMM_E_FORMAT,
                         "%s.data_offsets: span %" PRIu64 " bytes; shape and dtype take %" PRIu64,
                         what, to->end - to->begin, bytes);
    to->tensor.name = bsmm_arena_text(&r->file->arena, name, strlen(name));
    if (!to->tensor.name) return bsmm_fail_memory();
    to->tensor.data = r->body + to->begin;
    to->tensor.bytes = bytes;
    r->count++;
    return BSMM_OK;
}

static bsmm_status read_metadata(bsmm_file *file, json_t *metadata) {
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return bsmm_fail(BSMM_E_FORMAT, "header.__metadata__: must be an object of strings");
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value))
            return bsmm_fail(BSMM_E_FORMAT, "header.__metadata__.%.80s: must be a string", key);
        BSMM_TRY(bsmm_file_add_metadata(file, key, strlen(key), json_string_value(value),
                                        json_string_length(value)));
    }
    return BSMM_OK;
}

static bsmm_status read_object(reading *r, json_t *root) {
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value) {
        if (strcmp(name, "__metadata__") == 0)
            BSMM_TRY(read_metadata(r->file, value));
        else
            BSMM_TRY(read_entry(r, name, value));
    }
    return BSMM_OK;
}

static int compare_entries(const void *left, const void *right) {
    const entry *a = left, *b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    return strcmp(a->tensor.name, b->tensor.name);
}

/* Every byte after the header belongs to exactly one tensor. */
static bsmm_status check_tiling(reading *r) {
    qsort(r->entries, r->count, sizeof *r->entries, compare_entries);
    uint64_t at = 0;
    for (uint64_t i = 0; i < r->count; i++) {
        const entry *e = &r->entries[i];
        if (e->begin != at)
            return bsmm_fail(BSMM_E_FORMAT,
                             "header.%.120s.data_offsets: begin at %" PRIu64 "; the tensor before "
                             "ends at %" PRIu64 " (no overlap, no gap)",
                             e->tensor.name, e->begin, at);
        at = e->end;
    }
    if (at != r->body_bytes)
        return bsmm_fail(BSMM_E_FORMAT,
                         "data: the file has %" PRIu64 " bytes after the header; the tensors take "
                         "%" PRIu64,
                         r->body_bytes, at);
    return BSMM_OK;
}

static bsmm_status read_root(reading *r, json_t *root) {
    BSMM_TRY(read_object(r, root));
    BSMM_TRY(check_tiling(r));
    for (uint64_t i = 0; i < r->count; i++)
        BSMM_TRY(bsmm_file_add_tensor(r->file, &r->entries[i].tensor));
    return BSMM_OK;
}

bsmm_status bsmm_safetensors_parse(const uint8_t *data, size_t bytes, bsmm_file *file) {
    uint64_t length = 0;
    file->kind = "safetensors";
    BSMM_TRY(check_header(data, bytes, &length));
    json_error_t error;
    json_t *root =
        json_loadb((const char *)data + 8, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return bsmm_fail(BSMM_E_FORMAT, "header: byte %d of the file: %s; must be JSON in UTF-8",
                         error.position + 8, error.text);
    reading r = {.body = data + 8 + length, .body_bytes = bytes - 8 - length, .file = file};
    r.entries = calloc(json_object_size(root) + 1, sizeof *r.entries);
    bsmm_status status = r.entries ? read_root(&r, root) : bsmm_fail_memory();
    free(r.entries);
    json_decref(root);
    return status;
}
