/* The plan for copying one file into another (transfer.h): a list of steps, one for each tensor or
 * weight. */
#ifndef CLI_TRANSFER_PLAN_H
#define CLI_TRANSFER_PLAN_H

#include "folder.h"
#include "progress.h"
#include "transfer.h"

typedef enum cli_action { CLI_COPY_TENSOR, CLI_KEEP_WEIGHT, CLI_CHANGE_WEIGHT } cli_action;

/* One step of copying a file into another. It changes or copies one weight, or copies one
 * tensor. */
typedef struct cli_step {
    cli_action action;
    /* source: index of the tensor or weight in the input file. target: its index in the writer. */
    uint64_t source, target;
    size_t shard; /* the output file that gets the weight or tensor */
    bsmm_weight weight;
} cli_step;

/* An output file. A folder has several ones, which are called shards. */
typedef struct cli_shard {
    bsmm_writer *writer; /* NULL: the file is complete */
    char *path;
    uint64_t bytes; /* size of all tensors in the file */
} cli_shard;

typedef struct cli_job {
    const cli_transfer *transfer;
    bsmm_file *file;
    cli_folder *folder; /* NULL: the output is a single file */
    cli_shard *shards;
    size_t shard_count;
    bool *claimed; /* one flag for each tensor; true: the tensor belongs to the step of a weight */
    cli_step *steps;
    uint64_t step_count, changed, left_out;
    uint64_t bytes;        /* number of bytes that all steps together read */
    uint64_t output_bytes; /* cli_transfer_result.bytes */
    cli_progress progress;
    int status; /* exit status of a failure during planning */
} cli_job;

/* Adds to the writer everything that the output file will have, and lists the steps. If that fails,
 * prints a message and returns false. */
bool cli_transfer_plan(cli_job *job);

/* Returns the writer that gets the next tensor or weight, whose size is `bytes`. In a folder this
 * is the writer of a new shard if the last shard would become larger than 5 GB. Returns NULL after
 * printing a message. */
bsmm_writer *cli_transfer_writer(cli_job *job, uint64_t bytes);

#endif
