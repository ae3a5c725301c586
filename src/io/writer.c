/* Implements the writer of files. A caller adds tensors, begins the file, fills in the data and
 * commits the file. */
#include "io/writer.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Sets the type of a tensor in a safetensors or .npy file. */
static bsmm_status set_type(bsmm_item *item, const char *name, const char *dtype) {
    item->dtype = dtype ? bsmm_dtype_find(dtype) : NULL;
    if (!item->dtype)
        return bsmm_fail(BSMM_E_INVALID, "dtype: value is \"%.40s\"; must be a type of safetensors",
                         dtype ? dtype : "(NULL)");
    return bsmm_shape_bytes(BSMM_E_INVALID, name, item->dtype, item->ndim, item->shape,
                            &item->bytes);
}

static const bsmm_writer_kind kinds[] = {
    {"safetensors", false, 1, set_type, bsmm_writer_header_safetensors},
    {"npy", false, 1, set_type, bsmm_writer_header_npy},
    {"gguf", true, 32, bsmm_writer_type_gguf, bsmm_writer_header_gguf},
};

static const bsmm_writer_kind *kind_of(const char *name) {
    for (size_t i = 0; name && i < BSMM_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

/* Checks the path of the output. Only a new file or a regular file is accepted, because rename
 * would also replace a device or a pipe. */
static bsmm_status check_path(const char *path) {
    struct stat info;
    if (!path || !path[0])
        return bsmm_fail(BSMM_E_INVALID, "path: value is %s; must name a file",
                         path ? "\"\"" : "NULL");
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return bsmm_fail(BSMM_E_INVALID, "path: %s exists and is not a regular file", path);
    return BSMM_OK;
}

static void destroy(bsmm_writer *writer) {
    bsmm_output_abandon(&writer->output);
    bsmm_arena_free(&writer->arena);
    json_decref(writer->names);
    json_decref(writer->metadata);
    free(writer->pairs);
    free(writer->items);
    free(writer->weights);
    free(writer->path);
    free(writer);
}

bsmm_status bsmm_writer_create(const char *path, const char *kind, bsmm_writer **writer) {
    if (!writer) return bsmm_fail(BSMM_E_INVALID, "writer: value is NULL; must be given");
    *writer = NULL;
    BSMM_TRY(check_path(path));
    const bsmm_writer_kind *row = kind_of(kind);
    if (!row)
        return bsmm_fail(BSMM_E_INVALID,
                         "kind: value is \"%.40s\"; must be safetensors, npy or gguf",
                         kind ? kind : "(NULL)");
    bsmm_writer *made = calloc(1, sizeof *made);
    if (!made) return bsmm_fail_memory();
    made->kind = row;
    made->alignment = row->alignment;
    made->output.descriptor = -1;
    made->path = strdup(path);
    made->names = json_object();
    made->metadata = json_object();
    if (made->path && made->names && made->metadata) {
        *writer = made;
        return BSMM_OK;
    }
    destroy(made);
    return bsmm_fail_memory();
}

bsmm_status bsmm_writer_check(const bsmm_writer *writer, bool begun) {
    if (!writer) return bsmm_fail(BSMM_E_INVALID, "writer: value is NULL; must be given");
    if ((writer->output.data != NULL) == begun) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "writer: bsmm_writer_begin %s",
                     begun ? "must be called first" : "was called; nothing more can be added");
}

static bsmm_status check_text(const char *field, const char *text) {
    if (text && bsmm_text_is_utf8(text, strlen(text))) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "%s: value is %s; must be UTF-8", field,
                     text ? "not UTF-8" : "NULL");
}

bsmm_status bsmm_writer_put_metadata(bsmm_writer *writer, const char *key, const char *value) {
    if (json_object_set_new(writer->metadata, key, json_string(value)) != 0)
        return bsmm_fail_memory();
    return BSMM_OK;
}

static bool has_key(const bsmm_writer *writer, const char *key) {
    for (uint64_t i = 0; i < writer->pair_count; i++)
        if (strcmp(writer->pairs[i].key, key) == 0) return true;
    return json_object_get(writer->metadata, key) != NULL;
}

/* Refuses two metadata entries that would make a GGUF file unreadable: one with an empty key, and
 * general.alignment with a text as its value, because the reader expects a number there. */
static bsmm_status check_gguf_key(const char *key) {
    if (!key[0]) return bsmm_fail(BSMM_E_INVALID, "key: value is \"\"; must not be empty in GGUF");
    if (strcmp(key, "general.alignment") != 0) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID,
                     "key: value is \"%s\"; its value is a number, which only "
                     "bsmm_writer_copy_metadata writes",
                     key);
}

static bsmm_status check_key(const bsmm_writer *writer, const char *key) {
    const size_t prefix = strlen(BSMM_DECLARATION_PREFIX);
    BSMM_TRY(check_text("key", key));
    if (writer->kind->is_gguf) BSMM_TRY(check_gguf_key(key));
    if (strncmp(key, BSMM_DECLARATION_PREFIX, prefix) == 0 || strcmp(key, BSMM_CONFIG_KEY) == 0)
        return bsmm_fail(BSMM_E_INVALID,
                         "key: value is \"%.160s\"; is reserved for descriptions of weights", key);
    if (has_key(writer, key))
        return bsmm_fail(BSMM_E_INVALID, "key: \"%.160s\" was added before; keys are unique", key);
    return BSMM_OK;
}

