/* Adds weights to an output file in the form in which checkpoint families store them. */
#include "io/gguf.h"
#include "io/writer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char no_format[] = "it does not have this format";
static const char no_gguf[] = "GGUF files do not have it", only_gguf[] = "only GGUF files have it";

/* Returns the reason why a weight cannot be stored in the way that `row`, an entry of the storage
 * table (families.c), describes. Returns NULL if it can. `wants_global` is true if the weight must
 * have a global scale. */
static const char *refuse(const bsmm_storage *row, const bsmm_operand *o, bool wants_global,
                          bool is_gguf) {
    const bsmm_matrix *m = &o->m;
    if (!row->writes) return "it is only read";
    if (row->in_gguf != is_gguf && row != bsmm_storage_plain())
        return is_gguf ? no_gguf : only_gguf;
    if (row->declared) return NULL;
    if (m->order != BSMM_ORDER_ROW) return "only row-major matrices can be stored";
    if (m->scale_layout != BSMM_LAYOUT_ROW_MAJOR) return "only row-major scales can be stored";
    if (row->format.elem == BSMM_ELEM_NONE) {
        if (m->format.scale != BSMM_SCALE_NONE) return "it has no scales";
        return bsmm_elem_is_wide(m->format.elem) ? NULL : "only f32, f16 and bf16 can be stored";
    }
    if (!bsmm_format_equal(bsmm_storage_format(row, m->rows, m->cols), m->format)) return no_format;
    if (wants_global && !row->global) return "it has no global scale";
    if (row->in_gguf && m->cols % bsmm_gguf_type_named(row->data_dtype)->block)
        return "rows must consist of whole blocks of ggml";
    int64_t group = row->pack_bytes ? row->pack_elems : 1;
    if (row->trailing) group *= row->trailing;
    if (m->cols % group) return "the shapes of the tensors cannot express this number of columns";
    return NULL;
}

/* Chooses the entry of the storage table (families.c) by which a weight is stored. Some entries
 * depend on shapes (by_shape) and may fit by chance: for example, fp8_group128 with 128 columns has
 * one scale per row, like FP8 with row scales. Such an entry is used only if no other entry fits
 * and the caller names its family. */
static bsmm_status choose(const char *family, const bsmm_operand *o, bool wants_global,
                          bool is_gguf, const bsmm_storage **chosen) {
    /* `reason` is the reason why the entry of the storage table (families.c) that fits the weight
     * best cannot store it. */
    const char *reason = NULL;
    const bsmm_storage *row, *whole = NULL;
    if (family && !bsmm_family_exists(family))
        return bsmm_fail(BSMM_E_NOT_FOUND, "family: \"%.60s\" is not known", family);
    for (size_t i = 0; (row = bsmm_storage_to_write(i)); i++) {
        if (family && strcmp(family, row->family) != 0) continue;
        const char *why = refuse(row, o, wants_global, is_gguf);
        if (!why && !row->by_shape) {
            *chosen = row;
            return BSMM_OK;
        }
        if (!why && family && !whole) whole = row;
        const bool weak = why == no_format || why == no_gguf || why == only_gguf;
        if (why && row->writes && (!weak || !reason || reason == no_gguf)) reason = why;
    }
    if (whole) {
        *chosen = whole;
        return BSMM_OK;
    }
    return bsmm_fail(BSMM_E_UNSUPPORTED, "family: %s cannot hold %s: %s%s",
                     family ? family : "a GGUF file", bsmm_format_name(o->m.format),
                     reason ? reason : "it is only read",
                     is_gguf ? "" : " (bsmm holds everything)");
}

typedef struct dims {
    uint32_t count;
    int64_t at[BSMM_MAX_DIMS];
} dims;

static void push(dims *d, int64_t extent) {
    d->at[d->count++] = extent;
}

static dims data_dims(const bsmm_written *w) {
    const bsmm_matrix *m = &w->operand.m;
    bool by_rows = m->order == BSMM_ORDER_ROW;
    int64_t line = bsmm_round_up(by_rows ? m->cols : m->rows, bsmm_elem_group(m->format.elem));
    dims d = {0};
    if (w->batch > 1 || w->row->trailing) push(&d, w->batch);
    push(&d, by_rows ? m->rows : m->cols);
    if (w->row->pack_bytes) line = line / w->row->pack_elems * w->row->pack_bytes;
    if (w->row->trailing) {
        push(&d, line / w->row->trailing);
        line = w->row->trailing;
    }
    push(&d, line);
    return d;
}

/* Returns the shape of the scale tensor. After the dimension of the batch, if there is one, it has
 * two dimensions for row-major and column-major scales, and one dimension for all other scale
 * layouts. */
