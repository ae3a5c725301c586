/* Decides for each weight and tensor of a file whether the command changes it, copies it or leaves
 * it out. */
#include "transfer_plan.h"
#include "common.h"
#include "files.h"
#include "fit.h"
#include "transfer_gguf.h"
#include "whole.h"
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies the metadata of one GGUF file to another. Programs that read GGUF files need metadata. A
 * GGUF output therefore requires an input that has metadata: a GGUF file, or a Hugging Face model
 * with config.json. */
static bool copy_gguf_metadata(const cli_job *job, bsmm_writer *writer, const char *out) {
    const char *kind = bsmm_file_kind(job->file);
    /* If the input is a Hugging Face model (job->gguf), its metadata are written at the end of the
     * plan. */
    if (job->gguf) return true;
    if (strcmp(kind, "gguf") != 0) {
        cli_fail("%s: needs the metadata of a GGUF file, but the input is %s", out, kind);
        return false;
    }
    if (!bsmm_writer_copy_metadata(writer, job->file)) return true;
    cli_fail_library(out);
    return false;
}

/* Copies the metadata of the input file, because some readers need the entry "format": "pt". The
 * function skips entries that describe weights, because the writer makes new ones. */
static bool copy_metadata(const cli_job *job, bsmm_writer *writer, const char *out) {
    const char *key, *value;
    if (!strcmp(cli_kind_of(out), "gguf")) return copy_gguf_metadata(job, writer, out);
    bool both = !strcmp(bsmm_file_kind(job->file), "safetensors") &&
                !strcmp(cli_kind_of(out), "safetensors");
    for (uint64_t i = 0; both && !bsmm_file_metadata_at(job->file, i, &key, &value); i++) {
        if (!strncmp(key, "bsmm.", 5) || !strcmp(key, "quantization_config")) continue;
        if (bsmm_writer_metadata(writer, key, value)) return !cli_fail_library(key);
    }
    return true;
}

static bool add_shard(cli_job *job) {
    const char *out = job->transfer->values->out;
    job->shards = cli_realloc(job->shards, job->shard_count + 1, sizeof *job->shards);
    cli_shard *shard = &job->shards[job->shard_count];
    *shard = (cli_shard){.path = job->folder ? cli_folder_shard(job->folder, job->shard_count)
                                             : strcpy(cli_alloc(strlen(out) + 1, 1), out)};
    job->shard_count++;
    if (!bsmm_writer_create(shard->path, cli_kind_of(shard->path), &shard->writer))
        return copy_metadata(job, shard->writer, shard->path);
    cli_fail_library(NULL);
    return false;
}

bsmm_writer *cli_transfer_writer(cli_job *job, uint64_t bytes) {
    const int64_t given = job->transfer->values->shard_size;
    const uint64_t most = given ? (uint64_t)given : 5000000000;
    const cli_shard *last = job->shard_count ? &job->shards[job->shard_count - 1] : NULL;
    const bool full = job->folder && last && last->bytes && last->bytes + bytes > most;
    if ((!last || full) && !add_shard(job)) return NULL;
    return job->shards[job->shard_count - 1].writer;
}

static bool matches(const cli_list *globs, const char *name) {
    for (size_t i = 0; i < globs->count; i++)
        if (!fnmatch(globs->items[i], name, 0)) return true;
    return false;
}

bool cli_transfer_selects(const cli_transfer *transfer, const bsmm_file *file,
                          const bsmm_weight *weight, bool broken) {
    const cli_transfer_values *values = transfer->values;
    if (matches(&values->exclude, weight->name)) return false;
    if (values->include.count) return matches(&values->include, weight->name);
    /* A .npy file has only one array, so the command always changes it. */
    if (!strcmp(bsmm_file_kind(file), "npy")) return true;
    return broken ? transfer->wants_quantized : transfer->wants(transfer->options, file, weight);
}

