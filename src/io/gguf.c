/* Parses GGUF files of versions 2 and 3, little-endian. A file has counts, key-value pairs,
 * descriptions of the tensors, and the aligned data of the tensors. Sources of the rules: ggml's
 * gguf.cpp and docs/gguf.md. */
#include "io/gguf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE_UINT32 = 4, GGUF_MAX_DIMS = 4 };

typedef struct text {
    const char *at;
    uint64_t length;
} text;

typedef struct reading {
    const uint8_t *data;
    uint64_t at, bytes;
    uint64_t alignment;
    bsmm_file *file;
} reading;

static bsmm_status need(const reading *r, uint64_t bytes, const char *what) {
    if (bytes <= r->bytes - r->at) return BSMM_OK;
    return bsmm_fail(BSMM_E_FORMAT,
                     "%s: needs %" PRIu64 " bytes at byte %" PRIu64 "; the file has %" PRIu64, what,
                     bytes, r->at, r->bytes);
}

static bsmm_status read_u32(reading *r, const char *what, uint32_t *value) {
    BSMM_TRY(need(r, 4, what));
    *value = bsmm_load_u32(r->data + r->at);
    r->at += 4;
    return BSMM_OK;
}

static bsmm_status read_u64(reading *r, const char *what, uint64_t *value) {
    BSMM_TRY(need(r, 8, what));
    *value = bsmm_load_u64(r->data + r->at);
    r->at += 8;
    return BSMM_OK;
}

static bsmm_status read_text(reading *r, const char *what, text *to) {
    BSMM_TRY(read_u64(r, what, &to->length));
    BSMM_TRY(need(r, to->length, what));
    to->at = (const char *)r->data + r->at;
    r->at += to->length;
    return BSMM_OK;
}

/* Reads a text that becomes a C string, so it must be UTF-8 without a NUL. */
static bsmm_status read_name(reading *r, const char *what, text *to) {
    uint64_t begin = r->at;
    BSMM_TRY(read_text(r, what, to));
    if (to->length && bsmm_text_is_utf8(to->at, to->length)) return BSMM_OK;
    return bsmm_fail(BSMM_E_FORMAT, "%s at byte %" PRIu64 ": must be UTF-8, without NUL, not empty",
                     what, begin);
}

static bsmm_status skip_values(reading *r, const char *what, uint32_t type, uint64_t count) {
    uint64_t bytes;
    text skipped;
    if (type == BSMM_GGUF_STRING) {
        for (uint64_t i = 0; i < count; i++)
            BSMM_TRY(read_text(r, what, &skipped));
        return BSMM_OK;
    }
    uint32_t each = bsmm_gguf_number_bytes(type);
    if (!each)
        return bsmm_fail(BSMM_E_FORMAT, "%s: type is %u; must be 0 to 12, and no array of arrays",
                         what, type);
    if (!bsmm_mul_u64(count, each, &bytes))
        return bsmm_fail(BSMM_E_FORMAT, "%s: %" PRIu64 " values; the size overflows", what, count);
    BSMM_TRY(need(r, bytes, what));
    r->at += bytes;
    return BSMM_OK;
}

static bsmm_status read_array(reading *r, const char *what, bsmm_stored_value *to) {
    BSMM_TRY(read_u32(r, what, &to->item_type));
    BSMM_TRY(read_u64(r, what, &to->count));
    to->at = r->data + r->at;
    return skip_values(r, what, to->item_type, to->count);
}

static bsmm_status read_string(reading *r, const char *what, bsmm_stored_value *to) {
    text value;
    BSMM_TRY(read_text(r, what, &value));
    to->at = (const uint8_t *)value.at;
    to->count = value.length;
    return BSMM_OK;
}

static bsmm_status read_alignment(reading *r, uint32_t type) {
    uint32_t value = 0;
    if (type == TYPE_UINT32) BSMM_TRY(read_u32(r, "general.alignment", &value));
    if (value == 0 || (value & (value - 1)))
        return bsmm_fail(BSMM_E_FORMAT,
                         "general.alignment: value is %u of type %u; must be a power of 2, uint32",
                         value, type);
    r->alignment = value;
    return BSMM_OK;
}

