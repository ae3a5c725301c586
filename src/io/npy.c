/* Parses .npy files. A file has a magic number, a version, a Python dictionary as text, and the
 * array. Versions 1, 2 and 3 differ in the width of the dictionary's length field and in the
 * encoding of its text. Sources: NEP 1 and numpy/lib/format.py. */
#include "io/io.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct cursor {
    const char *at, *end;
} cursor;

typedef struct header {
    char descr[16];
    bool has_descr, has_order, has_shape, fortran;
    uint32_t ndim;
    int64_t shape[BSMM_MAX_DIMS];
} header;

static bsmm_status fail_syntax(const cursor *c, const char *begin, const char *expected) {
    return bsmm_fail(BSMM_E_FORMAT, "header: byte %td of the dictionary; must be %s", c->at - begin,
                     expected);
}

static void skip_space(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n'))
        c->at++;
}

static bool take(cursor *c, const char *token) {
    skip_space(c);
    size_t length = strlen(token);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, token, length) != 0) return false;
    c->at += length;
    return true;
}

/* Parses a quoted string that has no escape sequences. */
static bool take_string(cursor *c, char *to, size_t size) {
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
    const char *begin = c->at + 1;
    const char *close = memchr(begin, *c->at, (size_t)(c->end - begin));
    if (!close || (size_t)(close - begin) >= size || memchr(begin, '\\', (size_t)(close - begin)))
        return false;
    memcpy(to, begin, (size_t)(close - begin));
    to[close - begin] = 0;
    c->at = close + 1;
    return true;
}

/* Parses the digits of an integer. The caller must have skipped white space before them. */
static bool take_integer(cursor *c, int64_t *value) {
    const char *begin = c->at;
    for (*value = 0; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *c->at - '0', value))
            return false;
    return c->at > begin;
}

/* Parses the shape of the array, such as "()", "(3,)" or "(3, 4)". */
static bool take_shape(cursor *c, header *h) {
    if (!take(c, "(")) return false;
    for (h->ndim = 0; !take(c, ")"); h->ndim++) {
        if (h->ndim == BSMM_MAX_DIMS || !take_integer(c, &h->shape[h->ndim])) return false;
        if (take(c, ",")) continue;
        h->ndim++;
        return take(c, ")");
    }
    return true;
}

static bsmm_status take_field(cursor *c, const char *begin, header *h) {
    char key[16];
    if (!take_string(c, key, sizeof key) || !take(c, ":"))
        return fail_syntax(c, begin, "a quoted key and a colon");
    bool is_descr = strcmp(key, "descr") == 0, is_order = strcmp(key, "fortran_order") == 0;
    bool is_shape = strcmp(key, "shape") == 0;
    bool *seen = is_descr ? &h->has_descr : is_order ? &h->has_order : &h->has_shape;
    if (!(is_descr || is_order || is_shape) || *seen)
        return bsmm_fail(BSMM_E_FORMAT,
                         "header: key \"%s\"; must be descr, fortran_order and "
                         "shape, each once",
                         key);
    *seen = true;
    if (is_descr && !take_string(c, h->descr, sizeof h->descr))
        return fail_syntax(c, begin, "a type like '<f4' (no structured types)");
    if (is_shape && !take_shape(c, h))
        return fail_syntax(c, begin, "a tuple of at most 8 integers below 2^63");
    if (is_order && !(h->fortran = take(c, "True")) && !take(c, "False"))
        return fail_syntax(c, begin, "True or False");
    return BSMM_OK;
}

static bsmm_status read_dictionary(const char *text, size_t length, header *h) {
    cursor c = {text, text + length};
    if (!take(&c, "{")) return fail_syntax(&c, text, "'{'");
    while (!take(&c, "}")) {
        BSMM_TRY(take_field(&c, text, h));
        if (take(&c, ",")) continue;
        if (!take(&c, "}")) return fail_syntax(&c, text, "',' or '}'");
        break;
    }
    skip_space(&c);
    if (c.at != c.end) return fail_syntax(&c, text, "the end of the header");
    if (h->has_descr && h->has_order && h->has_shape) return BSMM_OK;
    return bsmm_fail(BSMM_E_FORMAT, "header: must have the keys descr, fortran_order and shape");
}