static void add_step(cli_job *job, cli_action what, uint64_t source, uint64_t target,
                     const bsmm_weight *weight) {
    cli_step *to = &job->steps[job->step_count++];
    *to = (cli_step){
        .action = what, .source = source, .target = target, .shard = job->shard_count - 1};
    if (weight) to->weight = *weight;
    if (weight && job->gguf) to->heads = cli_gguf_model_heads(job->gguf, weight->name);
}

static void claim_tensors(cli_job *job, uint64_t weight) {
    uint64_t tensors[BSMM_WEIGHT_TENSORS];
    if (bsmm_weight_tensors(job->file, weight, tensors)) return;
    for (int i = 0; i < BSMM_WEIGHT_TENSORS; i++)
        if (tensors[i] != BSMM_NO_TENSOR) job->claimed[tensors[i]] = true;
}

/* Returns the size of a matrix with its scales in bytes, or 0 if its description is invalid. */
static uint64_t bytes_of(const bsmm_matrix *matrix) {
    uint64_t data = 0, scales = 0;
    return bsmm_data_bytes(matrix, &data) || bsmm_scale_bytes(matrix, &scales) ? 0 : data + scales;
}

/* Adds the tensor of a weight's input scale to the shard that has the weight. */
static bool add_input_scale(cli_job *job, const char *weight, const cli_target *of) {
    char *name = cli_input_scale_name(weight, of->input->suffix);
    uint64_t target;
    cli_shard *shard = &job->shards[job->shard_count - 1];
    const bool added = !bsmm_writer_add_tensor(shard->writer, name, "F32", of->input->ndim,
                                               (const int64_t[]){1}, &target);
    if (!added) cli_fail_library(name);
    free(name);
    if (!added) return false;
    shard->bytes += sizeof(float);
    job->added++;
    add_step(job, CLI_ADD_SCALE, 0, target, NULL);
    job->steps[job->step_count - 1].scale = of->input_scale;
    return true;
}

/* Adds a weight with the name `name` to a writer. */
static bool add_weight(cli_job *job, cli_action what, uint64_t index, const bsmm_weight *weight,
                       const char *name, const char *family, const bsmm_matrix *matrix) {
    uint64_t target, bytes = bytes_of(matrix) * (uint64_t)weight->batch;
    /* This size includes the weight's input scale, so that the weight and its input scale come into
     * the same shard. */
    bsmm_writer *writer = cli_transfer_writer(job, bytes + sizeof(float));
    if (!writer || bsmm_writer_add_weight(writer, family, name, matrix, weight->batch, &target))
        return false;
    job->shards[job->shard_count - 1].bytes += bytes;
    claim_tensors(job, index);
    add_step(job, what, index, target, weight);
    cli_transfer_count_type(job, cli_whole_name(matrix->format, weight->rows, weight->cols), bytes);
    if (!bsmm_data_bytes(matrix, &bytes)) job->bytes += bytes * (uint64_t)weight->batch;
    return true;
}

/* Refuses to write a GGUF file's embedding in nvfp4. llama.cpp does not load such a file, because
 * it reads no second-level scale of the embedding. */
static bool check_embedding(const cli_job *job, const char *name, const bsmm_matrix *matrix) {
    const bool is_gguf = !strcmp(cli_kind_of(job->transfer->values->out), "gguf");
    if (!is_gguf || matrix->format.scale != BSMM_SCALE_E4M3 || strcmp(name, "token_embd.weight"))
        return true;
    cli_fail("%s: cannot be nvfp4 in a GGUF file, because llama.cpp reads no second-level scale of "
             "the embedding",
             name);
    return false;
}

