/* Checks the tensors in which a checkpoint stores a weight (a quantized matrix). Their shapes must
 * be those that the weight's checkpoint family prescribes (families.c). */
#include "io/family.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* `resolving` holds the state of checking one weight. */
typedef struct resolving {
    const bsmm_record *record;
    const bsmm_storage *row;
    /* `data`, `scale` and `global` are the tensors of the weight. NULL means that the weight has no
     * such tensor. */
    const bsmm_tensor *data, *scale, *global;
    bsmm_matrix matrix;
    int64_t batch;
    bsmm_resolved *out;
} resolving;

static const bsmm_tensor *tensor_of(const bsmm_file *file, uint64_t index) {
    return index == BSMM_NO_TENSOR ? NULL : &file->tensors[index];
}

static bsmm_status fail_shape(const bsmm_tensor *tensor, const char *rule) {
    char shape[128];
    bsmm_shape_text(tensor->ndim, tensor->shape, shape, sizeof shape);
    return bsmm_fail(BSMM_E_FORMAT, "%.160s.shape: value is %s; %s", tensor->name, shape, rule);
}

/* Computes the number of matrices of a weight, i.e. the product of all dimensions before the last
 * two. Returns false if the product overflows or is 0. */
static bool batch_of(uint32_t ndim, const int64_t *shape, int64_t *batch) {
    *batch = 1;
    for (uint32_t i = 0; i + 2 < ndim; i++)
        if (__builtin_mul_overflow(*batch, shape[i], batch)) return false;
    return *batch >= 1;
}

/* Computes the number of elements along K from the last dimensions of the data tensor. Returns
 * false if these dimensions do not fit the storage table entry `row` (families.c). */
static bool cols_of(const bsmm_storage *row, const bsmm_tensor *t, uint32_t *ndim, int64_t *cols) {
    *ndim = t->ndim;
    if (*ndim < 2) return false;
    *cols = t->shape[*ndim - 1];
    if (row->trailing) {
        if (*cols != row->trailing || *ndim < 3) return false;
        --*ndim;
        if (__builtin_mul_overflow(*cols, t->shape[*ndim - 1], cols)) return false;
    }
    if (!row->pack_bytes) return true;
    if (*cols % row->pack_bytes) return false;
    return !__builtin_mul_overflow(*cols / row->pack_bytes, (int64_t)row->pack_elems, cols);
}

static bsmm_status fail_packing(const resolving *r) {
    char rule[160];
    if (r->row->trailing)
        snprintf(rule, sizeof rule, "must be [..., rows, blocks, %u]", r->row->trailing);
    else if (r->row->pack_bytes > 1)
        snprintf(rule, sizeof rule, "must be [..., rows, a multiple of %u]", r->row->pack_bytes);
    else
        snprintf(rule, sizeof rule,
                 "must have 2 dimensions or more, and those before the last 2 must not be 0");
    return fail_shape(r->data, rule);
}

/* Describes the matrices of a weight by the shape of its data tensor. Returns false if this shape
 * does not fit the storage table entry `row` (families.c). */
static bool describe_shape(const bsmm_storage *row, const bsmm_tensor *data, bsmm_matrix *matrix,
                           int64_t *batch) {
    uint32_t ndim;
    int64_t cols;
    if (!cols_of(row, data, &ndim, &cols) || !batch_of(ndim, data->shape, batch)) return false;
    *matrix = BSMM_INIT(bsmm_matrix);
    matrix->order = data->order;
    matrix->rows = data->shape[ndim - 2];
    matrix->cols = cols;
    matrix->format = bsmm_storage_format(row, matrix->rows, cols);
    if (row->format.elem == BSMM_ELEM_NONE) matrix->format.elem = data->elem;
    matrix->global_kind = row->global_kind;
    return true;
}

static bsmm_status describe(resolving *r) {
    return describe_shape(r->row, r->data, &r->matrix, &r->batch) ? BSMM_OK : fail_packing(r);
}

/* Checks the type and the size of the tensor that holds the elements. If the file's metadata
 * declares the weight, the type must fit the declared element format. Otherwise the storage table
 * entry (families.c) gives the required type (`data_dtype`). */
static bsmm_status check_data(const resolving *r) {
    const char *dtype = r->row->data_dtype;
    uint64_t bytes;
    if (r->row->declared) dtype = bsmm_dtype_of_elem(r->matrix.format.elem)->name;
    if (dtype && strcmp(r->data->dtype, dtype) != 0)
        return bsmm_fail(BSMM_E_FORMAT, "%.160s.dtype: value is %s; the declaration has %s",
                         r->data->name, r->data->dtype, dtype);
    /* A weight that must be unpacked has another number of bytes in the file than in a bsmm_matrix,
     * so there is no size to compare with. The parser has already checked the size of the tensor
     * against its shape. */
    if (r->row->unpack) return BSMM_OK;
    if (!bsmm_mul_u64(r->out->operand.data_bytes, (uint64_t)r->batch, &bytes) ||
        bytes != r->data->bytes)
        return bsmm_fail(BSMM_E_FORMAT,
                         "%.160s: has %" PRIu64 " bytes; %" PRId64 " x %" PRId64 " x %" PRId64
                         " elements in whole groups take %" PRIu64,
                         r->data->name, r->data->bytes, r->batch, r->matrix.rows, r->matrix.cols,
                         bytes);
    return BSMM_OK;
}

