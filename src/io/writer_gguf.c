/* Makes the header of a GGUF file of version 3: counts, key-value pairs and descriptions of the
 * tensors. Sources of the rules: ggml's gguf.cpp and docs/gguf.md. */
#include "io/gguf.h"
#include "io/writer.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NAME_BYTES is ggml's limit for a tensor's name (GGML_MAX_NAME), with the final NUL. */
enum { VERSION = 3, MOST_DIMS = 4, NAME_BYTES = 64 };

static const char alignment_key[] = "general.alignment";

/* The functions from here on write the descriptions of tensors. */

bsmm_status bsmm_writer_type_gguf(bsmm_item *item, const char *name, const char *dtype) {
    const bsmm_gguf_type *type = dtype ? bsmm_gguf_type_named(dtype) : NULL;
    if (!type)
        return bsmm_fail(BSMM_E_INVALID, "dtype: value is \"%.40s\"; must be a type of ggml",
                         dtype ? dtype : "(NULL)");
    if (strlen(name) >= NAME_BYTES)
        return bsmm_fail(BSMM_E_UNSUPPORTED, "name: \"%.200s\" has %zu bytes; GGUF has at most %d",
                         name, strlen(name), NAME_BYTES - 1);
    if (item->ndim > MOST_DIMS)
        return bsmm_fail(BSMM_E_UNSUPPORTED, "%s.shape: has %u dimensions; GGUF has at most %d",
                         name, item->ndim, MOST_DIMS);
    const int64_t inner = item->ndim ? item->shape[item->ndim - 1] : 1;
    if (inner % type->block)
        return bsmm_fail(BSMM_E_INVALID,
                         "%s.shape: rows have %" PRId64 " elements; %s needs a multiple of %u",
                         name, inner, type->name, type->block);
    uint64_t blocks = 1;
    for (uint32_t i = 0; i < item->ndim; i++)
        if (item->shape[i] < 0 || !bsmm_mul_u64(blocks, (uint64_t)item->shape[i], &blocks))
            return bsmm_fail(BSMM_E_INVALID,
                             "%s.shape: an extent is negative or the product "
                             "overflows",
                             name);
    if (!bsmm_mul_u64(blocks / type->block, type->bytes, &item->bytes) || item->bytes > INT64_MAX)
        return bsmm_fail(BSMM_E_INVALID, "%s.shape: the size in bytes overflows", name);
    item->ggml = type;
    return BSMM_OK;
}

/* The functions from here on write the metadata. */