static bool change_weight(cli_job *job, uint64_t index, const bsmm_weight *weight,
                          const char *name) {
    const cli_transfer *transfer = job->transfer;
    cli_target target = {.matrix = BSMM_INIT(bsmm_matrix)};
    bsmm_matrix *matrix = &target.matrix;
    if (bsmm_weight_matrix(job->file, index, 0, matrix)) return !cli_fail_library(weight->name);
    matrix->ld = 0;
    matrix->data = matrix->scales = NULL;
    matrix->data_bytes = matrix->scale_bytes = 0;
    if (!transfer->describe(transfer->options, job->file, weight, &target)) return false;
    if (!check_embedding(job, name, matrix)) return false;
    job->changed++;
    if (add_weight(job, CLI_CHANGE_WEIGHT, index, weight, name, target.family, matrix))
        return !target.input || add_input_scale(job, weight->name, &target);
    if (target.preferred && add_weight(job, CLI_CHANGE_WEIGHT, index, weight, name, NULL, matrix)) {
        if (target.input)
            cli_warn("%s: gets no input scale, because it becomes a weight of another family than "
                     "%s",
                     weight->name, target.family);
        return true;
    }
    cli_fail_library(weight->name);
    /* The checkpoint family can store no matrix of this format, so the user's options contradict
     * each other. */
    if (target.family && cli_family_refusal(target.family, matrix, transfer->values->out))
        job->status = CLI_USAGE;
    return false;
}

/* Copies an unchanged weight by adding it to the writer as a weight, so that the output gets the
 * metadata that declares the weight. If the writer cannot write the weight's family, other code
 * copies the tensors one by one. Outside of GGUF files, blocks of a ggml type are decoded first. */
static void keep_weight(cli_job *job, uint64_t index, const bsmm_weight *weight, const char *name) {
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    bool ggml = cli_is_ggml(weight);
    if (ggml && !strcmp(cli_kind_of(job->transfer->values->out), "gguf")) return;
    if ((!weight->mapped && !ggml) || !strcmp(weight->family, "plain")) return;
    if (bsmm_weight_matrix(job->file, index, 0, &matrix)) return;
    add_weight(job, CLI_KEEP_WEIGHT, index, weight, name, ggml || job->gguf ? NULL : weight->family,
               &matrix);
}

static bool plan_weights(cli_job *job) {
    for (uint64_t i = 0; i < bsmm_file_weight_count(job->file); i++) {
        bsmm_weight weight = BSMM_INIT(bsmm_weight);
        char memory[64];
        const char *name;
        bool broken = bsmm_file_weight_at(job->file, i, &weight) != BSMM_OK;
        const bool selected = cli_transfer_selects(job->transfer, job->file, &weight, broken);
        if (broken && selected) cli_fail_library(weight.name);
        if (broken && selected) return false;
        const cli_gguf_naming naming = cli_transfer_name(job, weight.name, memory, &name);
        if (naming == CLI_GGUF_UNKNOWN) return false;
        if (naming == CLI_GGUF_DROPPED)
            claim_tensors(job, i);
        else if (!selected && !broken)
            keep_weight(job, i, &weight, name);
        else if (selected && !change_weight(job, i, &weight, name))
            return false;
    }
    return true;
}

/* Writes to why[size] the reason why a tensor of a GGUF file is left out of the output. The output
 * cannot hold the tensor's ggml type, and the library cannot decode the tensor. Either it does not
 * know the type (tensor->dtype is then "type " and the type's number), or the tensor is no matrix,
 * and the library decodes only matrices of this type. */
static void explain_left_out(const bsmm_tensor *tensor, char *why, size_t size) {
    if (!strncmp(tensor->dtype, "type ", 5))
        snprintf(why, size, "ggml's %s is not known", tensor->dtype);
    else
        snprintf(why, size, "it is a %s tensor of %s, and only matrices of this type are decoded",
                 tensor->dtype, tensor->ndim == 1 ? "one dimension" : "another shape");
}

/* Leaves out a tensor that the library cannot decode. With --strict this is an error. */
static bool leave_out(cli_job *job, const bsmm_tensor *tensor) {
    char why[128];
    explain_left_out(tensor, why, sizeof why);
    job->left_out++;
    if (!job->transfer->values->strict) {
        cli_warn("%s: is left out: %s (--strict makes this an error)", tensor->name, why);
        return true;
    }
    cli_fail("%s: cannot be converted: %s", tensor->name, why);
    return false;
}

