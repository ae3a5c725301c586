/* A session of `bsmm bench` that measures products of many shapes: on the cpu (bench_product.c) or
 * on a device whose work is queued (bench_queued.c). */
#ifndef CLI_BENCH_SESSION_H
#define CLI_BENCH_SESSION_H

#include "bench.h"
#include "plot.h"
#include "progress.h"

typedef struct cli_bench_session cli_bench_session;

/* The parts of a session in which the two kinds of devices differ. The struct of such a session
 * begins with a cli_bench_session. */
typedef struct cli_bench_parts {
    size_t result_bytes; /* size of the result of one shape */
    /* Measures the shape job.sizes and stores its result in *now. Returns an exit status. */
    int (*measure)(cli_bench_session *session, void *now, bench_probed *probed);
    /* Computes the point of a result, and prints its row. */
    void (*print_row)(cli_bench_session *session, cli_rows *rows, void *result, bench_point *point,
                      const cli_bench_trust *trust);
    void (*print_more)(cli_bench_session *session); /* prints what follows the rows; may be NULL */
} cli_bench_parts;

struct cli_bench_session {
    const cli_bench_values *values;
    const cli_bench_parts *parts;
    bench_job job;
    void *now, *results; /* result of the current shape; results of all shapes */
    bench_probed *probed;
    int *attempts;
    size_t kept; /* number of shapes that have a result */
    bench_ceilings ceilings;
    bench_point *points;
    cli_progress progress;
};

/* Returns the job that the options describe. */
bench_job cli_bench_job_of(const cli_bench_values *values);

/* Measures all shapes and then prints all rows. No row can be printed earlier, because each
 * measurement may raise the ceiling, i.e. the peak rate that all rows are compared with. Returns an
 * exit status. cli_bench_session_free frees the results. */
int cli_bench_measure_all(cli_bench_session *session, const cli_column *columns);
void cli_bench_session_free(cli_bench_session *session);

/* Draws the results of a session, with the limits and peers of *limits. Returns an exit status. */
int cli_bench_draw(const cli_bench_session *session, const char *device, const bench_plot *limits);

/* Returns the point of a result without peers; `unit` is in operations per second. */
bench_point cli_bench_point_of(const bench_job *job, const bench_result *result, double unit);

#endif
