/* Parses the description of one tensor in a safetensors header. A fast path parses, directly from
 * the text, the form that usual writers produce. Any other form, and any error, takes a slow path
 * that builds a JSON tree and finds the exact error. */
#include "io/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

typedef struct offsets {
    uint64_t begin, end;
} offsets;

static bool is(bsmm_span span, const char *text) {
    return span.length == strlen(text) && memcmp(span.at, text, span.length) == 0;
}

/* Finds a type by its name. Most tensors have the same type as the previous tensor, so that type is
 * compared first. */
static const bsmm_dtype *dtype_of(bsmm_header *h, bsmm_span name) {
    char text[16];
    if (h->dtype && is(name, h->dtype->name)) return h->dtype;
    if (name.length >= sizeof text) return NULL;
    memcpy(text, name.at, name.length);
    text[name.length] = '\0';
    const bsmm_dtype *found = bsmm_dtype_find(text);
    if (found) h->dtype = found;
    return found;
}

static bool take_shape(bsmm_scan *s, bsmm_tensor *t) {
    uint64_t extent;
    if (!bsmm_scan_take(s, '[')) return false;
    if (bsmm_scan_take(s, ']')) return true;
    do {
        if (t->ndim == BSMM_MAX_DIMS || !bsmm_scan_count(s, &extent)) return false;
        t->shape[t->ndim++] = (int64_t)extent;
    } while (bsmm_scan_take(s, ','));
    return bsmm_scan_take(s, ']');
}

static bool take_offsets(bsmm_scan *s, offsets *o) {
    return bsmm_scan_take(s, '[') && bsmm_scan_count(s, &o->begin) && bsmm_scan_take(s, ',') &&
           bsmm_scan_count(s, &o->end) && bsmm_scan_take(s, ']');
}

/* Parses one field of the tensor's description and sets the bit of the field in *seen. */
static bool take_field(bsmm_header *h, bsmm_tensor *t, offsets *o, const bsmm_dtype **dtype,
                       unsigned *seen) {
    bsmm_span key, text;
    bsmm_scan *s = &h->scan;
    if (!bsmm_scan_string(s, &key) || !bsmm_scan_take(s, ':')) return false;
    unsigned bit = is(key, "dtype")          ? 1u
                   : is(key, "shape")        ? 2u
                   : is(key, "data_offsets") ? 4u
                                             : 0u;
    if (bit == 0 || *seen & bit) return false;
    *seen |= bit;
    if (bit == 1) return bsmm_scan_string(s, &text) && (*dtype = dtype_of(h, text)) != NULL;
    return bit == 2 ? take_shape(s, t) : take_offsets(s, o);
}

static bool take_plain(bsmm_header *h, bsmm_tensor *t) {
    offsets o = {0};
    const bsmm_dtype *dtype = NULL;
    unsigned seen = 0;
    if (!bsmm_scan_take(&h->scan, '{')) return false;
    do
        if (!take_field(h, t, &o, &dtype, &seen)) return false;
    while (bsmm_scan_take(&h->scan, ','));
    if (seen != 7 || !bsmm_scan_take(&h->scan, '}')) return false;
    if (o.end > h->body_bytes || o.begin > o.end ||
        bsmm_shape_bytes(BSMM_E_FORMAT, "", dtype, t->ndim, t->shape, &t->bytes) != BSMM_OK)
        return false;
    t->dtype = dtype->name;
    t->elem = dtype->elem;
    t->data = h->body + o.begin;
    return t->bytes == o.end - o.begin;
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

static bsmm_status read_offsets(const json_t *array, const char *what, const bsmm_header *h,
                                offsets *o) {
    const json_t *begin = json_array_get(array, 0), *end = json_array_get(array, 1);
    if (json_array_size(array) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return bsmm_fail(BSMM_E_FORMAT, "%s.data_offsets: must be an array of two integers", what);
    json_int_t from = json_integer_value(begin), till = json_integer_value(end);
    if (from < 0 || till < from || (uint64_t)till > h->body_bytes)
        return bsmm_fail(BSMM_E_FORMAT,
                         "%s.data_offsets: value is [%" JSON_INTEGER_FORMAT
                         ", %" JSON_INTEGER_FORMAT "]; must rise and end within the %" PRIu64
                         " bytes after the header",
                         what, from, till, h->body_bytes);
    *o = (offsets){(uint64_t)from, (uint64_t)till};
    return BSMM_OK;
}

static bsmm_status read_dtype(const json_t *value, const char *what, const bsmm_dtype **dtype) {
    const char *name = json_string_value(json_object_get(value, "dtype"));
    if (!name) return bsmm_fail(BSMM_E_FORMAT, "%s.dtype: must be a string", what);
    *dtype = bsmm_dtype_find(name);
    if (*dtype) return BSMM_OK;
    return bsmm_fail(BSMM_E_FORMAT, "%s.dtype: value is \"%.40s\"; is not a known type", what,
                     name);
}

static bsmm_status read_tree(const bsmm_header *h, const json_t *value, bsmm_tensor *t) {
    char what[160];
    offsets o = {0};
    const bsmm_dtype *dtype = NULL;
    snprintf(what, sizeof what, "header.%s", t->name);
    BSMM_TRY(read_dtype(value, what, &dtype));
    if (!dtype) return BSMM_E_FORMAT;
    BSMM_TRY(read_shape(json_object_get(value, "shape"), what, t));
    BSMM_TRY(read_offsets(json_object_get(value, "data_offsets"), what, h, &o));
    BSMM_TRY(bsmm_shape_bytes(BSMM_E_FORMAT, what, dtype, t->ndim, t->shape, &t->bytes));
    if (t->bytes != o.end - o.begin)
        return bsmm_fail(BSMM_E_FORMAT,
                         "%s.data_offsets: span %" PRIu64 " bytes; shape and dtype take %" PRIu64,
                         what, o.end - o.begin, t->bytes);
    t->dtype = dtype->name;
    t->elem = dtype->elem;
    t->data = h->body + o.begin;
    return BSMM_OK;
}

bsmm_status bsmm_header_tensor(bsmm_header *h, const char *name) {
    bsmm_scan begin = h->scan;
    bsmm_span span;
    json_t *value;
    bsmm_tensor t = {.name = name};
    if (take_plain(h, &t)) return bsmm_file_add_tensor(h->file, &t);
    h->scan = begin;
    if (!bsmm_scan_value(&h->scan, &span)) return bsmm_header_fail(h, "a value");
    BSMM_TRY(bsmm_header_json(h, span, &value));
    t = (bsmm_tensor){.name = name};
    bsmm_status status = read_tree(h, value, &t);
    json_decref(value);
    return status == BSMM_OK ? bsmm_file_add_tensor(h->file, &t) : status;
}