/* Finds the element type, which gives the size of an element. A big-endian type is recognized, but
 * *native is then false and the elements are not decoded. */
static const bsmm_dtype *dtype_of(const char *descr, bool *native) {
    const bsmm_dtype *row;
    for (size_t i = 0; (row = bsmm_dtype_at(i)); i++) {
        if (!row->npy || strcmp(row->npy + 1, descr + 1) != 0) continue;
        *native = descr[0] != '>';
        return strchr("<>|=", descr[0]) && (row->bits == 8 || descr[0] != '|') ? row : NULL;
    }
    return NULL;
}

static bsmm_status make_tensor(bsmm_file *file, const header *h, const char *name,
                               const uint8_t *data, size_t bytes) {
    bool native = true;
    const bsmm_dtype *dtype = h->descr[0] ? dtype_of(h->descr, &native) : NULL;
    if (!dtype)
        return bsmm_fail(BSMM_E_UNSUPPORTED,
                         "header.descr: value is '%s'; must be a number of 1 to 8 bytes", h->descr);
    if (h->fortran && h->ndim > 2)
        return bsmm_fail(BSMM_E_UNSUPPORTED,
                         "header.fortran_order: is True with %u dimensions; at most 2 are read",
                         h->ndim);
    bsmm_tensor t = {.name = name, .ndim = h->ndim, .data = data, .bytes = bytes};
    uint64_t wanted;
    memcpy(t.shape, h->shape, sizeof t.shape);
    t.elem = native ? dtype->elem : BSMM_ELEM_NONE;
    t.order = h->fortran ? BSMM_ORDER_COL : BSMM_ORDER_ROW;
    t.dtype = bsmm_arena_text(&file->arena, h->descr, strlen(h->descr));
    if (!t.dtype) return bsmm_fail_memory();
    BSMM_TRY(bsmm_shape_bytes(BSMM_E_FORMAT, "header", dtype, t.ndim, t.shape, &wanted));
    if (wanted != bytes)
        return bsmm_fail(BSMM_E_FORMAT,
                         "data: the file has %zu bytes after the header; shape and descr take "
                         "%" PRIu64,
                         bytes, wanted);
    return bsmm_file_add_tensor(file, &t);
}

bsmm_status bsmm_npy_parse(const uint8_t *data, size_t bytes, const char *name, bsmm_file *file) {
    file->kind = "npy";
    if (bytes < 12)
        return bsmm_fail(BSMM_E_FORMAT, "header: the file has %zu bytes; must have 12", bytes);
    unsigned version = data[6];
    if (version < 1 || version > 3 || data[7] != 0)
        return bsmm_fail(BSMM_E_FORMAT, "version: value is %u.%u; must be 1.0, 2.0 or 3.0", version,
                         data[7]);
    size_t start = version == 1 ? 10 : 12;
    size_t length = bsmm_load_u32(data + 8) & (version == 1 ? 0xFFFFu : 0xFFFFFFFFu);
    if (length > bytes - start)
        return bsmm_fail(BSMM_E_FORMAT,
                         "header length: value is %zu; the file has only %zu bytes after it",
                         length, bytes - start);
    header h = {0};
    BSMM_TRY(read_dictionary((const char *)data + start, length, &h));
    return make_tensor(file, &h, name, data + start + length, bytes - start - length);
}

size_t bsmm_npy_header(const bsmm_dtype *dtype, uint32_t ndim, const int64_t *shape, char *text) {
    static const char magic[8] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
    char dictionary[512];
    int used = snprintf(dictionary, sizeof dictionary,
                        "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype->npy);
    for (uint32_t i = 0; i < ndim; i++)
        used += snprintf(dictionary + used, sizeof dictionary - (size_t)used, "%s%" PRId64,
                         i ? ", " : "", shape[i]);
    used += snprintf(dictionary + used, sizeof dictionary - (size_t)used, "%s), }",
                     ndim == 1 ? "," : "");
    size_t total = (10 + (size_t)used + 1 + 63) / 64 * 64;
    if (!text) return total;
    memset(text, ' ', total);
    memcpy(text, magic, sizeof magic);
    text[8] = (char)((total - 10) & 255);
    text[9] = (char)((total - 10) >> 8);
    memcpy(text + 10, dictionary, (size_t)used);
    text[total - 1] = '\n';
    return total;
}