static dims scale_dims(const bsmm_written *w) {
    const bsmm_scale_map *map = &w->operand.map;
    uint32_t layout = w->operand.m.scale_layout;
    dims d = {0};
    if (w->batch > 1 || w->row->trailing) push(&d, w->batch);
    if (w->row->scale_shape != BSMM_SCALES_BY_BLOCK) {
        if (w->row->scale_shape == BSMM_SCALES_ONE) push(&d, 1);
    } else if (layout == BSMM_LAYOUT_ROW_MAJOR || layout == BSMM_LAYOUT_COL_MAJOR) {
        bool by_rows = layout == BSMM_LAYOUT_ROW_MAJOR;
        push(&d, by_rows ? map->rows : map->cols);
        push(&d, by_rows ? map->cols : map->rows);
    } else {
        push(&d, (int64_t)map->count);
    }
    return d;
}

static dims global_dims(const bsmm_written *w) {
    dims d = {0};
    if (w->batch > 1 || w->row->global_ndim) push(&d, w->batch);
    return d;
}

static bsmm_status add_part(bsmm_writer *writer, const bsmm_written *w, const char *suffix,
                            const char *dtype, dims d, uint64_t *index) {
    char *name = bsmm_arena_join(&writer->arena, w->base, strlen(w->base), suffix);
    if (!name) return bsmm_fail_memory();
    return bsmm_writer_add_tensor(writer, name, dtype, d.count, d.at, index);
}

static bsmm_status add_parts(bsmm_writer *writer, bsmm_written *w, bool wants_global) {
    const bsmm_storage *row = w->row;
    bsmm_format f = w->operand.m.format;
    const char *dtype = row->data_dtype ? row->data_dtype : bsmm_dtype_of_elem(f.elem)->name;
    w->scale = w->global = BSMM_NO_TENSOR;
    BSMM_TRY(add_part(writer, w, row->data, dtype, data_dims(w), &w->data));
    if (f.scale != BSMM_SCALE_NONE && row->scale) {
        dtype = row->scale_dtype ? row->scale_dtype : bsmm_dtype_of_scale(f.scale)->name;
        BSMM_TRY(add_part(writer, w, row->scale, dtype, scale_dims(w), &w->scale));
    }
    if (!row->global || (row->global_optional && !wants_global)) return BSMM_OK;
    return add_part(writer, w, row->global, "F32", global_dims(w), &w->global);
}

/* Removes all tensors of the output file (items) after the first `count`. The removed tensors
 * belong to a weight that could not be added completely. */
static void forget_items(bsmm_writer *writer, uint64_t count) {
    while (writer->item_count > count)
        json_object_del(writer->names, writer->items[--writer->item_count].name);
}

static const char *base_of(bsmm_writer *writer, const bsmm_storage *row, const char *name) {
    size_t length = strlen(name);
    if (row->name[0] && bsmm_text_ends(name, row->name)) length -= strlen(row->name);
    return bsmm_arena_text(&writer->arena, name, length);
}

/* Copies the description of a matrix, but without its pointers and without gaps between rows. */
static bsmm_status take_description(const bsmm_matrix *matrix, bsmm_operand *operand,
                                    bool *wants_global) {
    bsmm_matrix m;
    BSMM_TRY(bsmm_take_struct(&m, sizeof m, matrix, "matrix"));
    *wants_global = m.global_scale || m.format.scale == BSMM_SCALE_E4M3;
    m.struct_size = (uint32_t)sizeof m;
    m.data = m.scales = NULL;
    m.data_bytes = m.scale_bytes = 0;
    m.ld = m.scale_ld = 0;
    m.global_scale = NULL;
    return bsmm_operand_take(&m, "matrix", operand);
}

static bsmm_status check_weight(const char *name, int64_t batch) {
    if (!name || !bsmm_text_is_utf8(name, strlen(name)) || !name[0])
        return bsmm_fail(BSMM_E_INVALID, "name: value is %s; must be UTF-8 and not empty",
                         name ? "not a name" : "NULL");
    if (batch >= 1) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "batch: value is %lld; must be 1 or more", (long long)batch);
}

bsmm_status bsmm_writer_add_weight(bsmm_writer *writer, const char *family, const char *name,
                                   const bsmm_matrix *matrix, int64_t batch, uint64_t *index) {
    bsmm_written w = {.batch = batch};
    bool wants_global;
    BSMM_TRY(bsmm_writer_check(writer, false));
    BSMM_TRY(check_weight(name, batch));
    BSMM_TRY(take_description(matrix, &w.operand, &wants_global));
    BSMM_TRY(choose(family, &w.operand, wants_global, writer->kind->is_gguf, &w.row));
    if (!w.row->declared) w.operand.m.global_kind = w.row->global_kind;
    w.base = base_of(writer, w.row, name);
    if (!w.base) return bsmm_fail_memory();
    BSMM_TRY(
        bsmm_grow((void **)&writer->weights, writer->weight_count, &writer->weight_room, sizeof w));
    uint64_t before = writer->item_count;
    bsmm_status status = add_parts(writer, &w, wants_global);
    if (status != BSMM_OK) {
        forget_items(writer, before);
        return status;
    }
    writer->weights[writer->weight_count] = w;
    if (index) *index = writer->weight_count;
    writer->weight_count++;
    return BSMM_OK;
}

