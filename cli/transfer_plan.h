/* The work of a transfer as a list of steps, and the plan that makes the list. */
#ifndef CLI_TRANSFER_PLAN_H
#define CLI_TRANSFER_PLAN_H

#include "progress.h"
#include "transfer.h"

typedef enum cli_action { CLI_COPY_TENSOR, CLI_KEEP_WEIGHT, CLI_CHANGE_WEIGHT } cli_action;

/* The step of a transfer for one tensor or weight. */
typedef struct cli_step {
    cli_action action;
    uint64_t source, target; /* index of the tensor or weight in the file and in the writer */
    bsmm_weight weight;
} cli_step;

typedef struct cli_job {
    const cli_transfer *transfer;
    bsmm_file *file;
    bsmm_writer *writer;
    bool *claimed; /* true for tensors that belong to a weight's step */
    cli_step *steps;
    uint64_t step_count, changed, left_out;
    uint64_t bytes; /* number of bytes that all steps read */
    cli_progress progress;
    int status; /* exit status of a failure while planning */
} cli_job;

/* Adds everything that will be written to the writer, and lists the steps. Returns false after
 * printing a message. */
bool cli_transfer_plan(cli_job *job);

#endif