/* Tells whether a tensor is the input scale of a weight that the command changes. */
static bool is_dropped(const cli_job *job, const char *name) {
    uint64_t index;
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    char *of = job->transfer->drops_inputs ? cli_input_scale_weight(name) : NULL;
    const bool dropped = of && !bsmm_file_weight_find(job->file, of, &index) &&
                         !bsmm_file_weight_at(job->file, index, &weight) &&
                         cli_transfer_selects(job->transfer, job->file, &weight, false);
    free(of);
    return dropped;
}

/* Plans to copy a tensor that the command does not change. The order of its elements is row-major:
 * only the tensor of a .npy file can have another order, and that tensor is always changed. */
static bool plan_tensor(cli_job *job, uint64_t index) {
    bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
    uint64_t target;
    char memory[64];
    const char *name;
    bsmm_file_tensor_at(job->file, index, &tensor);
    if (is_dropped(job, tensor.name)) return true;
    const cli_gguf_naming naming = cli_transfer_name(job, tensor.name, memory, &name);
    if (naming != CLI_GGUF_NAMED) return naming == CLI_GGUF_DROPPED;
    const char *dtype = cli_transfer_type(job, &tensor);
    bsmm_writer *writer = cli_transfer_writer(job, tensor.bytes);
    if (!writer) return false;
    bsmm_status status =
        bsmm_writer_add_tensor(writer, name, dtype, tensor.ndim, tensor.shape, &target);
    if (status == BSMM_E_INVALID && !strcmp(bsmm_file_kind(job->file), "gguf"))
        return leave_out(job, &tensor);
    if (status) {
        cli_fail_library(tensor.name);
        return false;
    }
    job->shards[job->shard_count - 1].bytes += tensor.bytes;
    add_step(job, CLI_COPY_TENSOR, index, target, NULL);
    cli_step *step = &job->steps[job->step_count - 1];
    step->widens = strcmp(dtype, tensor.dtype) != 0;
    step->heads = job->gguf ? cli_gguf_model_heads(job->gguf, tensor.name) : 0;
    if (tensor.ndim > 1)
        cli_transfer_count_type(job, cli_whole_name((bsmm_format){.elem = tensor.elem}, 0, 0),
                                tensor.bytes);
    job->bytes += tensor.bytes;
    return true;
}

/* Removes the last shard if it is empty. It is empty if the writer refused the weight for which the
 * shard was begun. */
static void drop_unused_shard(cli_job *job) {
    const cli_shard *last = &job->shards[job->shard_count - 1];
    if (job->step_count && job->steps[job->step_count - 1].shard + 1 == job->shard_count) return;
    bsmm_writer_abort(last->writer);
    free(last->path);
    job->shard_count--;
}

bool cli_transfer_plan(cli_job *job) {
    uint64_t tensors = bsmm_file_tensor_count(job->file);
    uint64_t weights = bsmm_file_weight_count(job->file);
    job->claimed = cli_alloc(tensors + 1, sizeof *job->claimed);
    job->steps = cli_alloc(tensors + 2 * weights + 1, sizeof *job->steps);
    if (!plan_weights(job)) return false;
    if (!job->changed && !job->gguf) {
        bool chosen = job->transfer->values->include.count;
        cli_fail("no weight to %s%s; 'bsmm inspect' lists the file's weights", job->transfer->verb,
                 chosen ? " among those that --include names" : "");
        return false;
    }
    for (uint64_t i = 0; i < tensors; i++)
        if (!job->claimed[i] && !plan_tensor(job, i)) return false;
    drop_unused_shard(job);
    if (job->gguf && !cli_transfer_finish_gguf(job)) return false;
    if (job->transfer->planned) job->transfer->planned(job->transfer->options, job->file);
    return true;
}