/* Reads the value of a metadata key and stores it. Keys that the library does not use are stored
 * too, so that duplicate keys are noticed and a copy of the file keeps all keys. */
static bsmm_status read_value(reading *r, const char *what, const text *key, uint32_t type) {
    bsmm_stored_value value = {.at = r->data + r->at, .count = 1, .type = type};
    if (type == BSMM_GGUF_STRING)
        BSMM_TRY(read_string(r, what, &value));
    else if (type == BSMM_GGUF_ARRAY)
        BSMM_TRY(read_array(r, what, &value));
    else
        BSMM_TRY(skip_values(r, what, type, 1));
    return bsmm_file_add_metadata(r->file, key->at, key->length, &value);
}

static bsmm_status read_pair(reading *r) {
    static const char alignment[] = "general.alignment";
    text key;
    uint32_t type;
    char what[96];
    BSMM_TRY(read_name(r, "key", &key));
    snprintf(what, sizeof what, "%.*s", (int)(key.length < 90 ? key.length : 90), key.at);
    BSMM_TRY(read_u32(r, what, &type));
    uint64_t begin = r->at;
    if (strcmp(what, alignment) == 0) BSMM_TRY(read_alignment(r, type));
    r->at = begin;
    return read_value(r, what, &key, type);
}

/* Reads the dimensions of a tensor. GGUF stores the innermost dimension first; bsmm_tensor has it
 * last. */
static bsmm_status read_dims(reading *r, const char *what, bsmm_tensor *t) {
    uint64_t extents[GGUF_MAX_DIMS], count = 1;
    BSMM_TRY(read_u32(r, what, &t->ndim));
    if (t->ndim > GGUF_MAX_DIMS)
        return bsmm_fail(BSMM_E_FORMAT, "%s: has %u dimensions; at most %d", what, t->ndim,
                         GGUF_MAX_DIMS);
    for (uint32_t i = 0; i < t->ndim; i++) {
        BSMM_TRY(read_u64(r, what, &extents[i]));
        if (extents[i] > INT64_MAX || !bsmm_mul_u64(count, extents[i], &count) || count > INT64_MAX)
            return bsmm_fail(BSMM_E_FORMAT, "%s: the product of its dimensions overflows", what);
        t->shape[t->ndim - 1 - i] = (int64_t)extents[i];
    }
    return BSMM_OK;
}

/* Names a ggml type that this library does not know, such as "type 99". ggml adds types over time.
 * The size of such a tensor is unknown, so the reader assumes that its bytes end where the next
 * tensor begins. */
static bsmm_status name_unknown_type(reading *r, uint32_t type, bsmm_tensor *t) {
    char name[32];
    snprintf(name, sizeof name, "type %u", type);
    t->dtype = bsmm_arena_text(&r->file->arena, name, strlen(name));
    return t->dtype ? BSMM_OK : bsmm_fail_memory();
}

static bsmm_status read_type(reading *r, const char *what, bsmm_tensor *t) {
    uint32_t type;
    BSMM_TRY(read_u32(r, what, &type));
    const bsmm_gguf_type *row = bsmm_gguf_type_of(type);
    if (!row) return name_unknown_type(r, type, t);
    uint64_t inner = t->ndim ? (uint64_t)t->shape[t->ndim - 1] : 1, blocks = inner / row->block;
    if (inner % row->block)
        return bsmm_fail(BSMM_E_FORMAT,
                         "%s: rows have %" PRIu64 " elements; %s needs a multiple of %u", what,
                         inner, row->name, row->block);
    for (uint32_t i = 0; i + 1 < t->ndim; i++)
        blocks *= (uint64_t)t->shape[i];
    if (!bsmm_mul_u64(blocks, row->bytes, &t->bytes))
        return bsmm_fail(BSMM_E_FORMAT, "%s: its size in bytes overflows", what);
    t->dtype = row->name;
    t->elem = row->elem;
    return BSMM_OK;
}

