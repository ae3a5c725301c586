#include "transfer.h"
#include "common.h"
#include "files.h"
#include "fit.h"
#include "interrupt.h"
#include "progress.h"
#include "rows.h"
#include "shrink.h"
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { COPY_CHUNK = 1 << 26 }; /* bytes between two steps of the progress bar */

const cli_column cli_transfer_columns[] = {
    {"output", NULL, false, "the file written"},
    {"changed", NULL, false, "weights that were changed"},
    {"kept", NULL, false, "other weights and tensors, copied as they are"},
    {"left_out", NULL, false, "tensors of GGUF whose type is not decoded"},
    {"bytes", NULL, false, "size of the file"},
    {0},
};

typedef enum action { COPY_TENSOR, KEEP_WEIGHT, CHANGE_WEIGHT } action;

typedef struct step {
    action action;
    uint64_t source, target; /* a tensor's or a weight's index in the file, in the writer */
    bsmm_weight weight;
} step;

typedef struct run {
    const cli_transfer *transfer;
    bsmm_file *file;
    bsmm_writer *writer;
    bool *claimed; /* tensors that a weight's step takes along */
    step *steps;
    uint64_t step_count, changed, left_out;
    uint64_t bytes; /* to be read */
    cli_progress progress;
    int status; /* of a failure */
} run;

/* A size that is too large is the library's to refuse; it must not wrap into one that is not. */
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

static bool matches(const cli_list *globs, const char *name) {
    for (size_t i = 0; i < globs->count; i++)
        if (!fnmatch(globs->items[i], name, 0)) return true;
    return false;
}

/* A broken weight is a quantized one: left as it is, it would pass for converted. */
static bool is_selected(const run *job, const bsmm_weight *weight, bool broken) {
    const cli_transfer_values *values = job->transfer->values;
    if (matches(&values->exclude, weight->name)) return false;
    if (values->include.count) return matches(&values->include, weight->name);
    if (!strcmp(bsmm_file_kind(job->file), "npy")) return true; /* the one array that there is */
    return broken ? job->transfer->wants_quantized
                  : job->transfer->wants(job->transfer->options, weight);
}

static void add_step(run *job, action what, uint64_t source, uint64_t target,
                     const bsmm_weight *weight) {
    step *to = &job->steps[job->step_count++];
    *to = (step){.action = what, .source = source, .target = target};
    if (weight) to->weight = *weight;
}

static void claim_tensors(run *job, uint64_t weight) {
    uint64_t tensors[BSMM_WEIGHT_TENSORS];
    if (bsmm_weight_tensors(job->file, weight, tensors)) return;
    for (int i = 0; i < BSMM_WEIGHT_TENSORS; i++)
        if (tensors[i] != BSMM_NO_TENSOR) job->claimed[tensors[i]] = true;
}

static bool add_weight(run *job, action what, uint64_t index, const bsmm_weight *weight,
                       const char *family, const bsmm_matrix *matrix) {
    uint64_t target, bytes;
    if (bsmm_writer_add_weight(job->writer, family, weight->name, matrix, weight->batch, &target))
        return false;
    claim_tensors(job, index);
    add_step(job, what, index, target, weight);
    if (!bsmm_data_bytes(matrix, &bytes)) job->bytes += bytes * (uint64_t)weight->batch;
    return true;
}

static bool change_weight(run *job, uint64_t index, const bsmm_weight *weight) {
    const cli_transfer *transfer = job->transfer;
    cli_target target = {.matrix = BSMM_INIT(bsmm_matrix)};
    bsmm_matrix *matrix = &target.matrix;
    if (bsmm_weight_matrix(job->file, index, 0, matrix)) {
        cli_fail_library(weight->name);
        return false;
    }
    matrix->ld = 0;
    matrix->data = matrix->scales = NULL;
    matrix->data_bytes = matrix->scale_bytes = 0;
    if (!transfer->describe(transfer->options, weight, &target)) return false;
    job->changed++;
    if (add_weight(job, CHANGE_WEIGHT, index, weight, target.family, matrix)) return true;
    if (target.preferred && add_weight(job, CHANGE_WEIGHT, index, weight, NULL, matrix))
        return true;
    cli_fail_library(weight->name);
    /* A family that holds no matrix of this format was the wrong one to ask for. */
    if (target.family && cli_family_refusal(target.family, matrix)) job->status = CLI_USAGE;
    return false;
}

/* Through the writer, so that what the family declares outside the tensors comes along; a family
 * that cannot be written is copied tensor by tensor, but for blocks of ggml: their values are kept
 * in the first family that can. */