bsmm_status bsmm_writer_metadata(bsmm_writer *writer, const char *key, const char *value) {
    BSMM_TRY(bsmm_writer_check(writer, false));
    BSMM_TRY(check_key(writer, key));
    BSMM_TRY(check_text("value", value));
    return bsmm_writer_put_metadata(writer, key, value);
}

static bsmm_status check_item(bsmm_writer *writer, const char *name) {
    BSMM_TRY(check_text("name", name));
    if (!name[0] || strcmp(name, "__metadata__") == 0)
        return bsmm_fail(BSMM_E_INVALID, "name: value is \"%s\"; must not be empty or reserved",
                         name);
    if (json_object_get(writer->names, name))
        return bsmm_fail(BSMM_E_INVALID, "name: \"%.200s\" was added before; names are unique",
                         name);
    return BSMM_OK;
}

bsmm_status bsmm_writer_add_tensor(bsmm_writer *writer, const char *name, const char *dtype,
                                   uint32_t ndim, const int64_t *shape, uint64_t *index) {
    BSMM_TRY(bsmm_writer_check(writer, false));
    BSMM_TRY(check_item(writer, name));
    if (ndim && !shape) return bsmm_fail(BSMM_E_INVALID, "shape: value is NULL; must be given");
    bsmm_item item = {.ndim = ndim};
    if (ndim && ndim <= BSMM_MAX_DIMS) memcpy(item.shape, shape, ndim * sizeof *shape);
    BSMM_TRY(writer->kind->type(&item, name, dtype));
    BSMM_TRY(
        bsmm_grow((void **)&writer->items, writer->item_count, &writer->item_room, sizeof item));
    item.name = bsmm_arena_text(&writer->arena, name, strlen(name));
    if (!item.name || json_object_set_new(writer->names, name, json_true()) != 0)
        return bsmm_fail_memory();
    writer->items[writer->item_count] = item;
    if (index) *index = writer->item_count;
    writer->item_count++;
    return BSMM_OK;
}

/* Sets all global scales in the new file to 1. A caller that does not set the global scale of a
 * weight thus gets a valid weight; with a global scale of 0 it would be invalid. */
static void preset_globals(bsmm_writer *writer) {
    for (uint64_t i = 0; i < writer->weight_count; i++) {
        if (writer->weights[i].global == BSMM_NO_TENSOR) continue;
        const bsmm_item *item = &writer->items[writer->weights[i].global];
        float *values = (float *)(void *)(writer->output.data + item->offset);
        for (uint64_t k = 0; k < item->bytes / sizeof(float); k++)
            values[k] = 1.0f;
    }
}

uint64_t bsmm_writer_padded(const bsmm_writer *writer, uint64_t bytes) {
    return (bytes + writer->alignment - 1) / writer->alignment * writer->alignment;
}

static bsmm_status total_bytes(const bsmm_writer *writer, uint64_t header, uint64_t *total) {
    *total = header;
    for (uint64_t i = 0; i < writer->item_count; i++)
        if (!bsmm_add_u64(*total, bsmm_writer_padded(writer, writer->items[i].bytes), total))
            return bsmm_fail(BSMM_E_INVALID, "tensors: their total size overflows");
    return BSMM_OK;
}

static bsmm_status open_output(bsmm_writer *writer, const char *header, uint64_t bytes) {
    uint64_t total;
    BSMM_TRY(total_bytes(writer, bytes, &total));
    BSMM_TRY(bsmm_output_open(writer->path, total, &writer->output));
    memcpy(writer->output.data, header, bytes);
    preset_globals(writer);
    return BSMM_OK;
}

bsmm_status bsmm_writer_begin(bsmm_writer *writer) {
    char *header = NULL;
    uint64_t bytes = 0;
    BSMM_TRY(bsmm_writer_check(writer, false));
    BSMM_TRY(bsmm_writer_describe_weights(writer));
    bsmm_status status = writer->kind->header(writer, &header, &bytes);
    if (status == BSMM_OK) status = open_output(writer, header, bytes);
    free(header);
    return status;
}

bsmm_status bsmm_writer_tensor(bsmm_writer *writer, uint64_t index, void **data, uint64_t *bytes) {
    BSMM_TRY(bsmm_writer_check(writer, true));
    if (index >= writer->item_count)
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %llu; %llu tensors were added",
                         (unsigned long long)index, (unsigned long long)writer->item_count);
    if (data) *data = writer->output.data + writer->items[index].offset;
    if (bytes) *bytes = writer->items[index].bytes;
    return BSMM_OK;
}

bsmm_status bsmm_writer_commit(bsmm_writer *writer) {
    bsmm_status status = bsmm_writer_check(writer, true);
    if (status == BSMM_OK) status = bsmm_output_commit(&writer->output, writer->path);
    if (writer) destroy(writer);
    return status;
}

void bsmm_writer_abort(bsmm_writer *writer) {
    if (writer) destroy(writer);
}
