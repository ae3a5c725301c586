#include "transfer_gguf.h"
#include "common.h"
#include "data.h"
#include "gguf_rows.h"
#include <stdlib.h>
#include <string.h>

cli_gguf_naming cli_transfer_name(const cli_job *job, const char *name, char memory[64],
                                  const char **to) {
    *to = job->gguf ? memory : name;
    return job->gguf ? cli_gguf_model_name(job->gguf, name, memory) : CLI_GGUF_NAMED;
}

const char *cli_transfer_type(const cli_job *job, const bsmm_tensor *tensor) {
    return job->gguf && tensor->ndim == 1 && bench_elem_is_wide(tensor->elem) ? "F32"
                                                                              : tensor->dtype;
}

/* Lists llama.cpp's numbers for the types of files (llama.h, enum llama_ftype). The numbers belong
 * to the GGUF files and not to the formats, so they stand here and not in the library's tables. A
 * format without a row has no number in llama.h. */
static const struct {
    const char *type;
    uint32_t number;
} file_types[CLI_FILE_TYPES] = {{"f32", 0}, {"f16", 1}, {"bf16", 32}, {"mxfp4", 38}, {"nvfp4", 39}};

void cli_transfer_count_type(cli_job *job, const char *type, uint64_t bytes) {
    for (size_t i = 0; i < CLI_FILE_TYPES; i++)
        if (!strcmp(type, file_types[i].type)) job->type_bytes[i] += bytes;
}

/* Returns llama.cpp's number for the tensor type that takes the most bytes in the output file. */
static uint32_t file_type(const cli_job *job) {
    size_t most = 0;
    for (size_t i = 1; i < CLI_FILE_TYPES; i++)
        if (job->type_bytes[i] > job->type_bytes[most]) most = i;
    return file_types[most].number;
}

static bool add_factors(cli_job *job, bsmm_writer *writer) {
    uint64_t target;
    if (!job->gguf->factors) return true;
    if (bsmm_writer_add_tensor(writer, cli_gguf_factors_name, "F32", 1,
                               (const int64_t[]){job->gguf->head_size / 2}, &target)) {
        cli_fail_library(cli_gguf_factors_name);
        return false;
    }
    job->added++;
    job->steps[job->step_count++] =
        (cli_step){.action = CLI_ADD_FACTORS, .target = target, .shard = job->shard_count - 1};
    return true;
}

bool cli_transfer_finish_gguf(cli_job *job) {
    bsmm_writer *writer = job->shards[job->shard_count - 1].writer;
    job->metadata = cli_gguf_model_metadata(job->gguf, file_type(job));
    if (!job->metadata) return false;
    if (!bsmm_writer_copy_metadata(writer, job->metadata)) return add_factors(job, writer);
    cli_fail_library(job->transfer->values->out);
    return false;
}

/* Describes a tensor of floats as a matrix with one row for each index of the tensor's first
 * dimension. */
static bsmm_matrix matrix_of(const bsmm_tensor *tensor) {
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    matrix.format.elem = tensor->elem;
    matrix.rows = tensor->ndim ? tensor->shape[0] : 1;
    matrix.cols = 1;
    for (uint32_t i = 1; i < tensor->ndim; i++)
        matrix.cols *= tensor->shape[i];
    /* This memcpy removes the const of the pointer. The library never writes to the memory of a
     * source. */
    memcpy(&matrix.data, &tensor->data, sizeof matrix.data);
    matrix.data_bytes = tensor->bytes;
    return matrix;
}

const char *cli_transfer_copy_floats(const cli_step *what, const bsmm_tensor *tensor, void *to,
                                     uint64_t bytes) {
    bsmm_matrix from = matrix_of(tensor), target = from;
    const char *why = NULL;
    void *memory = what->heads ? cli_gguf_reorder(&from, what->heads, &why) : NULL;
    target.format.elem = what->widens ? (uint32_t)BSMM_ELEM_F32 : tensor->elem;
    target.data = to;
    target.data_bytes = bytes;
    if (!why && what->widens) why = cli_reason(bsmm_dequantize(&from, &target));
    if (!why && !what->widens) memcpy(to, from.data, bytes);
    free(memory);
    return why;
}

const char *cli_transfer_reorder(const cli_step *what, cli_loaded *loaded) {
    const char *why = NULL;
    if (!what->heads) return NULL;
    void *memory = cli_gguf_reorder(&loaded->matrix, what->heads, &why);
    if (!memory) return why;
    free(loaded->memory);
    loaded->memory = memory;
    return NULL;
}