static void keep_weight(run *job, uint64_t index, const bsmm_weight *weight) {
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    bool ggml = cli_is_ggml(weight);
    if ((!weight->mapped && !ggml) || !strcmp(weight->family, "plain")) return;
    if (bsmm_weight_matrix(job->file, index, 0, &matrix)) return;
    add_weight(job, KEEP_WEIGHT, index, weight, ggml ? NULL : weight->family, &matrix);
}

static bool plan_weights(run *job) {
    for (uint64_t i = 0; i < bsmm_file_weight_count(job->file); i++) {
        bsmm_weight weight = BSMM_INIT(bsmm_weight);
        bool broken = bsmm_file_weight_at(job->file, i, &weight) != BSMM_OK;
        if (!is_selected(job, &weight, broken)) {
            if (!broken) keep_weight(job, i, &weight);
        } else if (broken) {
            cli_fail_library(weight.name);
            return false;
        } else if (!change_weight(job, i, &weight)) {
            return false;
        }
    }
    return true;
}

/* A tensor whose type only ggml knows. */
static bool leave_out(run *job, const bsmm_tensor *tensor) {
    job->left_out++;
    if (!job->transfer->values->strict) {
        cli_warn("%s: is left out: type %s is not decoded (--strict makes this an error)",
                 tensor->name, tensor->dtype);
        return true;
    }
    cli_fail("%s: type %s is not decoded", tensor->name, tensor->dtype);
    return false;
}

static bool plan_tensor(run *job, uint64_t index) {
    bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
    uint64_t target;
    bsmm_file_tensor_at(job->file, index, &tensor);
    if (tensor.order == BSMM_ORDER_COL && tensor.ndim > 1) {
        cli_fail("%s: is stored column by column, which safetensors cannot say", tensor.name);
        return false;
    }
    bsmm_status status = bsmm_writer_add_tensor(job->writer, tensor.name, tensor.dtype, tensor.ndim,
                                                tensor.shape, &target);
    if (status == BSMM_E_INVALID && !strcmp(bsmm_file_kind(job->file), "gguf"))
        return leave_out(job, &tensor);
    if (status) {
        cli_fail_library(tensor.name);
        return false;
    }
    add_step(job, COPY_TENSOR, index, target, NULL);
    job->bytes += tensor.bytes;
    return true;
}

static bool plan(run *job) {
    uint64_t tensors = bsmm_file_tensor_count(job->file);
    uint64_t weights = bsmm_file_weight_count(job->file);
    job->claimed = cli_alloc(tensors + 1, sizeof *job->claimed);
    job->steps = cli_alloc(tensors + weights + 1, sizeof *job->steps);
    if (!plan_weights(job)) return false;
    if (!job->changed) {
        bool chosen = job->transfer->values->include.count;
        cli_fail("no weight to %s%s; 'bsmm inspect' lists the file's weights", job->transfer->verb,
                 chosen ? " among those that --include names" : "");
        return false;
    }
    for (uint64_t i = 0; i < tensors; i++)
        if (!job->claimed[i] && !plan_tensor(job, i)) return false;
    return true;
}

static bool is_stopped(void) {
    return cli_interrupted() || cli_shrunk();
}

static bool copy_tensor(run *job, const step *what) {
    bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
    void *to;
    uint64_t bytes;
    if (bsmm_file_tensor_at(job->file, what->source, &tensor) ||
        bsmm_writer_tensor(job->writer, what->target, &to, &bytes))
        return false;
    for (uint64_t done = 0, part; done < bytes && !is_stopped(); done += part) {
        part = bytes - done < COPY_CHUNK ? bytes - done : COPY_CHUNK;
        memcpy((char *)to + done, (const char *)tensor.data + done, part);
        cli_progress_add(&job->progress, part);
    }
    return true;
}

/* Readers, bsmm among them, refuse a weight with another one. */
static bool check_global(const step *what, const bsmm_matrix *target) {
    const float *global = target->global_scale;
    if (!global || (isfinite(*global) && *global > 0)) return true;
    cli_fail("%s: its global scale would be %g, for it holds NaN, Inf or values that are too large",
             what->weight.name, (double)*global);
    return false;
}

