#include "output.h"
#include "files.h"
#include <stdlib.h>
#include <string.h>

/* Returns the element format in which the file stores the matrix. numpy has no name for bf16, so a
 * .npy file stores bf16 values as f32. The conversion is exact. */
static uint32_t stored_elem(const cli_output *output) {
    uint32_t elem = output->matrix.format.elem;
    bool widened = elem == BSMM_ELEM_BF16 && !strcmp(cli_kind_of(output->path), "npy");
    return widened ? BSMM_ELEM_F32 : elem;
}

static const char *dtype_of(uint32_t elem) {
    return elem == BSMM_ELEM_F16 ? "F16" : elem == BSMM_ELEM_BF16 ? "BF16" : "F32";
}

/* Creates a file with room for the matrix. *stored receives the description of the matrix in the
 * file. */
static bool begin(const cli_output *output, bsmm_writer *writer, bsmm_matrix *stored) {
    const int64_t shape[] = {output->matrix.rows, output->matrix.cols};
    uint64_t index;
    *stored = output->matrix;
    stored->format.elem = stored_elem(output);
    stored->data_bytes = 0;
    return !bsmm_writer_add_tensor(writer, "d", dtype_of(stored->format.elem), 2, shape, &index) &&
           !bsmm_writer_begin(writer) &&
           !bsmm_writer_tensor(writer, index, &stored->data, &stored->data_bytes);
}

bool cli_output_create(cli_output *output, const char *path, const char *dtype, int64_t rows,
                       int64_t cols) {
    bsmm_writer *writer = NULL;
    bsmm_matrix stored;
    *output = (cli_output){.path = path, .matrix = BSMM_INIT(bsmm_matrix)};
    output->matrix.rows = rows;
    output->matrix.cols = cols;
    bool possible = !bsmm_format_from_name(dtype, &output->matrix.format) &&
                    !bsmm_writer_create(path, cli_kind_of(path), &writer) &&
                    begin(output, writer, &stored);
    bsmm_writer_abort(writer);
    if (possible) output->memory = cli_matrix_allocate(&output->matrix);
    return output->memory;
}

bool cli_output_write(const cli_output *output) {
    bsmm_writer *writer = NULL;
    bsmm_matrix stored;
    if (bsmm_writer_create(output->path, cli_kind_of(output->path), &writer)) return false;
    if (begin(output, writer, &stored) && !bsmm_dequantize(&output->matrix, &stored))
        return !bsmm_writer_commit(writer);
    bsmm_writer_abort(writer);
    return false;
}

void cli_output_free(cli_output *output) {
    free(output->memory);
    output->memory = NULL;
}
