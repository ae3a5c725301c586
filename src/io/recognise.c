/* Which tensors make a weight: names and types against the rows of families.c. */
#include "io/family.h"

#include <stdlib.h>
#include <string.h>

typedef struct recognising {
    bsmm_file *file;
    bsmm_config config;
    bool config_loaded;
    bsmm_record *found;            /* one for each tensor; row NULL: not the data of a weight */
    bool *claimed;                 /* tensors that belong to a weight */
    bool seen[BSMM_STORAGE_LIMIT]; /* rows that some weight has */
} recognising;

static bool has_dtype(const bsmm_file *file, uint64_t index, const char *dtype) {
    return index != BSMM_NO_TENSOR && strcmp(file->tensors[index].dtype, dtype) == 0;
}

/* Fills the record's tensors when the data tensor's name and type are the row's. */
static bool match_data(const bsmm_file *file, const bsmm_storage *row, uint64_t index,
                       bsmm_record *to) {
    const char *name = file->tensors[index].name;
    if (!has_dtype(file, index, row->data_dtype) || !bsmm_text_ends(name, row->data)) return false;
    size_t base = strlen(name) - strlen(row->data);
    if (base == 0) return false;
    *to = (bsmm_record){.row = row, .data = index};
    to->scale = row->scale ? bsmm_file_sibling(file, name, base, row->scale) : BSMM_NO_TENSOR;
    to->global = row->global ? bsmm_file_sibling(file, name, base, row->global) : BSMM_NO_TENSOR;
    return true;
}

static bool match_evidence(recognising *r, const bsmm_storage *row, uint64_t index) {
    if (!row->evidence) return true;
    if (!r->config_loaded) bsmm_config_load(r->file, &r->config);
    r->config_loaded = true;
    char layer[512], evidence[64];
    const char *name = r->file->tensors[index].name;
    size_t base = strlen(name) - strlen(row->data);
    if (base >= sizeof layer) return false;
    memcpy(layer, name, base);
    layer[base] = 0;
    bsmm_config_evidence(&r->config, layer, evidence, sizeof evidence);
    return strcmp(evidence, row->evidence) == 0;
}

static void claim(recognising *r, uint64_t index) {
    if (index != BSMM_NO_TENSOR) r->claimed[index] = true;
}

static void accept(recognising *r, const bsmm_record *record) {
    r->found[record->data] = *record;
    claim(r, record->data);
    claim(r, record->scale);
    claim(r, record->global);
}

/* The tensors that the file's own metadata declares. */
static void accept_declared(recognising *r) {
    const bsmm_storage *row = bsmm_storage_declared();
    const size_t prefix = strlen(BSMM_DECLARATION_PREFIX);
    for (uint64_t i = 0; i < r->file->metadata_count; i++) {
        const bsmm_pair *pair = &r->file->metadata[i];
        if (!pair->value || strncmp(pair->key, BSMM_DECLARATION_PREFIX, prefix) != 0) continue;
        const char *name = pair->key + prefix;
        uint64_t index = bsmm_file_lookup(r->file, name);
        if (index == BSMM_NO_TENSOR || r->claimed[index]) continue;
        size_t base = strlen(name);
        accept(r, &(bsmm_record){.row = row,
                                 .data = index,
                                 .scale = bsmm_file_sibling(r->file, name, base, row->scale),
                                 .global = bsmm_file_sibling(r->file, name, base, row->global),
                                 .declaration = pair->value});
    }
}

/* Whether the tensor has rows and columns, and as many matrices as its other dimensions say. */
static bool is_matrix(const bsmm_tensor *t) {
    for (uint32_t i = 0; i + 2 < t->ndim; i++)
        if (t->shape[i] == 0) return false;
    return t->ndim >= 2;
}

/* Whether the tensor may be one of a row that only quantization_config tells, which is there but
 * cannot be read. */
static bool is_doubtful(const recognising *r, const bsmm_storage *row, uint64_t index) {
    const bsmm_tensor *t = &r->file->tensors[index];
    if (!row->evidence || !r->config.unreadable || !is_matrix(t)) return false;
    return t->shape[t->ndim - 1] % row->pack_bytes == 0;
}

static void accept_whole(recognising *r, uint64_t index) {
    const bsmm_storage *row;
    bsmm_record record;
    for (size_t i = 0; (row = bsmm_storage_at(i)); i++) {
        if (!match_data(r->file, row, index, &record)) continue;
        if (row->scale && !has_dtype(r->file, record.scale, row->scale_dtype)) continue;
        if (row->format.scale == BSMM_SCALE_NONE && !is_matrix(&r->file->tensors[index])) continue;
        bool told = match_evidence(r, row, index);
        if (!told && !is_doubtful(r, row, index)) continue;
        if (!told) record.doubt = r->config.unreadable;
        r->seen[i] |= told;
        accept(r, &record);
        return;
    }
}