static bsmm_status read_info(reading *r, uint64_t *offset) {
    text name;
    char what[96];
    bsmm_tensor t = {0};
    BSMM_TRY(read_name(r, "tensor name", &name));
    snprintf(what, sizeof what, "%.*s", (int)(name.length < 90 ? name.length : 90), name.at);
    BSMM_TRY(read_dims(r, what, &t));
    BSMM_TRY(read_type(r, what, &t));
    BSMM_TRY(read_u64(r, what, offset));
    if (*offset % r->alignment)
        return bsmm_fail(BSMM_E_FORMAT,
                         "%s: offset is %" PRIu64 "; must be a multiple of general.alignment "
                         "%" PRIu64,
                         what, *offset, r->alignment);
    t.name = bsmm_arena_text(&r->file->arena, name.at, name.length);
    return t.name ? bsmm_file_add_tensor(r->file, &t) : bsmm_fail_memory();
}

typedef struct placed {
    uint64_t offset, index;
} placed;

static int compare_placed(const void *left, const void *right) {
    const placed *a = left, *b = right;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Checks that the tensors lie inside the data section and do not overlap. */
static bsmm_status place(reading *r, placed *order, uint64_t start) {
    uint64_t count = r->file->tensor_count, free_from = 0, room = r->bytes - start;
    qsort(order, count, sizeof *order, compare_placed);
    for (uint64_t i = 0; i < count; i++) {
        bsmm_tensor *t = &r->file->tensors[order[i].index];
        uint64_t offset = order[i].offset;
        if (!bsmm_gguf_type_named(t->dtype)) {
            uint64_t end = i + 1 < count && order[i + 1].offset < room ? order[i + 1].offset : room;
            t->bytes = offset < end ? end - offset : 0;
        }
        if (offset > room || t->bytes > room - offset)
            return bsmm_fail(BSMM_E_FORMAT,
                             "%.160s: %" PRIu64 " bytes at offset %" PRIu64 "; the file has "
                             "%" PRIu64 " bytes of data",
                             t->name, t->bytes, offset, room);
        if (offset < free_from)
            return bsmm_fail(BSMM_E_FORMAT,
                             "%.160s: offset is %" PRIu64 "; the tensor before ends at %" PRIu64,
                             t->name, offset, free_from);
        t->data = r->data + start + offset;
        free_from = offset + t->bytes;
    }
    return BSMM_OK;
}

static bsmm_status read_tensors(reading *r, uint64_t count, placed *order) {
    for (uint64_t i = 0; i < count; i++) {
        order[i].index = i;
        BSMM_TRY(read_info(r, &order[i].offset));
    }
    uint64_t past = r->at % r->alignment, start = r->at + (past ? r->alignment - past : 0);
    if (count == 0) return BSMM_OK;
    return place(r, order, start < r->bytes ? start : r->bytes);
}

static bsmm_status check_version(uint32_t version) {
    if (version == 2 || version == 3) return BSMM_OK;
    const char *why = version && (version & 0xFFFF) == 0 ? " (a big-endian file?)" : "";
    return bsmm_fail(BSMM_E_UNSUPPORTED, "version: value is %u%s; must be 2 or 3, little-endian",
                     version, why);
}

bsmm_status bsmm_gguf_parse(const uint8_t *data, size_t bytes, bsmm_file *file) {
    /* `least_info` is the smallest size in bytes that the description of one tensor can have. */
    static const uint64_t least_info = 8 + 1 + 4 + 4 + 8;
    reading r = {.data = data, .at = 4, .bytes = bytes, .alignment = 32, .file = file};
    uint32_t version;
    uint64_t tensors, pairs;
    file->kind = "gguf";
    BSMM_TRY(read_u32(&r, "version", &version));
    BSMM_TRY(check_version(version));
    BSMM_TRY(read_u64(&r, "tensor count", &tensors));
    BSMM_TRY(read_u64(&r, "metadata count", &pairs));
    if (tensors > bytes / least_info)
        return bsmm_fail(BSMM_E_FORMAT, "tensor count: value is %" PRIu64 "; the file is too short",
                         tensors);
    for (uint64_t i = 0; i < pairs; i++)
        BSMM_TRY(read_pair(&r));
    placed *order = calloc(tensors + 1, sizeof *order);
    bsmm_status status = order ? read_tensors(&r, tensors, order) : bsmm_fail_memory();
    free(order);
    return status;
}
