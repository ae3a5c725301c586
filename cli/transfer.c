#include "common.h"
#include "files.h"
#include "interrupt.h"
#include "rows.h"
#include "shrink.h"
#include "transfer_gguf.h"
#include "transfer_plan.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* COPY_CHUNK is the number of bytes that the command copies between two updates of the progress
 * bar. */
enum { COPY_CHUNK = 1 << 26 };

const cli_column cli_transfer_columns[] = {
    {.key = "output", .help = "the file or folder written"},
    {.key = "changed", .help = "weights that were changed"},
    {.key = "kept", .help = "other weights and tensors, copied as they are"},
    {.key = "left_out", .help = "tensors of GGUF that are not decoded"},
    {.key = "bytes", .help = "size of the file, or of all tensors of a folder"},
    {0},
};

/* Converts a size to 32 bits. A size that does not fit becomes the largest 32-bit number, because
 * the library refuses that number. Plain truncation could give a valid size. */
static uint32_t tile_size(int64_t size) {
    return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

void cli_layout_apply(const cli_layout_values *layout, bsmm_matrix *target) {
    if (!layout->name) return;
    bsmm_layout_from_name(layout->name, &target->scale_layout);
    target->scale_ld = 0;
    target->scale_tile_rows = tile_size(layout->tile_rows);
    target->scale_tile_cols = tile_size(layout->tile_cols);
}

bool cli_is_ggml(const bsmm_weight *weight) {
    return !strcmp(weight->family, "gguf");
}

static bool is_stopped(void) {
    return cli_interrupted() || cli_shrunk();
}

static bool copy_tensor(cli_job *job, const cli_step *what) {
    bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
    void *to;
    uint64_t bytes;
    if (bsmm_file_tensor_at(job->file, what->source, &tensor) ||
        bsmm_writer_tensor(job->shards[what->shard].writer, what->target, &to, &bytes))
        return false;
    if (what->heads || what->widens) {
        const char *why = cli_transfer_copy_floats(what, &tensor, to, bytes);
        if (why) cli_fail("%s: %s", tensor.name, why);
        cli_progress_add(&job->progress, tensor.bytes);
        return !why;
    }
    for (uint64_t done = 0, part; done < bytes && !is_stopped(); done += part) {
        part = bytes - done < COPY_CHUNK ? bytes - done : COPY_CHUNK;
        memcpy((char *)to + done, (const char *)tensor.data + done, part);
        cli_progress_add(&job->progress, part);
    }
    return true;
}

/* Checks that the global scale of a matrix is positive and finite, because readers refuse any
 * other global scale. */
static bool check_global(const cli_step *what, const bsmm_matrix *target) {
    const float *global = target->global_scale;
    if (!global || (isfinite(*global) && *global > 0)) return true;
    cli_fail("%s: its global scale would be %g; it must be positive and finite, but the weight "
             "holds NaN, Inf or values that are too large",
             what->weight.name, (double)*global);
    return false;
}

static bool fill_slice(cli_job *job, const cli_step *what, int64_t slice) {
    const cli_transfer *transfer = job->transfer;
    bsmm_writer *writer = job->shards[what->shard].writer;
    bsmm_matrix target = BSMM_INIT(bsmm_matrix);
    cli_loaded source;
    uint64_t bytes;
    if (bsmm_writer_weight(writer, what->target, slice, &target) ||
        !cli_load(job->file, what->source, slice, &source)) {
        cli_fail_library(what->weight.name);
        return false;
    }
    /* ggml stores scales between the elements. The matrix is therefore computed in separate memory
     * and then packed into the file. */
    void *blocks = target.data || !target.data_bytes ? NULL : cli_matrix_allocate(&target);
    const char *why = cli_transfer_reorder(what, &source);
    if (!why)
        why = what->action == CLI_KEEP_WEIGHT
                  ? cli_reason(bsmm_convert(&source.matrix, &target))
                  : transfer->fill(transfer->options, &source.matrix, &target);
    cli_unload(&source);
    if (!why && blocks)
        why = cli_reason(bsmm_writer_weight_pack(writer, what->target, slice, &target));
    free(blocks);
    if (why) cli_fail("%s: %s", what->weight.name, why);
    if (!bsmm_data_bytes(&target, &bytes)) cli_progress_add(&job->progress, bytes);
    return !why && check_global(what, &target);
}

/* Writes a step that has no source in the input: the value of an input scale, or the factors of
 * RoPE. */
static bool write_numbers(cli_job *job, const cli_step *what) {
    void *to;
    uint64_t bytes;
    if (bsmm_writer_tensor(job->shards[what->shard].writer, what->target, &to, &bytes))
        return false;
    memcpy(to, what->action == CLI_ADD_SCALE ? &what->scale : job->gguf->factors, bytes);
    return true;
}

static bool fill_step(cli_job *job, const cli_step *what) {
    if (what->action == CLI_COPY_TENSOR) return copy_tensor(job, what);
    if (what->action == CLI_ADD_SCALE || what->action == CLI_ADD_FACTORS)
        return write_numbers(job, what);
    if (job->folder && what->action == CLI_CHANGE_WEIGHT && job->transfer->prepare) {
        const char *why = job->transfer->prepare(job->transfer, job->file, &what->weight);
        if (why) cli_fail("%s: %s", what->weight.name, why);
        if (why) return false;
    }
    for (int64_t slice = 0; slice < what->weight.batch && !is_stopped(); slice++)
        if (!fill_slice(job, what, slice)) return false;
    if (what->action == CLI_CHANGE_WEIGHT && job->transfer->finish && !is_stopped())
        job->transfer->finish(job->transfer->options, &what->weight);
    return true;
}

/* Writes one output file. */
static bool write_shard(cli_job *job, size_t index) {
    cli_shard *shard = &job->shards[index];
    bool filled = !bsmm_writer_begin(shard->writer);
    if (!filled) cli_fail_library(NULL);
    for (uint64_t i = 0; i < job->step_count && filled; i++)
        if (job->steps[i].shard == index) filled = fill_step(job, &job->steps[i]);
    if (!filled || cli_fail_shrunk() || is_stopped()) return false;
    filled = !bsmm_writer_commit(shard->writer);
    shard->writer = NULL;
    if (!filled) cli_fail_library(NULL);
    return filled;
}

/* Tells whether an earlier run, which was interrupted, has completed this file of the output
 * folder. */
static bool is_complete(cli_job *job, size_t index) {
    if (!job->folder || access(job->shards[index].path, F_OK)) return false;
    cli_progress_add(&job->progress, job->shards[index].bytes);
    return true;
}

static bool write_shards(cli_job *job) {
    bool written = true;
    job->progress = cli_progress_begin(job->transfer->verb, job->bytes);
    for (size_t i = 0; i < job->shard_count && written; i++)
        written = is_complete(job, i) || write_shard(job, i);
    cli_progress_end(&job->progress);
    return written;
}

static void measure_output(cli_job *job) {
    struct stat file = {0};
    for (size_t i = 0; job->folder && i < job->shard_count; i++)
        job->output_bytes += job->shards[i].bytes;
    if (!job->folder && !stat(job->shards[0].path, &file))
        job->output_bytes = (uint64_t)file.st_size;
}

static void free_shards(cli_job *job) {
    for (size_t i = 0; i < job->shard_count; i++) {
        bsmm_writer_abort(job->shards[i].writer);
        free(job->shards[i].path);
    }
    free(job->shards);
}

/* Writes the output file, or all files of the output folder. */
static bool write_output(cli_job *job) {
    cli_interrupt_watch();
    bool written = cli_transfer_writer(job, 0) && cli_transfer_plan(job);
    if (written && job->folder) cli_folder_resume(job->folder, job->shard_count);
    written = written && write_shards(job) &&
              (!job->folder || cli_folder_finish(job->folder, job->shard_count));
    if (!written && job->folder) cli_folder_give_up(job->folder);
    if (written) measure_output(job);
    free_shards(job);
    if (!written) cli_interrupt_finish();
    return written;
}

static bool write_folder(cli_job *job, const char *in) {
    cli_folder folder;
    bool begun = cli_folder_begin(&folder, in, job->file, job->transfer->values->out,
                                  job->transfer->values->also_read);
    job->folder = &folder;
    bool written = begun && write_output(job);
    job->folder = NULL;
    cli_folder_free(&folder);
    return written;
}

/* Writes the output as a GGUF file. The input is another kind of file. */
static bool write_gguf(cli_job *job, const char *in) {
    cli_gguf_model model;
    const bool opened = cli_gguf_model_open(&model, in);
    job->gguf = &model;
    const bool written = opened && write_output(job);
    job->gguf = NULL;
    cli_file_close(job->metadata);
    cli_gguf_model_close(&model);
    return written;
}

static bool write_file(cli_job *job, const char *in) {
    const char *out = job->transfer->values->out, *also_read = job->transfer->values->also_read;
    if (!cli_output_differs_from(job->file, in, out) ||
        (also_read && !cli_path_differs(also_read, out)))
        return false;
    const bool makes_gguf =
        !strcmp(cli_kind_of(out), "gguf") && !strcmp(bsmm_file_kind(job->file), "safetensors");
    return makes_gguf ? write_gguf(job, in) : write_output(job);
}

int cli_transfer_run(const cli_transfer *transfer, const char *in, cli_transfer_result *result) {
    cli_job job = {.transfer = transfer, .file = cli_file_open(in), .status = CLI_FAILED};
    if (!job.file) return CLI_FAILED;
    bool written = cli_folder_wanted(in, transfer->values->out) ? write_folder(&job, in)
                                                                : write_file(&job, in);
    *result = (cli_transfer_result){job.changed, job.step_count - job.changed - job.added,
                                    job.left_out, job.output_bytes};
    free(job.claimed);
    free(job.steps);
    cli_file_close(job.file);
    return written ? CLI_OK : job.status;
}

static void print_line(const cli_transfer *transfer, const cli_transfer_result *result) {
    const char *out = transfer->values->out;
    char *path = cli_printable(strcpy(cli_alloc(strlen(out) + 1, 1), out));
    printf("%s: %llu %s %s, %llu kept, ", path, (unsigned long long)result->changed,
           result->changed == 1 ? "weight" : "weights", transfer->participle,
           (unsigned long long)result->kept);
    if (result->left_out) printf("%llu left out, ", (unsigned long long)result->left_out);
    puts(cli_quantity((double)result->bytes, "B").text);
    free(path);
}

void cli_transfer_print(const cli_transfer *transfer, const cli_transfer_result *result) {
    const cli_transfer_values *values = transfer->values;
    if (!values->json) {
        print_line(transfer, result);
        return;
    }
    cli_rows *rows = cli_rows_open(cli_transfer_columns, true);
    cli_row_text(rows, values->out);
    cli_row_integer(rows, (int64_t)result->changed);
    cli_row_integer(rows, (int64_t)result->kept);
    cli_row_integer(rows, (int64_t)result->left_out);
    cli_row_integer(rows, (int64_t)result->bytes);
    cli_rows_close(rows);
}

int cli_transfer_main(const cli_transfer *transfer, const char *in) {
    cli_transfer_result result;
    int status = cli_transfer_run(transfer, in, &result);
    if (status == CLI_OK) cli_transfer_print(transfer, &result);
    return status;
}