static bool fill_slice(run *job, const step *what, int64_t slice) {
    const cli_transfer *transfer = job->transfer;
    bsmm_matrix target = BSMM_INIT(bsmm_matrix);
    cli_loaded source;
    uint64_t bytes;
    if (bsmm_writer_weight(job->writer, what->target, slice, &target) ||
        !cli_load(job->file, what->source, slice, &source)) {
        cli_fail_library(what->weight.name);
        return false;
    }
    const char *why = what->action == KEEP_WEIGHT
                          ? cli_reason(bsmm_convert(&source.matrix, &target))
                          : transfer->fill(transfer->options, &source.matrix, &target);
    cli_unload(&source);
    if (why) cli_fail("%s: %s", what->weight.name, why);
    if (!bsmm_data_bytes(&target, &bytes)) cli_progress_add(&job->progress, bytes);
    return !why && check_global(what, &target);
}

static bool fill_step(run *job, const step *what) {
    if (what->action == COPY_TENSOR) return copy_tensor(job, what);
    for (int64_t slice = 0; slice < what->weight.batch && !is_stopped(); slice++)
        if (!fill_slice(job, what, slice)) return false;
    if (what->action == CHANGE_WEIGHT && job->transfer->finish && !is_stopped())
        job->transfer->finish(job->transfer->options, &what->weight);
    return true;
}

static bool fill(run *job) {
    if (bsmm_writer_begin(job->writer)) {
        cli_fail_library(NULL);
        return false;
    }
    job->progress = cli_progress_begin(job->transfer->verb, job->bytes);
    bool filled = true;
    for (uint64_t i = 0; i < job->step_count && filled; i++)
        filled = fill_step(job, &job->steps[i]);
    cli_progress_end(&job->progress);
    return filled && !cli_fail_shrunk() && !is_stopped();
}

/* Readers ask for it ("format": "pt"). What describes weights is the writer's own to write. */
static bool copy_metadata(run *job) {
    const char *key, *value;
    bool both = !strcmp(bsmm_file_kind(job->file), "safetensors") &&
                !strcmp(cli_kind_of(job->transfer->values->out), "safetensors");
    for (uint64_t i = 0; both && !bsmm_file_metadata_at(job->file, i, &key, &value); i++) {
        if (!strncmp(key, "bsmm.", 5) || !strcmp(key, "quantization_config")) continue;
        if (bsmm_writer_metadata(job->writer, key, value)) {
            cli_fail_library(key);
            return false;
        }
    }
    return true;
}

static bool write_file(run *job) {
    const char *out = job->transfer->values->out;
    if (!cli_output_is_apart(job->file, out)) return false;
    if (bsmm_writer_create(out, cli_kind_of(out), &job->writer)) {
        cli_fail_library(NULL);
        return false;
    }
    cli_interrupt_watch();
    bool written = copy_metadata(job) && plan(job) && fill(job);
    if (!written) {
        bsmm_writer_abort(job->writer);
        cli_interrupt_finish();
        return false;
    }
    if (!bsmm_writer_commit(job->writer)) return true;
    cli_fail_library(NULL);
    return false;
}

int cli_transfer_run(const cli_transfer *transfer, const char *in, cli_transfer_result *result) {
    run job = {.transfer = transfer, .file = cli_file_open(in), .status = CLI_FAILED};
    if (!job.file) return CLI_FAILED;
    bool written = write_file(&job);
    *result = (cli_transfer_result){job.changed, job.step_count - job.changed, job.left_out};
    free(job.claimed);
    free(job.steps);
    cli_file_close(job.file);
    return written ? CLI_OK : job.status;
}

void cli_transfer_print(const cli_transfer *transfer, const cli_transfer_result *result) {
    const cli_transfer_values *values = transfer->values;
    struct stat file = {0};
    stat(values->out, &file);
    if (!values->json) {
        printf("%s: %llu %s %s, %llu kept, ", values->out, (unsigned long long)result->changed,
               result->changed == 1 ? "weight" : "weights", transfer->participle,
               (unsigned long long)result->kept);
        if (result->left_out) printf("%llu left out, ", (unsigned long long)result->left_out);
        puts(cli_quantity((double)file.st_size, "B").text);
        return;
    }
    cli_rows *rows = cli_rows_open(cli_transfer_columns, true);
    cli_row_text(rows, values->out);
    cli_row_integer(rows, (int64_t)result->changed);
    cli_row_integer(rows, (int64_t)result->kept);
    cli_row_integer(rows, (int64_t)result->left_out);
    cli_row_integer(rows, file.st_size);
    cli_rows_close(rows);
}

int cli_transfer_main(const cli_transfer *transfer, const char *in) {
    cli_transfer_result result;
    int status = cli_transfer_run(transfer, in, &result);
    if (status == CLI_OK) cli_transfer_print(transfer, &result);
    return status;
}