static bsmm_status check_slice(const bsmm_writer *writer, uint64_t index, int64_t slice) {
    BSMM_TRY(bsmm_writer_check(writer, true));
    if (index >= writer->weight_count)
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %llu; %llu weights were added",
                         (unsigned long long)index, (unsigned long long)writer->weight_count);
    const int64_t batch = writer->weights[index].batch;
    if (slice >= 0 && slice < batch) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "slice: value is %lld; must be 0 to %lld", (long long)slice,
                     (long long)batch - 1);
}

bsmm_status bsmm_writer_weight(bsmm_writer *writer, uint64_t index, int64_t slice,
                               bsmm_matrix *out) {
    BSMM_TRY(check_slice(writer, index, slice));
    const bsmm_written *w = &writer->weights[index];
    const bsmm_item *items = writer->items;
    uint8_t *base = writer->output.data;
    bsmm_matrix m = w->operand.m;
    m.data_bytes = w->operand.data_bytes;
    m.scale_bytes = w->operand.scale_bytes;
    if (!w->row->pack) m.data = base + items[w->data].offset + (uint64_t)slice * m.data_bytes;
    if (w->scale != BSMM_NO_TENSOR)
        m.scales = base + items[w->scale].offset + (uint64_t)slice * m.scale_bytes;
    if (w->global != BSMM_NO_TENSOR)
        m.global_scale = (float *)(void *)(base + items[w->global].offset) + slice;
    return bsmm_give_struct(out, &m, sizeof m, "out");
}

bsmm_status bsmm_writer_weight_pack(bsmm_writer *writer, uint64_t index, int64_t slice,
                                    const bsmm_matrix *src) {
    bsmm_operand from;
    BSMM_TRY(check_slice(writer, index, slice));
    BSMM_TRY(bsmm_operand_take(src, "src", &from));
    const bsmm_written *w = &writer->weights[index];
    const bsmm_item *item = &writer->items[w->data];
    if (!w->row->pack)
        return bsmm_fail(BSMM_E_INVALID,
                         "index: the memory of weight %llu is mapped; only weights in blocks are "
                         "packed",
                         (unsigned long long)index);
    BSMM_TRY(bsmm_operand_check_same(&w->operand, &from, "src", "bsmm_writer_weight"));
    BSMM_TRY(bsmm_operand_check_memory(&from, "src"));
    const uint64_t step = item->bytes / (uint64_t)w->batch;
    return w->row->pack(&from, writer->output.data + item->offset + (uint64_t)slice * step,
                        item->name);
}

static bsmm_status declare(bsmm_writer *writer, const bsmm_written *w) {
    char *key = bsmm_arena_join(&writer->arena, BSMM_DECLARATION_PREFIX,
                                strlen(BSMM_DECLARATION_PREFIX), w->base);
    char *text = bsmm_declaration_write(&w->operand.m, w->batch, &writer->arena);
    return key && text ? bsmm_writer_put_metadata(writer, key, text) : bsmm_fail_memory();
}

/* Makes the quantization_config of the file. The config describes those weights that a reader can
 * recognize only by a text in the config (bsmm_config_evidence), because their tensors have the
 * names and types of several families. */
static bsmm_status describe_config(bsmm_writer *writer, const char **layers,
                                   const char **evidence) {
    size_t count = 0;
    if (!layers || !evidence) return bsmm_fail_memory();
    for (uint64_t i = 0; i < writer->weight_count; i++) {
        if (!writer->weights[i].row->evidence) continue;
        layers[count] = writer->weights[i].base;
        evidence[count++] = writer->weights[i].row->evidence;
    }
    if (count == 0) return BSMM_OK;
    char *text = bsmm_config_write(layers, evidence, count);
    bsmm_status status =
        text ? bsmm_writer_put_metadata(writer, BSMM_CONFIG_KEY, text) : bsmm_fail_memory();
    free(text);
    return status;
}

bsmm_status bsmm_writer_describe_weights(bsmm_writer *writer) {
    for (uint64_t i = 0; i < writer->weight_count; i++)
        if (writer->weights[i].row->declared) BSMM_TRY(declare(writer, &writer->weights[i]));
    const char **layers = malloc((writer->weight_count + 1) * sizeof *layers);
    const char **evidence = malloc((writer->weight_count + 1) * sizeof *evidence);
    bsmm_status status = describe_config(writer, layers, evidence);
    free(layers);
    free(evidence);
    return status;
}
