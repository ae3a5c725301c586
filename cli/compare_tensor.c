#include "compare_tensor.h"
#include "files.h"
#include "report.h"
#include "tables.h"
#include "transfer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cli_model_tensor weight_of(const bsmm_weight *weight, uint64_t index) {
    cli_model_tensor made = {.name = weight->name, .is_weight = true, .index = index};
    made.format = cli_format_text(weight->format);
    if (cli_is_ggml(weight) && cli_is_plain(weight->format))
        snprintf(made.format.text, sizeof made.format.text, "%s", weight->dtype);
    if (weight->batch != 1) made.shape[made.ndim++] = weight->batch;
    made.shape[made.ndim++] = weight->rows;
    made.shape[made.ndim++] = weight->cols;
    return made;
}

static cli_model_tensor tensor_of(const bsmm_tensor *tensor, uint64_t index) {
    cli_model_tensor made = {.name = tensor->name, .index = index, .ndim = tensor->ndim};
    memcpy(made.shape, tensor->shape, sizeof made.shape);
    snprintf(made.format.text, sizeof made.format.text, "%s", tensor->dtype);
    return made;
}

static void claim(const bsmm_file *file, uint64_t weight, bool *claimed) {
    uint64_t tensors[BSMM_WEIGHT_TENSORS];
    if (bsmm_weight_tensors(file, weight, tensors)) return;
    for (int i = 0; i < BSMM_WEIGHT_TENSORS; i++)
        if (tensors[i] != BSMM_NO_TENSOR) claimed[tensors[i]] = true;
}

static int compare_names(const void *left, const void *right) {
    const cli_model_tensor *a = left, *b = right;
    return strcmp(a->name, b->name);
}

bool cli_model_tensors_list(const bsmm_file *file, const char *path, cli_model_tensors *tensors) {
    const uint64_t weights = bsmm_file_weight_count(file), all = bsmm_file_tensor_count(file);
    bool *claimed = cli_alloc(all + 1, sizeof *claimed), whole = true;
    *tensors = (cli_model_tensors){.items = cli_alloc(weights + all, sizeof *tensors->items)};
    for (uint64_t i = 0; i < weights && whole; i++) {
        bsmm_weight weight = BSMM_INIT(bsmm_weight);
        whole = !bsmm_file_weight_at(file, i, &weight);
        if (whole) tensors->items[tensors->count++] = weight_of(&weight, i);
        if (!whole) cli_fail_library(path);
        claim(file, i, claimed);
    }
    for (uint64_t i = 0; i < all && whole; i++) {
        bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
        if (!claimed[i] && !bsmm_file_tensor_at(file, i, &tensor))
            tensors->items[tensors->count++] = tensor_of(&tensor, i);
    }
    free(claimed);
    qsort(tensors->items, tensors->count, sizeof *tensors->items, compare_names);
    return whole;
}

bool cli_same_shape(const cli_model_tensor *a, const cli_model_tensor *b) {
    return a->ndim == b->ndim && !memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape);
}

cli_text cli_shape_text(const cli_model_tensor *tensor) {
    cli_text made = {""};
    for (uint32_t i = 0; i < tensor->ndim; i++) {
        const size_t used = strlen(made.text);
        snprintf(made.text + used, sizeof made.text - used, "%s%lld", i ? "x" : "",
                 (long long)tensor->shape[i]);
    }
    return made.text[0] ? made : (cli_text){"scalar"};
}

uint64_t cli_element_count(const cli_model_tensor *tensor) {
    uint64_t count = 1;
    for (uint32_t i = 0; i < tensor->ndim; i++)
        count *= (uint64_t)tensor->shape[i];
    return count;
}

/* Copies a tensor to a matrix of one row. The copy is necessary because a matrix must be aligned to
 * its elements, but a tensor of a file need not be. Returns false if its elements have no format of
 * the library. */
static bool load_row(const bsmm_tensor *tensor, uint64_t count, cli_loaded *loaded) {
    *loaded = (cli_loaded){.matrix = BSMM_INIT(bsmm_matrix)};
    loaded->matrix.format.elem = tensor->elem;
    loaded->matrix.rows = 1;
    loaded->matrix.cols = (int64_t)count;
    if (tensor->elem == BSMM_ELEM_NONE || tensor->elem == BSMM_ELEM_E8M0) return false;
    loaded->memory = cli_matrix_allocate(&loaded->matrix);
    if (loaded->memory && loaded->matrix.data_bytes == tensor->bytes) {
        memcpy(loaded->memory, tensor->data, tensor->bytes);
        return true;
    }
    cli_unload(loaded);
    return false;
}

