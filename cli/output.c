#include "output.h"
#include "files.h"
#include <stdlib.h>
#include <string.h>

/* numpy has no name for bf16, but f32 holds each of its values. */
static bool is_widened(const char *kind, uint32_t elem) {
    return !strcmp(kind, "npy") && elem == BSMM_ELEM_BF16;
}

static const char *stored_dtype(uint32_t elem) {
    return elem == BSMM_ELEM_F16 ? "F16" : elem == BSMM_ELEM_BF16 ? "BF16" : "F32";
}

static bool begin(cli_output *output, const char *dtype, int64_t rows, int64_t cols) {
    const int64_t shape[] = {rows, cols};
    uint64_t index, bytes;
    return !bsmm_writer_add_tensor(output->writer, "d", dtype, 2, shape, &index) &&
           !bsmm_writer_begin(output->writer) &&
           !bsmm_writer_tensor(output->writer, index, &output->stored, &bytes);
}

bool cli_output_create(cli_output *output, const char *path, const char *dtype, int64_t rows,
                       int64_t cols) {
    const char *kind = cli_kind_of(path);
    *output = (cli_output){.matrix = BSMM_INIT(bsmm_matrix)};
    output->matrix.rows = rows;
    output->matrix.cols = cols;
    if (bsmm_format_from_name(dtype, &output->matrix.format)) return false;
    bool widened = is_widened(kind, output->matrix.format.elem);
    if (widened && !(output->memory = cli_matrix_allocate(&output->matrix))) return false;
    if (bsmm_writer_create(path, kind, &output->writer)) return false;
    const char *stored = stored_dtype(widened ? BSMM_ELEM_F32 : output->matrix.format.elem);
    if (!begin(output, stored, rows, cols)) return false;
    if (!widened) output->matrix.data = output->stored;
    return true;
}

static bool widen(cli_output *output) {
    bsmm_matrix stored = output->matrix;
    stored.format.elem = BSMM_ELEM_F32;
    stored.data = output->stored;
    stored.data_bytes = 0;
    return !output->memory || !bsmm_dequantize(&output->matrix, &stored);
}

bool cli_output_commit(cli_output *output) {
    if (!widen(output)) return false;
    bsmm_writer *writer = output->writer;
    output->writer = NULL;
    return !bsmm_writer_commit(writer);
}

void cli_output_abort(cli_output *output) {
    if (output->writer) bsmm_writer_abort(output->writer);
    output->writer = NULL;
    free(output->memory);
    output->memory = NULL;
}