static bool blocks_are(const resolving *r, uint32_t block_rows, uint32_t block_cols) {
    const bsmm_tensor *s = r->scale;
    int64_t batch;
    return s->ndim >= 2 && batch_of(s->ndim, s->shape, &batch) && batch == r->batch &&
           s->shape[s->ndim - 2] == bsmm_ceil_div(r->matrix.rows, block_rows) &&
           s->shape[s->ndim - 1] == bsmm_ceil_div(r->matrix.cols, block_cols);
}

/* Tells whether the scale tensor has one scale for each matrix and has as many dimensions as the
 * storage table entry (families.c) prescribes. */
static bool is_one_scale(const resolving *r) {
    const uint32_t own = r->row->scale_shape == BSMM_SCALES_ONE;
    if (r->scale->ndim + 2 != r->data->ndim + own) return false;
    int64_t count = 1;
    for (uint32_t i = 0; i < r->scale->ndim; i++)
        if (__builtin_mul_overflow(count, r->scale->shape[i], &count)) return false;
    return count == r->batch && (!own || r->scale->shape[r->scale->ndim - 1] == 1);
}

static bool scales_fit(const resolving *r) {
    const bsmm_format *f = &r->matrix.format;
    return r->row->scale_shape == BSMM_SCALES_BY_BLOCK ? blocks_are(r, f->block_rows, f->block_cols)
                                                       : is_one_scale(r);
}

bool bsmm_storage_fits(const bsmm_storage *row, const bsmm_tensor *data, const bsmm_tensor *scale) {
    resolving r = {.row = row, .data = data, .scale = scale};
    /* If there are no columns, the packed rows of all formats have the same shape, i.e. 0 bytes.
     * The shape then identifies no format, so the function returns false. */
    return describe_shape(row, data, &r.matrix, &r.batch) && scales_fit(&r) &&
           (r.matrix.cols > 0 || !row->pack_bytes);
}

/* Checks that the dimensions of the scale tensor are the numbers of blocks along the rows and
 * columns of the weight. If they are not, the message names the probable reason. */
static bsmm_status check_linear_scales(const resolving *r) {
    const bsmm_format *f = &r->matrix.format;
    char rule[200];
    if (scales_fit(r)) return BSMM_OK;
    const char *hazard = "must be";
    if (r->scale->ndim == 1)
        hazard = "one-dimensional scales are swizzled and nothing declares their layout; must be";
    else if (blocks_are(r, 32, 32))
        hazard = "blocks of 32x32 are not read; must be";
    /* The reader has assumed that each byte holds two 4-bit elements. If there is then a scale for
     * each 48 elements, there is a scale for each 24 bytes. 24 bytes are 32 elements of 6 bits, so
     * the elements probably have 6 bits. */
    else if (r->row->pack_elems == 2 && blocks_are(r, 1, 48))
        hazard = "these are 6-bit elements, but no quantization_config names their format; 4-bit "
                 "elements need";
    snprintf(rule, sizeof rule, "%s [%s%" PRId64 ", %" PRId64 "] for %ux%u blocks", hazard,
             r->batch > 1 ? "..., " : "", bsmm_ceil_div(r->matrix.rows, f->block_rows),
             bsmm_ceil_div(r->matrix.cols, f->block_cols), f->block_rows, f->block_cols);
    return fail_shape(r->scale, rule);
}

static bsmm_status check_declared_scales(const resolving *r) {
    uint64_t bytes;
    if (bsmm_mul_u64(r->out->operand.scale_bytes, (uint64_t)r->batch, &bytes) &&
        bytes == r->scale->bytes)
        return BSMM_OK;
    return bsmm_fail(BSMM_E_FORMAT,
                     "%.160s: has %" PRIu64 " bytes; the declared layout takes %" PRIu64,
                     r->scale->name, r->scale->bytes, bytes);
}