/* Data whose scales are missing or of another type: a broken weight, not a plain tensor. A lone
 * 8-bit tensor counts as broken where its family is unmistakable or seen elsewhere in the file. */
static void accept_broken(recognising *r, uint64_t index) {
    const bsmm_storage *row;
    bsmm_record record;
    for (size_t i = 0; (row = bsmm_storage_at(i)); i++) {
        if (!row->scale || !match_data(r->file, row, index, &record)) continue;
        bool told = record.scale != BSMM_NO_TENSOR || row->unmistakable ||
                    (r->seen[i] && r->file->tensors[index].ndim >= 2);
        if (!told || (row->evidence && !match_evidence(r, row, index))) continue;
        accept(r, &record);
        return;
    }
}

static void accept_plain(recognising *r, uint64_t index) {
    const bsmm_tensor *t = &r->file->tensors[index];
    if (!bsmm_elem_traits_of[t->elem].in_matrices || !is_matrix(t)) return;
    accept(r, &(bsmm_record){.row = bsmm_storage_plain(),
                             .data = index,
                             .scale = BSMM_NO_TENSOR,
                             .global = BSMM_NO_TENSOR});
}

/* A global scale must be readable as a float wherever it lies; where it lies unaligned, a copy. */
static bsmm_status align_globals(bsmm_file *file, bsmm_record *record) {
    static const uint64_t most = 1u << 22; /* bytes: a million matrices */
    if (!has_dtype(file, record->global, "F32")) return BSMM_OK;
    const bsmm_tensor *t = &file->tensors[record->global];
    record->globals = (float *)(uintptr_t)t->data;
    if ((uintptr_t)t->data % _Alignof(float) == 0) return BSMM_OK;
    record->globals = NULL;
    if (t->bytes > most) return BSMM_OK;
    record->globals = bsmm_arena_take(&file->arena, (size_t)t->bytes);
    if (!record->globals) return bsmm_fail_memory();
    memcpy(record->globals, t->data, (size_t)t->bytes);
    return BSMM_OK;
}

static bsmm_status add_record(bsmm_file *file, const bsmm_record *record) {
    const char *name = file->tensors[record->data].name;
    size_t base = strlen(name) - strlen(record->row->data);
    BSMM_TRY(bsmm_grow((void **)&file->weights, file->weight_count, &file->weight_room,
                       sizeof *file->weights));
    bsmm_record *to = &file->weights[file->weight_count];
    *to = *record;
    to->name = bsmm_arena_join(&file->arena, name, base, record->row->name);
    if (!to->name) return bsmm_fail_memory();
    BSMM_TRY(align_globals(file, to));
    file->weight_count++;
    return BSMM_OK;
}

static bsmm_status sort_weights(bsmm_file *file) {
    file->weights_by_name = malloc((file->weight_count + 1) * sizeof *file->weights_by_name);
    if (!file->weights_by_name) return bsmm_fail_memory();
    for (uint64_t i = 0; i < file->weight_count; i++)
        file->weights_by_name[i] = (bsmm_name){file->weights[i].name, i};
    bsmm_names_sort(file->weights_by_name, file->weight_count);
    return BSMM_OK;
}

static bsmm_status recognise(recognising *r) {
    uint64_t count = r->file->tensor_count;
    accept_declared(r);
    for (uint64_t i = 0; i < count; i++)
        if (!r->claimed[i]) accept_whole(r, i);
    for (uint64_t i = 0; i < count; i++)
        if (!r->claimed[i]) accept_broken(r, i);
    for (uint64_t i = 0; i < count; i++)
        if (!r->claimed[i]) accept_plain(r, i);
    for (uint64_t i = 0; i < count; i++)
        if (r->found[i].row) BSMM_TRY(add_record(r->file, &r->found[i]));
    return sort_weights(r->file);
}

bsmm_status bsmm_file_recognise(bsmm_file *file) {
    recognising r = {.file = file};
    r.found = calloc(file->tensor_count + 1, sizeof *r.found);
    r.claimed = calloc(file->tensor_count + 1, sizeof *r.claimed);
    bsmm_status status = r.found && r.claimed ? recognise(&r) : bsmm_fail_memory();
    bsmm_config_free(&r.config);
    free(r.found);
    free(r.claimed);
    return status;
}
