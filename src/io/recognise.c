/* Recognizes weights by comparing the names and types of tensors with the storage table in
 * families.c. An entry of this table describes one way in which a checkpoint family stores a weight
 * in several tensors. */
#include "io/family.h"

#include <stdlib.h>
#include <string.h>

typedef struct recognising {
    bsmm_file *file;
    bsmm_config config;
    bool config_loaded;
    /* `claimed` has one flag for each tensor, which is true if the tensor belongs to a weight. */
    bool *claimed;
    /* `seen` has one bit for each entry of the storage table (families.c), which is set if the file
     * has a complete weight of the entry. */
    uint64_t seen;
    const char *dtype; /* `dtype` is the type of the tensor that was examined last. */
    /* `rows` keeps the last result of rows_of. It has one bit for each entry of the storage table
     * (families.c). The bit is set if the entry's data tensors have the type `dtype`. */
    uint64_t rows;
    bsmm_status status; /* `status` is the first failure of adding a weight. */
} recognising;

/* Returns the set of entries of the storage table (families.c) whose data tensors have the type of
 * this tensor. The set is kept for the next call, because the next tensor mostly has the same
 * type. */
static uint64_t rows_of(recognising *r, uint64_t index) {
    const char *dtype = r->file->tensors[index].dtype;
    const bsmm_storage *row;
    if (dtype == r->dtype) return r->rows;
    r->dtype = dtype;
    r->rows = 0;
    for (size_t i = 0; (row = bsmm_storage_at(i)); i++)
        if (strcmp(row->data_dtype, dtype) == 0) r->rows |= UINT64_C(1) << i;
    return r->rows;
}

/* `rows` is a set of entries of the storage table (families.c): bit i stands for entry i. Returns
 * the lowest index in the set, which must not be empty. */
static size_t first_of(uint64_t rows) {
    return (size_t)__builtin_ctzll(rows);
}

static bool has_dtype(const bsmm_file *file, uint64_t index, const char *dtype) {
    return index != BSMM_NO_TENSOR && strcmp(file->tensors[index].dtype, dtype) == 0;
}

/* Compares the name of a data tensor with the suffix that `row`, an entry of the storage table
 * (families.c), requires. If the name has this suffix, the function stores the indices of the
 * weight's tensors in the record *to. The caller has already compared the type of the tensor. */
