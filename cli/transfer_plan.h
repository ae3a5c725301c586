/* Declares the plan for copying one file into another (transfer.h). The plan is a list of steps,
 * one for each tensor or weight. */
#ifndef CLI_TRANSFER_PLAN_H
#define CLI_TRANSFER_PLAN_H

#include "files.h"
#include "folder.h"
#include "gguf_model.h"
#include "progress.h"
#include "transfer.h"

typedef enum cli_action {
    CLI_COPY_TENSOR,
    CLI_KEEP_WEIGHT,
    CLI_CHANGE_WEIGHT,
    CLI_ADD_SCALE,
    CLI_ADD_FACTORS /* CLI_ADD_FACTORS: the step adds the factors of RoPE to a GGUF file. */
} cli_action;

/* Describes one step of copying a file. It changes or copies one weight, copies one tensor, or adds
 * an input scale. */
typedef struct cli_step {
    cli_action action;
    /* `source` is the index of the tensor or weight in the input file, and `target` is its index
       in the writer. */
    uint64_t source, target;
    float scale; /* `scale` is the value of an input scale. */
    /* `shard` is the number of the output file that receives the weight or tensor. */
    size_t shard;
    /* `heads` is the number of attention heads of a query or key weight whose rows GGUF stores in
     * another order than Hugging Face, or 0. */
    int64_t heads;
    bool widens; /* `widens` is true if the command converts a copied tensor of floats to F32. */
    bsmm_weight weight;
} cli_step;

/* Describes an output file. An output folder has several files, which are called shards. */
typedef struct cli_shard {
    bsmm_writer *writer; /* `writer` is NULL if the file is complete. */
    char *path;
    uint64_t bytes; /* `bytes` is the size in bytes of all tensors in the file. */
} cli_shard;

/* A GGUF file states a file type. This is the tensor type that takes the most bytes in the file.
 * CLI_FILE_TYPES is the number of tensor types that are counted for it (transfer_gguf.c). */
enum { CLI_FILE_TYPES = 5 };

typedef struct cli_job {
    const cli_transfer *transfer;
    bsmm_file *file;
    cli_folder *folder; /* `folder` is NULL if the output is a single file. */
    /* `gguf` describes the model if the command makes a GGUF file of another kind of file.
     * Otherwise it is NULL. */
    const cli_gguf_model *gguf;
    bsmm_file *metadata; /* `metadata` points to the metadata of this GGUF file. */
    uint64_t type_bytes[CLI_FILE_TYPES];
    cli_shard *shards;
    size_t shard_count;
    /* `claimed` has one entry for each tensor. An entry is true if its tensor belongs to a
     * weight. */
    bool *claimed;
    cli_step *steps;
    uint64_t step_count, changed, added, left_out;
    uint64_t bytes; /* `bytes` is the number of bytes that all steps together read. */
    /* `output_bytes` is the size of the output in bytes, as in cli_transfer_result. */
    uint64_t output_bytes;
    cli_progress progress;
    int status; /* `status` is the exit status of a failure during planning. */
} cli_job;

/* Plans the transfer: adds to the writers the names and sizes of everything that the output will
 * contain, and stores the list of steps (copies and conversions of tensors) in job->steps. On
 * failure, the function prints a message and returns false. */
bool cli_transfer_plan(cli_job *job);

/* Returns the writer that receives the next tensor or weight, whose size is `bytes`. In a folder,
 * the function begins a new shard if the last one would become too large. Returns NULL after
 * printing a message. */
bsmm_writer *cli_transfer_writer(cli_job *job, uint64_t bytes);

#endif