static bsmm_status check_scales(const resolving *r) {
    const char *dtype = r->row->scale_dtype;
    if (r->matrix.format.scale == BSMM_SCALE_NONE || r->row->unpack) return BSMM_OK;
    if (!r->scale)
        return bsmm_fail(BSMM_E_FORMAT, "%.160s: the scale tensor is missing; %s has %s beside %s",
                         r->record->name, r->row->family, r->row->scale, r->row->data);
    if (r->row->declared) dtype = bsmm_dtype_of_scale(r->matrix.format.scale)->name;
    if (strcmp(r->scale->dtype, dtype) != 0)
        return bsmm_fail(
            BSMM_E_FORMAT, "%.160s.dtype: value is %s; must be %s, as %s has it beside %s %s",
            r->scale->name, r->scale->dtype, dtype, r->row->family, r->data->dtype, r->row->data);
    return r->row->declared ? check_declared_scales(r) : check_linear_scales(r);
}

static bsmm_status check_global_value(const char *name, float value) {
    if (isfinite(value) && value > 0) return BSMM_OK;
    return bsmm_fail(BSMM_E_FORMAT,
                     "%.160s: global scale is %g; must be positive and finite (calibration never "
                     "saw this weight?)",
                     name, (double)value);
}

static bsmm_status check_globals(resolving *r) {
    if (!r->row->global || (!r->global && r->row->global_optional)) return BSMM_OK;
    if (!r->global)
        return bsmm_fail(BSMM_E_FORMAT, "%.160s: the global scale tensor %s is missing",
                         r->record->name, r->row->global);
    if (strcmp(r->global->dtype, "F32") != 0)
        return bsmm_fail(BSMM_E_FORMAT, "%.160s.dtype: value is %s; must be F32", r->global->name,
                         r->global->dtype);
    uint64_t count = r->global->bytes / sizeof(float);
    if ((count != 1 && count != (uint64_t)r->batch) || !r->record->globals)
        return fail_shape(r->global, "must hold one value, or one for each matrix");
    for (uint64_t i = 0; i < count; i++)
        BSMM_TRY(check_global_value(r->global->name, r->record->globals[i]));
    r->out->global_step = count > 1;
    return BSMM_OK;
}

static bool is_aligned(const void *pointer, uint32_t bits) {
    return bits <= 8 || (uintptr_t)pointer % (bits / 8) == 0;
}

/* Computes the addresses of elements and scales, and decides whether they can be used in place
 * (mapped). */
static void locate(resolving *r) {
    bsmm_resolved *out = r->out;
    const bsmm_scale_row *scale = bsmm_scale_row_of(r->matrix.format.scale);
    bool mapped =
        !r->row->unpack && is_aligned(r->data->data, bsmm_elem_row(r->matrix.format.elem)->bits);
    out->data = r->data->data;
    out->data_step = r->data->bytes / (uint64_t)r->batch;
    if (r->scale && scale->bytes) {
        out->scales = r->scale->data;
        out->scale_step = r->scale->bytes / (uint64_t)r->batch;
        mapped = mapped && is_aligned(out->scales, scale->bytes * 8);
    }
    out->weight.mapped = mapped;
}

static bsmm_status check_all(resolving *r) {
    if (r->record->doubt)
        return bsmm_fail(BSMM_E_FORMAT, "%.160s: %s (it tells how this weight is stored)",
                         r->record->name, r->record->doubt);
    if (r->row->declared)
        BSMM_TRY(
            bsmm_declaration_read(r->record->declaration, r->record->name, &r->matrix, &r->batch));
    else
        BSMM_TRY(describe(r));
    if (r->batch < 1)
        return bsmm_fail(BSMM_E_FORMAT, "%.160s.batch: value is %" PRId64 "; must be 1 or more",
                         r->record->name, r->batch);
    BSMM_TRY(bsmm_operand_take(&r->matrix, r->record->name, &r->out->operand));
    BSMM_TRY(check_data(r));
    BSMM_TRY(check_scales(r));
    return check_globals(r);
}

static void fill(resolving *r) {
    bsmm_weight *w = &r->out->weight;
    w->format = r->matrix.format;
    w->batch = r->batch;
    w->rows = r->matrix.rows;
    w->cols = r->matrix.cols;
    w->scale_layout = r->matrix.scale_layout;
}

bsmm_status bsmm_record_resolve(const bsmm_file *file, const bsmm_record *record,
                                bsmm_resolved *out) {
    *out = (bsmm_resolved){.weight = {.struct_size = sizeof out->weight,
                                      .name = record->name,
                                      .family = record->row->family,
                                      .dtype = file->tensors[record->data].dtype}};
    resolving r = {.record = record,
                   .row = record->row,
                   .batch = 1,
                   .data = &file->tensors[record->data],
                   .scale = tensor_of(file, record->scale),
                   .global = tensor_of(file, record->global),
                   .out = out};
    bsmm_status status = check_all(&r);
    /* A failure here always comes from wrong content of the file, so the status becomes FORMAT. */
    if (status != BSMM_OK) return BSMM_E_FORMAT;
    locate(&r);
    fill(&r);
    return BSMM_OK;
}