static bool match_data(const bsmm_file *file, const bsmm_storage *row, uint64_t index,
                       bsmm_record *to) {
    const char *name = file->tensors[index].name;
    if (!bsmm_text_ends(name, row->data)) return false;
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

/* Makes the global scales readable as floats. If the file stores them at an unaligned address, they
 * are copied. */
static bsmm_status align_globals(bsmm_file *file, bsmm_record *record) {
    /* If the tensor of global scales has more than `most` bytes, it is not copied, and the weight
     * is refused. The global scales of a million matrices have fewer bytes. */
    static const uint64_t most = 1u << 22;
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
    bool same = strcmp(record->row->data, record->row->name) == 0;
    to->name = same ? name : bsmm_arena_join(&file->arena, name, base, record->row->name);
    if (!to->name) return bsmm_fail_memory();
    BSMM_TRY(align_globals(file, to));
    file->weight_count++;
    return BSMM_OK;
}

static void claim(recognising *r, uint64_t index) {
    if (index != BSMM_NO_TENSOR) r->claimed[index] = true;
}

static void accept(recognising *r, const bsmm_record *record) {
    if (r->status == BSMM_OK) r->status = add_record(r->file, record);
    claim(r, record->data);
    claim(r, record->scale);
    claim(r, record->global);
}

/* Adds the weights that the file's own metadata declares (declaration.c). */
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

/* Tells whether the tensor can be a matrix or a batch of matrices: it has at least two dimensions,
 * and the batch is not empty. */
static bool is_matrix(const bsmm_tensor *t) {
    for (uint32_t i = 0; i + 2 < t->ndim; i++)
        if (t->shape[i] == 0) return false;
    return t->ndim >= 2;
}

/* Returns true if the reader cannot know whether the tensor belongs to the storage table entry
 * `row`, because only quantization_config can tell and the quantization_config of this file cannot
 * be read. */
static bool is_doubtful(const recognising *r, const bsmm_storage *row, uint64_t index) {
    const bsmm_tensor *t = &r->file->tensors[index];
    if (!row->evidence || !r->config.unreadable || !is_matrix(t)) return false;
    return t->shape[t->ndim - 1] % row->pack_bytes == 0;
}

/* Tells whether the data and scale tensors of a weight have the types that its storage table entry
 * requires (families.c). Shapes are not compared. */
static bool match_tensors(recognising *r, uint64_t index, bsmm_record *record) {
    const bsmm_storage *row = record->row;
    if (row->scale && !has_dtype(r->file, record->scale, row->scale_dtype)) return false;
    if (row->format.scale == BSMM_SCALE_NONE && !is_matrix(&r->file->tensors[index])) return false;
    const bool told = match_evidence(r, row, index);
    if (!told && is_doubtful(r, row, index)) record->doubt = r->config.unreadable;
    return told || record->doubt;
}

static bool match_shape(const bsmm_file *file, const bsmm_record *record) {
    return bsmm_storage_fits(record->row, &file->tensors[record->data],
                             &file->tensors[record->scale]);
}

/* Adds the weight to which a data tensor belongs if the file has all tensors of the weight. The
 * tensors may fit several entries of the storage table. Entries with `by_shape` have low priority:
 * if a later entry also fits, the later one is taken. For example, the scales of a matrix of one
 * row may be one scale per row (by_shape) or the scale of one 128x128 block. */
static void accept_whole(recognising *r, uint64_t index) {
    bsmm_record record, best = {0};
    uint64_t bit = 0;
    for (uint64_t rows = rows_of(r, index); rows; rows &= rows - 1) {
        const bsmm_storage *row = bsmm_storage_at(first_of(rows));
        if (!match_data(r->file, row, index, &record)) continue;
        if ((bit && row->by_shape) || !match_tensors(r, index, &record)) continue;
        if ((bit || row->by_shape) && !match_shape(r->file, &record)) continue;
        best = record;
        bit = rows & -rows;
        if (!row->by_shape) break;
    }
    if (!bit) return;
    if (!best.doubt) r->seen |= bit;
    accept(r, &best);
}

/* Adds a data tensor as a broken weight, and not as a plain tensor, if its scale tensors are
 * missing or have a wrong type. The function does so only if something indicates a quantized
 * weight: a scale tensor exists, the name identifies the family, or the file has other weights of
 * the family. */
static void accept_broken(recognising *r, uint64_t index) {
    const bsmm_storage *row;
    bsmm_record record;
    for (uint64_t rows = rows_of(r, index); rows; rows &= rows - 1) {
        row = bsmm_storage_at(first_of(rows));
        if (!row->scale || row->by_shape || !match_data(r->file, row, index, &record)) continue;
        bool told = record.scale != BSMM_NO_TENSOR || row->unmistakable ||
                    (r->seen & rows & -rows && r->file->tensors[index].ndim >= 2);
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

static int compare_records(const void *left, const void *right) {
    const bsmm_record *a = left, *b = right;
    return (a->data > b->data) - (a->data < b->data);
}

static bool is_sorted(const bsmm_file *file) {
    for (uint64_t i = 1; i < file->weight_count; i++)
        if (file->weights[i - 1].data > file->weights[i].data) return false;
    return true;
}

/* Fills the list of weights that is sorted by name. It follows the sorted names of the element
 * tensors, because most weights have the name of their element tensor. The list is then sorted
 * already, and sorting a million names would need 50 MB for a moment. `numbers` has one entry for
 * each tensor, which is 0 at first. */
static bsmm_status list_names(bsmm_file *file, uint64_t *numbers) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < file->weight_count; i++)
        numbers[file->weights[i].data] = i + 1;
    for (uint64_t i = 0; i < file->tensor_count; i++) {
        uint64_t number = numbers[file->by_name[i].index];
        if (number == 0) continue;
        file->weights_by_name[count++] = (bsmm_name){file->weights[number - 1].name, number - 1};
    }
    return bsmm_names_sort(file->weights_by_name, file->weight_count);
}

/* Sorts the weights by the order of their element tensors, and makes the list of weights that is
 * sorted by name. */
static bsmm_status sort_weights(bsmm_file *file) {
    if (!is_sorted(file))
        qsort(file->weights, file->weight_count, sizeof *file->weights, compare_records);
    file->weights_by_name = malloc((file->weight_count + 1) * sizeof *file->weights_by_name);
    uint64_t *numbers = calloc(file->tensor_count + 1, sizeof *numbers);
    bsmm_status status =
        file->weights_by_name && numbers ? list_names(file, numbers) : bsmm_fail_memory();
    free(numbers);
    return status;
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
    BSMM_TRY(r->status);
    return sort_weights(r->file);
}

bsmm_status bsmm_file_recognise(bsmm_file *file) {
    recognising r = {.file = file};
    r.claimed = calloc(file->tensor_count + 1, sizeof *r.claimed);
    bsmm_status status = r.claimed ? recognise(&r) : bsmm_fail_memory();
    bsmm_config_free(&r.config);
    free(r.claimed);
    return status;
}
