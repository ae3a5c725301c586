/* The work of a transfer, step by step, and the plan that lists it. */
#ifndef CLI_TRANSFER_PLAN_H
#define CLI_TRANSFER_PLAN_H

#include "progress.h"
#include "transfer.h"

typedef enum cli_action { CLI_COPY_TENSOR, CLI_KEEP_WEIGHT, CLI_CHANGE_WEIGHT } cli_action;

/* What is done with one tensor or weight. */
typedef struct cli_step {
    cli_action action;
    uint64_t source, target; /* a tensor's or a weight's index in the file, in the writer */
    bsmm_weight weight;
} cli_step;

typedef struct cli_job {
    const cli_transfer *transfer;
    bsmm_file *file;
    bsmm_writer *writer;
    bool *claimed; /* tensors that a weight's step takes along */
    cli_step *steps;
    uint64_t step_count, changed, left_out;
    uint64_t bytes; /* to be read */
    cli_progress progress;
    int status; /* of a failure */
} cli_job;

/* Adds to the writer what will be written, and lists the steps; false with a message printed. */
bool cli_transfer_plan(cli_job *job);

#endif
