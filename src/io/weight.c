/* Implements the public functions for weights: their list, description and unpacking. */
#include "io/family.h"

#include <string.h>

/* Returns the record of weight `index`. On failure it returns NULL and sets *status. */
static const bsmm_record *find_record(const bsmm_file *file, uint64_t index, bsmm_status *status) {
    *status = BSMM_OK;
    if (file && index < file->weight_count) return &file->weights[index];
    if (!file)
        *status = bsmm_fail(BSMM_E_INVALID, "file: value is NULL; must be an open file");
    else
        *status = bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %llu; the file has %llu weights",
                            (unsigned long long)index, (unsigned long long)file->weight_count);
    return NULL;
}

uint64_t bsmm_file_weight_count(const bsmm_file *file) {
    return file ? file->weight_count : 0;
}

bsmm_status bsmm_file_weight_at(const bsmm_file *file, uint64_t index, bsmm_weight *out) {
    bsmm_status status;
    bsmm_resolved resolved;
    const bsmm_record *record = find_record(file, index, &status);
    if (!record) return status;
    status = bsmm_record_resolve(file, record, &resolved);
    BSMM_TRY(bsmm_give_struct(out, &resolved.weight, sizeof resolved.weight, "out"));
    return status;
}

/* Fails with the reason why `name` is no weight. Either the file has no tensor of that name, or the
 * type or shape of the tensor does not fit. */
static bsmm_status not_a_weight(const bsmm_file *file, const char *name) {
    bsmm_tensor tensor = {.struct_size = sizeof tensor};
    if (bsmm_file_tensor_find(file, name, &tensor) != BSMM_OK)
        return bsmm_fail(BSMM_E_NOT_FOUND, "name: \"%.200s\" is not a weight of this file", name);
    return bsmm_fail(
        BSMM_E_NOT_FOUND,
        "name: \"%.200s\" is not a weight: its dtype is %.32s, its dimensions are %u; a "
        "plain weight has at least 2, of f32, f16, bf16 or an 8-bit float",
        name, tensor.dtype, tensor.ndim);
}

bsmm_status bsmm_file_weight_find(const bsmm_file *file, const char *name, uint64_t *index) {
    static const char *const suffixes[] = {"", ".weight"};
    if (!file) return bsmm_fail(BSMM_E_INVALID, "file: value is NULL; must be an open file");
    if (!name || !index)
        return bsmm_fail(BSMM_E_INVALID, "%s: value is NULL; must be given",
                         name ? "index" : "name");
    size_t length = strlen(name);
    for (size_t i = 0; i < BSMM_COUNT(suffixes); i++) {
        uint64_t at =
            bsmm_names_find(file->weights_by_name, file->weight_count, name, length, suffixes[i]);
        if (at == file->weight_count) continue;
        const bsmm_name *found = &file->weights_by_name[at];
        if (!bsmm_name_is(found->name, name, length, suffixes[i])) continue;
        *index = found->index;
        return BSMM_OK;
    }
    return not_a_weight(file, name);
}

bsmm_status bsmm_weight_tensors(const bsmm_file *file, uint64_t index,
                                uint64_t tensors[BSMM_WEIGHT_TENSORS]) {
    bsmm_status status;
    const bsmm_record *record = find_record(file, index, &status);
    if (!record) return status;
    if (!tensors) return bsmm_fail(BSMM_E_INVALID, "tensors: value is NULL; must be given");
    tensors[0] = record->data;
    tensors[1] = record->scale;
    tensors[2] = record->global;
    return BSMM_OK;
}

static bsmm_status resolve_slice(const bsmm_file *file, const bsmm_record *record, int64_t slice,
                                 bsmm_resolved *resolved) {
    BSMM_TRY(bsmm_record_resolve(file, record, resolved));
    if (slice >= 0 && slice < resolved->weight.batch) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "slice: value is %lld; must be 0 to %lld", (long long)slice,
                     (long long)resolved->weight.batch - 1);
}

/* Removes const from a pointer into the mapping. bsmm_matrix has pointers without const, because a
 * matrix may also be an output. The mapping itself is read-only. */
static void *unconst(const uint8_t *at) {
    return (void *)(uintptr_t)at;
}

bsmm_status bsmm_weight_matrix(const bsmm_file *file, uint64_t index, int64_t slice,
                               bsmm_matrix *out) {
    bsmm_status status;
    bsmm_resolved resolved;
    const bsmm_record *record = find_record(file, index, &status);
    if (!record) return status;
    BSMM_TRY(resolve_slice(file, record, slice, &resolved));
    bsmm_matrix matrix = resolved.operand.m;
    matrix.data_bytes = resolved.operand.data_bytes;
    matrix.scale_bytes = resolved.operand.scale_bytes;
    if (record->globals) matrix.global_scale = record->globals + slice * resolved.global_step;
    if (resolved.weight.mapped) {
        matrix.data = unconst(resolved.data + (uint64_t)slice * resolved.data_step);
        if (resolved.scales)
            matrix.scales = unconst(resolved.scales + (uint64_t)slice * resolved.scale_step);
    }
    return bsmm_give_struct(out, &matrix, sizeof matrix, "out");
}

bsmm_status bsmm_operand_check_same(const bsmm_operand *have, const bsmm_operand *given,
                                    const char *what, const char *call) {
    const bsmm_matrix *a = &have->m, *b = &given->m;
    bool same = bsmm_format_equal(a->format, b->format) && a->order == b->order &&
                a->rows == b->rows && a->cols == b->cols && a->ld == b->ld &&
                a->scale_layout == b->scale_layout && a->scale_ld == b->scale_ld &&
                a->scale_tile_rows == b->scale_tile_rows &&
                a->scale_tile_cols == b->scale_tile_cols;
    if (same) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID,
                     "%s: is not the matrix that %s describes; must have its format, order, sizes "
                     "and scale layout",
                     what, call);
}

bsmm_status bsmm_weight_unpack(const bsmm_file *file, uint64_t index, int64_t slice,
                               const bsmm_matrix *dst) {
    bsmm_status status;
    bsmm_resolved resolved;
    bsmm_operand to;
    const bsmm_record *record = find_record(file, index, &status);
    if (!record) return status;
    BSMM_TRY(resolve_slice(file, record, slice, &resolved));
    BSMM_TRY(bsmm_operand_take(dst, "dst", &to));
    BSMM_TRY(bsmm_operand_check_same(&resolved.operand, &to, "dst", "bsmm_weight_matrix"));
    BSMM_TRY(bsmm_operand_check_memory(&to, "dst"));
    const uint8_t *data = resolved.data + (uint64_t)slice * resolved.data_step;
    if (record->row->unpack) return record->row->unpack(record->row, data, &to, record->name);
    if (to.data_bytes) memcpy(to.m.data, data, (size_t)to.data_bytes);
    if (to.data_bytes && to.scale_bytes)
        memcpy(to.m.scales, resolved.scales + (uint64_t)slice * resolved.scale_step,
               (size_t)to.scale_bytes);
    return BSMM_OK;
}
