/* Declares a session of `bsmm bench`, which measures products of many shapes on the cpu
 * (bench_product.c) or on a GPU (bench_queued.c). */
#ifndef CLI_BENCH_SESSION_H
#define CLI_BENCH_SESSION_H

#include "bench.h"
#include "plot.h"
#include "progress.h"

typedef struct cli_bench_session cli_bench_session;

/* There are two kinds of sessions: measurements on the cpu and measurements on a GPU. This struct
 * holds the functions in which they differ. The struct of each kind begins with a
 * cli_bench_session. */
typedef struct cli_bench_parts {
    size_t result_bytes; /* `result_bytes` is the size in bytes of the result of one shape. */
    /* Measures the shape in job.sizes and stores its result in *now. Returns an exit status. */
    int (*measure)(cli_bench_session *session, void *now, bench_probed *probed);
    /* Prints the row of one result, and stores in *point the point that stands for this result in
     * the plot. */
    void (*print_row)(cli_bench_session *session, cli_rows *rows, void *result, bench_point *point,
                      const cli_bench_trust *trust);
    /* This function prints additional tables after the rows. It may be NULL if there are no
     * additional tables. */
    void (*print_more)(cli_bench_session *session);
} cli_bench_parts;

struct cli_bench_session {
    const cli_bench_values *values;
    const cli_bench_parts *parts;
    bench_job job;
    /* `now` points to the result of the current shape, and `results` to the results of all shapes.
     * The struct of each result begins with a bench_result. */
    void *now, *results;
    bench_probed *probed;
    int *attempts;
    size_t kept; /* `kept` is the number of shapes that have a result. */
    bench_ceilings ceilings;
    bench_point *points;
    cli_progress progress;
};

/* Returns the bench_job that the options describe. */
bench_job cli_bench_job_of(const cli_bench_values *values);

/* Measures all shapes, then prints all rows. bench cannot print a row earlier, because it compares
 * each row with the ceiling, i.e. the best measured peak rate, and a later measurement may raise
 * the ceiling. Returns an exit status. cli_bench_session_free frees the results. */
int cli_bench_measure_all(cli_bench_session *session, const cli_column *columns);
void cli_bench_session_free(cli_bench_session *session);

/* Prints the cells of CLI_BENCH_JOB_COLUMNS for the current shape. `kernel` is the name of the
 * kernel that computed the product. */
void cli_bench_job_cells(const cli_bench_session *session, cli_rows *rows, const char *kernel);

/* Draws the results of a session as a plot. *limits holds the peak rates and the results of other
 * libraries. Returns an exit status. */
int cli_bench_draw(const cli_bench_session *session, const char *device, const bench_plot *limits);

/* Prints the counters of each launch and the lines of the kernel's source at which waves wait, or
 * adds both to the JSON output (bench_counters.c). */
void cli_bench_print_counters(cli_bench_session *session);
struct bench_queued_result;
json_t *cli_bench_counters_json(const struct bench_queued_result *result);

/* cli_bench_print_challenge prints one row for AMD's FP8 groupwise challenge, and
 * cli_bench_print_challenge_means prints the geometric means of the times. Every result must begin
 * with a bench_result. */
void cli_bench_print_challenge(cli_bench_session *session, cli_rows *rows, void *result,
                               bench_point *point, const cli_bench_trust *trust);
void cli_bench_print_challenge_means(cli_bench_session *session);

/* Multiplies the operands of the job again, and sets result->error_level. Returns CLI_OK, or
 * CLI_FAILED after printing a message, for example because the errors are larger than those that
 * were measured earlier for kernels that add in the same order. */
int cli_bench_check_level(const bench_job *job, bench_result *result);

/* Returns the point that stands for a result in the plot. Its fields for other libraries are 0.
 * `unit` is the peak rate of the arithmetic unit in operations per second. */
bench_point cli_bench_point_of(const bench_job *job, const bench_result *result, double unit);

#endif
