/* Reads and writes declarations. A declaration is a full description of a weight. In checkpoints
 * that bsmm writes in its own format (the family "bsmm"), the writer stores a declaration of each
 * weight in the metadata, so that the reader need not guess. The metadata key for tensor X is
 * "bsmm.X", and the value is a JSON object. */
#include "io/family.h"
#include "io/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *const orders[] = {"row", "col"};
static const char *const globals[] = {"multiplier", "divisor"};

/* Finds the index of a name in a list. Returns false if the name is not in the list. */
static bool index_of(const char *const *names, size_t count, const char *name, uint32_t *index) {
    for (size_t i = 0; name && i < count; i++)
        if (strcmp(names[i], name) == 0) {
            *index = (uint32_t)i;
            return true;
        }
    return false;
}

static bool elem_of(const char *name, uint32_t *elem) {
    for (uint32_t i = 1; name && i < BSMM_ELEM_COUNT; i++)
        if (bsmm_elem_traits_of[i].in_matrices && strcmp(bsmm_elem_row(i)->name, name) == 0) {
            *elem = i;
            return true;
        }
    return false;
}

static bool scale_of(const char *name, uint32_t *scale) {
    const bsmm_scale_row *row;
    for (uint32_t i = 0; name && (row = bsmm_scale_row_of(i)); i++)
        if (strcmp(row->name, name) == 0) {
            *scale = i;
            return true;
        }
    return false;
}

static bool layout_of(const char *name, uint32_t *layout) {
    const char *known;
    for (uint32_t i = 0; name && (known = bsmm_layout_name(i)); i++)
        if (strcmp(known, name) == 0) {
            *layout = i;
            return true;
        }
    return false;
}

static bool read_pair(const json_t *pair, uint32_t *first, uint32_t *second) {
    const json_t *a = json_array_get(pair, 0), *b = json_array_get(pair, 1);
    if (json_array_size(pair) != 2 || !json_is_integer(a) || !json_is_integer(b)) return false;
    json_int_t x = json_integer_value(a), y = json_integer_value(b);
    if (x < 0 || y < 0 || x > UINT32_MAX || y > UINT32_MAX) return false;
    *first = (uint32_t)x;
    *second = (uint32_t)y;
    return true;
}

static bool read_extent(const json_t *value, int64_t *extent) {
    *extent = json_integer_value(value);
    return json_is_integer(value);
}

static const char *text_at(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

/* Reads the fields of a weight's declaration (format, shape and so on) from its JSON object.
 * Returns the name of the first field that is missing or has a wrong type, or NULL if all fields
 * are valid. */
static const char *read_fields(const json_t *o, bsmm_matrix *m, int64_t *batch) {
    if (!elem_of(text_at(o, "elem"), &m->format.elem)) return "elem";
    if (!scale_of(text_at(o, "scale"), &m->format.scale)) return "scale";
    if (!read_pair(json_object_get(o, "block"), &m->format.block_rows, &m->format.block_cols))
        return "block";
    if (!read_extent(json_object_get(o, "batch"), batch)) return "batch";
    if (!read_extent(json_object_get(o, "rows"), &m->rows)) return "rows";
    if (!read_extent(json_object_get(o, "cols"), &m->cols)) return "cols";
    if (!index_of(orders, BSMM_COUNT(orders), text_at(o, "order"), &m->order)) return "order";
    if (!layout_of(text_at(o, "layout"), &m->scale_layout)) return "layout";
    if (!read_pair(json_object_get(o, "tile"), &m->scale_tile_rows, &m->scale_tile_cols))
        return "tile";
    if (!index_of(globals, BSMM_COUNT(globals), text_at(o, "global"), &m->global_kind))
        return "global";
    return NULL;
}

bsmm_status bsmm_declaration_read(const char *text, const char *what, bsmm_matrix *matrix,
                                  int64_t *batch) {
    json_error_t error;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!object && bsmm_json_ran_out(&error)) return bsmm_fail_memory();
    if (!object)
        return bsmm_fail(BSMM_E_FORMAT, "metadata " BSMM_DECLARATION_PREFIX "%.120s: %s", what,
                         error.text);
    *matrix = BSMM_INIT(bsmm_matrix);
    const char *broken = read_fields(object, matrix, batch);
    json_decref(object);
    if (!broken) return BSMM_OK;
    return bsmm_fail(BSMM_E_FORMAT,
                     "metadata " BSMM_DECLARATION_PREFIX "%.120s.%s: is missing or not a value of "
                     "its kind",
                     what, broken);
}

char *bsmm_declaration_write(const bsmm_matrix *m, int64_t batch, bsmm_arena *arena) {
    json_t *object = json_pack(
        "{s:s, s:s, s:[i,i], s:I, s:I, s:I, s:s, s:s, s:[i,i], s:s}", "elem",
        bsmm_elem_row(m->format.elem)->name, "scale", bsmm_scale_row_of(m->format.scale)->name,
        "block", (int)m->format.block_rows, (int)m->format.block_cols, "batch", (json_int_t)batch,
        "rows", (json_int_t)m->rows, "cols", (json_int_t)m->cols, "order", orders[m->order],
        "layout", bsmm_layout_name(m->scale_layout), "tile", (int)m->scale_tile_rows,
        (int)m->scale_tile_cols, "global", globals[m->global_kind]);
    char *text = bsmm_json_text(object);
    char *kept = text ? bsmm_arena_text(arena, text, strlen(text)) : NULL;
    free(text);
    json_decref(object);
    return kept;
}
