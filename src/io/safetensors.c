/* Parses safetensors files. A file has the length of the header in 8 bytes, a JSON header, and the
 * bytes of all tensors without gaps. Source of the rules: the reference implementation,
 * huggingface/safetensors, safetensors/src/tensor.rs. */
#include "io/safetensors.h"
#include "io/json.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

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

static uint64_t byte_of(const bsmm_header *h, const char *at) {
    return (uint64_t)(at - h->text) + 8;
}

bsmm_status bsmm_header_fail(const bsmm_header *h, const char *expected) {
    return bsmm_fail(BSMM_E_FORMAT,
                     "header: byte %" PRIu64 " of the file: %s expected; must be JSON in UTF-8",
                     byte_of(h, h->scan.at), expected);
}

bsmm_status bsmm_header_json(const bsmm_header *h, bsmm_span span, json_t **value) {
    json_error_t error;
    *value = json_loadb(span.at, span.length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (*value) return BSMM_OK;
    if (bsmm_json_ran_out(&error)) return bsmm_fail_memory();
    return bsmm_fail(BSMM_E_FORMAT,
                     "header: byte %" PRIu64 " of the file: %s; must be JSON in UTF-8",
                     byte_of(h, span.at) + (uint64_t)error.position, error.text);
}

/* Decodes a key that contains escape sequences. Fails if the key is no string. */
static bsmm_status decode_key(bsmm_header *h, const char **key) {
    bsmm_span span;
    json_t *decoded;
    if (!bsmm_scan_value(&h->scan, &span)) return bsmm_header_fail(h, "a string");
    BSMM_TRY(bsmm_header_json(h, span, &decoded));
    const char *text = json_string_value(decoded);
    *key = text ? bsmm_arena_text(&h->file->arena, text, strlen(text)) : NULL;
    json_decref(decoded);
    if (!text) return bsmm_header_fail(h, "a string");
    return *key ? BSMM_OK : bsmm_fail_memory();
}

static bsmm_status read_key(bsmm_header *h, const char **key) {
    bsmm_scan begin = h->scan;
    bsmm_span span;
    if (bsmm_scan_string(&h->scan, &span) && bsmm_text_is_utf8(span.at, span.length)) {
        *key = bsmm_arena_text(&h->file->arena, span.at, span.length);
        return *key ? BSMM_OK : bsmm_fail_memory();
    }
    h->scan = begin;
    return decode_key(h, key);
}

static bsmm_status add_metadata(bsmm_file *file, json_t *metadata) {
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return bsmm_fail(BSMM_E_FORMAT, "header.__metadata__: must be an object of strings");
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value))
            return bsmm_fail(BSMM_E_FORMAT, "header.__metadata__.%.80s: must be a string", key);
        BSMM_TRY(
            bsmm_file_add_text(file, key, json_string_value(value), json_string_length(value)));
    }
    return BSMM_OK;
}

static bsmm_status read_metadata(bsmm_header *h) {
    bsmm_span span;
    json_t *value;
    if (h->has_metadata) return bsmm_header_fail(h, "no second __metadata__");
    h->has_metadata = true;
    if (!bsmm_scan_value(&h->scan, &span)) return bsmm_header_fail(h, "a value");
    BSMM_TRY(bsmm_header_json(h, span, &value));
    bsmm_status status = add_metadata(h->file, value);
    json_decref(value);
    return status;
}

static bsmm_status read_member(bsmm_header *h) {
    const char *key = NULL;
    BSMM_TRY(read_key(h, &key));
    if (!key || !bsmm_scan_take(&h->scan, ':')) return bsmm_header_fail(h, "':'");
    return strcmp(key, "__metadata__") == 0 ? read_metadata(h) : bsmm_header_tensor(h, key);
}

static bsmm_status read_members(bsmm_header *h) {
    if (!bsmm_scan_take(&h->scan, '{')) return bsmm_header_fail(h, "'{'");
    if (!bsmm_scan_take(&h->scan, '}')) {
        do
            BSMM_TRY(read_member(h));
        while (bsmm_scan_take(&h->scan, ','));
        if (!bsmm_scan_take(&h->scan, '}')) return bsmm_header_fail(h, "',' or '}'");
    }
    bsmm_scan_space(&h->scan);
    return h->scan.at == h->scan.end ? BSMM_OK : bsmm_header_fail(h, "end of file");
}

/* Checks that every byte after the header belongs to exactly one tensor. If it finds a gap or an
 * overlap, the cause may be that two tensors have the same name. bsmm_file_index fails in this
 * case, and the message then names the duplicate instead of the gap or overlap. */
static bsmm_status check_tiling(const bsmm_header *h) {
    uint64_t at = 0;
    for (uint64_t i = 0; i < h->file->tensor_count; i++) {
        const bsmm_tensor *t = &h->file->tensors[i];
        uint64_t begin = (uint64_t)((const uint8_t *)t->data - h->body);
        if (begin != at) {
            BSMM_TRY(bsmm_file_index(h->file));
            return bsmm_fail(BSMM_E_FORMAT,
                             "header.%.120s.data_offsets: begin at %" PRIu64 "; the tensor before "
                             "ends at %" PRIu64 " (no overlap, no gap)",
                             t->name, begin, at);
        }
        at += t->bytes;
    }
    if (at == h->body_bytes) return BSMM_OK;
    return bsmm_fail(BSMM_E_FORMAT,
                     "data: the file has %" PRIu64 " bytes after the header; the tensors take "
                     "%" PRIu64,
                     h->body_bytes, at);
}

bsmm_status bsmm_safetensors_parse(const uint8_t *data, size_t bytes, bsmm_file *file) {
    uint64_t length = 0;
    file->kind = "safetensors";
    BSMM_TRY(check_header(data, bytes, &length));
    const char *text = (const char *)data + 8;
    bsmm_header h = {.text = text,
                     .scan = {text, text + length},
                     .body = data + 8 + length,
                     .body_bytes = bytes - 8 - length,
                     .file = file};
    BSMM_TRY(read_members(&h));
    BSMM_TRY(bsmm_file_order(file));
    return check_tiling(&h);
}