static bool load(const bsmm_file *file, const cli_model_tensor *tensor, int64_t slice,
                 cli_loaded *loaded) {
    bsmm_tensor stored = BSMM_INIT(bsmm_tensor);
    if (tensor->is_weight) return cli_load(file, tensor->index, slice, loaded);
    return !bsmm_file_tensor_at(file, tensor->index, &stored) &&
           load_row(&stored, cli_element_count(tensor), loaded);
}

/* Computes the largest magnitude of a matrix of any format. */
static bool find_amax(const bsmm_exec *exec, const bsmm_matrix *matrix, float *amax) {
    bsmm_matrix plain = BSMM_INIT(bsmm_matrix);
    if (cli_is_plain(matrix->format)) return !bsmm_amax_on(exec, matrix, amax);
    plain.format.elem = BSMM_ELEM_F32;
    plain.rows = matrix->rows;
    plain.cols = matrix->cols;
    void *memory = cli_matrix_allocate(&plain);
    const bool done =
        memory && !bsmm_dequantize_on(exec, matrix, &plain) && !bsmm_amax_on(exec, &plain, amax);
    free(memory);
    return done;
}

/* Compares the matrix `to` with the matrix `from` and adds the errors to `sum`. *amax receives the
 * largest magnitude of the values of `from`. */
static bool compare_matrices(const bsmm_matrix *from, const bsmm_matrix *to, uint32_t threads,
                             bsmm_quantize_report *sum, float *amax) {
    bsmm_quantize_report report = BSMM_INIT(bsmm_quantize_report);
    bsmm_exec exec = BSMM_INIT(bsmm_exec);
    exec.threads = threads;
    if (bsmm_compare_on(&exec, from, to, &report) || !find_amax(&exec, from, amax)) return false;
    cli_report_sum(sum, &report);
    return true;
}

static bool compare_slice(const bsmm_file *const models[2], const cli_model_tensor *const pair[2],
                          int64_t slice, uint32_t threads, bsmm_quantize_report *sum,
                          float *largest) {
    cli_loaded loaded[2];
    float amax = 0;
    if (!load(models[0], pair[0], slice, &loaded[0])) return false;
    bool done = load(models[1], pair[1], slice, &loaded[1]);
    if (done) {
        done = compare_matrices(&loaded[0].matrix, &loaded[1].matrix, threads, sum, &amax);
        cli_unload(&loaded[1]);
    }
    cli_unload(&loaded[0]);
    if (!(amax <= *largest)) *largest = amax;
    return done;
}

/* Tells whether the library can decode the values of a tensor. */
static bool has_values(const bsmm_file *file, const cli_model_tensor *tensor) {
    cli_loaded loaded;
    if (tensor->is_weight) return true;
    if (!load(file, tensor, 0, &loaded)) return false;
    cli_unload(&loaded);
    return true;
}

/* Tells whether two tensors have the same type and bytes. */
static bool same_bytes(const bsmm_file *const models[2], const cli_model_tensor *const pair[2]) {
    bsmm_tensor stored[2] = {BSMM_INIT(bsmm_tensor), BSMM_INIT(bsmm_tensor)};
    for (int i = 0; i < 2; i++)
        if (pair[i]->is_weight || bsmm_file_tensor_at(models[i], pair[i]->index, &stored[i]))
            return false;
    return !strcmp(stored[0].dtype, stored[1].dtype) && stored[0].bytes == stored[1].bytes &&
           (!stored[0].bytes || !memcmp(stored[0].data, stored[1].data, stored[0].bytes));
}

static void set_difference(const bsmm_quantize_report *sum, float amax, cli_difference *to) {
    const double count = sum->count ? (double)sum->count : 1;
    to->sqnr_db = sum->noise == 0 ? INFINITY : 10 * log10(sum->signal / sum->noise);
    to->max_error = sum->max_error;
    to->relative = sum->max_error == 0 ? 0 : sum->max_error / (double)amax;
    to->clipped = sum->clipped / count;
}

bool cli_compare_tensor(const bsmm_file *const models[2], const cli_model_tensor *const pair[2],
                        uint32_t threads, cli_difference *difference) {
    bsmm_quantize_report sum = {0};
    float amax = 0;
    const bool decoded = has_values(models[0], pair[0]) && has_values(models[1], pair[1]);
    if (!decoded && !same_bytes(models, pair)) sum.noise = sum.max_error = (double)NAN;
    const bool batched = pair[0]->is_weight && pair[0]->ndim == 3;
    for (int64_t i = 0; decoded && i < (batched ? pair[0]->shape[0] : 1); i++)
        if (!compare_slice(models, pair, i, threads, &sum, &amax)) return false;
    set_difference(&sum, amax, difference);
    return true;
}