static int compare_places(const void *left, const void *right) {
    const bsmm_pair *a = left, *b = right;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Takes the alignment of the tensors' data from the copied metadata. The reader of the GGUF file
 * has checked that it is a power of 2. */
static void take_alignment(bsmm_writer *writer) {
    for (uint64_t i = 0; i < writer->pair_count; i++)
        if (strcmp(writer->pairs[i].key, alignment_key) == 0)
            writer->alignment = bsmm_load_u32(writer->pairs[i].stored.at);
}

bsmm_status bsmm_writer_copy_metadata(bsmm_writer *writer, const bsmm_file *file) {
    BSMM_TRY(bsmm_writer_check(writer, false));
    if (!file || strcmp(bsmm_file_kind(file), "gguf") != 0 ||
        strcmp(writer->kind->name, "gguf") != 0)
        return bsmm_fail(BSMM_E_INVALID, "file: value is %s; it and the output must be GGUF files",
                         file ? bsmm_file_kind(file) : "NULL");
    if (writer->pairs || json_object_size(writer->metadata))
        return bsmm_fail(BSMM_E_INVALID, "writer: has metadata already; the copy must come first");
    const uint64_t count = file->metadata_count;
    writer->pairs = malloc((count + 1) * sizeof *writer->pairs);
    if (!writer->pairs) return bsmm_fail_memory();
    if (count) memcpy(writer->pairs, file->metadata, count * sizeof *writer->pairs);
    writer->pair_count = count;
    /* A bsmm_file holds its metadata entries sorted by key. The output gets the entries in the
     * order in which the input file stores them. */
    qsort(writer->pairs, count, sizeof *writer->pairs, compare_places);
    take_alignment(writer);
    return BSMM_OK;
}

/* The functions from here on write the header of the GGUF file. */

static void put_u32(FILE *to, uint32_t value) {
    for (int i = 0; i < 4; i++)
        putc((int)(value >> 8 * i & 255u), to);
}

static void put_u64(FILE *to, uint64_t value) {
    put_u32(to, (uint32_t)value);
    put_u32(to, (uint32_t)(value >> 32));
}

static void put_text(FILE *to, const char *text) {
    put_u64(to, strlen(text));
    fputs(text, to);
}

/* Returns the size in bytes of `count` stored values of a type, without an array's header. */
static uint64_t stored_bytes(const uint8_t *at, uint32_t type, uint64_t count) {
    uint64_t bytes = 0;
    if (type != BSMM_GGUF_STRING) return count * bsmm_gguf_number_bytes(type);
    for (uint64_t i = 0; i < count; i++)
        bytes += 8 + bsmm_load_u64(at + bytes);
    return bytes;
}

static void put_pair(FILE *to, const bsmm_pair *pair) {
    const bsmm_stored_value *value = &pair->stored;
    uint64_t bytes = value->count;
    put_text(to, pair->key);
    put_u32(to, value->type);
    if (value->type == BSMM_GGUF_STRING) {
        put_u64(to, value->count);
    } else if (value->type == BSMM_GGUF_ARRAY) {
        put_u32(to, value->item_type);
        put_u64(to, value->count);
        bytes = stored_bytes(value->at, value->item_type, value->count);
    } else {
        bytes = stored_bytes(value->at, value->type, 1);
    }
    fwrite(value->at, 1, bytes, to);
}

static void put_pairs(FILE *to, const bsmm_writer *writer) {
    const char *key;
    json_t *value;
    put_u64(to, writer->pair_count + json_object_size(writer->metadata));
    for (uint64_t i = 0; i < writer->pair_count; i++)
        put_pair(to, &writer->pairs[i]);
    json_object_foreach(writer->metadata, key, value) {
        put_text(to, key);
        put_u32(to, BSMM_GGUF_STRING);
        put_text(to, json_string_value(value));
    }
}

/* Writes the description of a tensor. GGUF stores the innermost dimension first. */
static void put_info(FILE *to, const bsmm_item *item) {
    put_text(to, item->name);
    put_u32(to, item->ndim);
    for (uint32_t i = item->ndim; i-- > 0;)
        put_u64(to, (uint64_t)item->shape[i]);
    put_u32(to, bsmm_gguf_type_number(item->ggml));
    put_u64(to, item->offset);
}

static void put_header(FILE *to, bsmm_writer *writer) {
    uint64_t at = 0;
    fputs("GGUF", to);
    put_u32(to, VERSION);
    put_u64(to, writer->item_count);
    put_pairs(to, writer);
    for (uint64_t i = 0; i < writer->item_count; i++) {
        writer->items[i].offset = at;
        at += bsmm_writer_padded(writer, writer->items[i].bytes);
        put_info(to, &writer->items[i]);
    }
}

bsmm_status bsmm_writer_header_gguf(bsmm_writer *writer, char **header, uint64_t *bytes) {
    size_t size = 0;
    FILE *to = open_memstream(header, &size);
    if (!to) return bsmm_fail_memory();
    put_header(to, writer);
    bool whole = !fflush(to);
    for (uint64_t pad = bsmm_writer_padded(writer, size) - size; pad && whole; pad--)
        whole = putc(0, to) != EOF;
    whole = !ferror(to) && whole;
    /* open_memstream made the buffer *header. If fclose cannot reallocate it to its final size, it
     * sets *header to NULL, but reports no error. */
    if (fclose(to) || !whole || !*header) return bsmm_fail_memory();
    *bytes = size;
    for (uint64_t i = 0; i < writer->item_count; i++)
        writer->items[i].offset += size;
    return BSMM_OK;
}
