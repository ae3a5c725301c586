/* Declares the functions of `bsmm bench`, which measures products or conversions. Each function
 * measures a list of shapes and prints one row for each shape. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "common.h"
#include "measure.h"
#include "product.h"
#include "rows.h"

typedef struct cli_bench_values {
    cli_format_pair formats;
    bsmm_format out, from;
    int64_t m, n, k, m_range[2], k_range[2], k_step, threads, repeats;
    const char *kernel, *device, *plot, *recipe, *peer, *relayout, *packed, *surface;
    bool json, bench, no_pack_b, cold, quantized, quantize, dequantize, amax, fast, counters,
        sampled, challenge, check, fidelity;
    /* `all_shapes` is true if the command measures every shape of AMD's FP8 groupwise challenge. It
     * is false if -M, -N and -K give one shape. */
    bool all_shapes;
} cli_bench_values;

extern const cli_column cli_bench_product_columns[], cli_bench_recode_columns[],
    cli_bench_queued_columns[], cli_bench_counter_columns[], cli_bench_line_columns[],
    cli_bench_challenge_columns[], cli_bench_mean_columns[];

/* CLI_CHALLENGE_FORMATS names the formats of A and B in AMD's FP8 groupwise challenge. */
#define CLI_CHALLENGE_FORMATS "fp8_group128_fnuz:fp8_block128_fnuz"

/* cli_bench_challenge_shapes returns the number of shapes (M, N, K) of AMD's FP8 groupwise
 * challenge. cli_bench_challenge_shape_at returns one of these shapes. */
int64_t cli_bench_challenge_shapes(void);
void cli_bench_challenge_shape_at(int64_t index, int64_t sizes[3]);
/* Checks the options of a command line that has --challenge. Returns an exit status. */
int cli_bench_check_challenge(const cli_bench_values *values);

/* Returns the number of shapes that the command measures. The options give ranges of M and K, in
 * which M doubles from one shape to the next, or they select the shapes of AMD's challenge. */
int64_t cli_bench_shapes(const cli_bench_values *values);

/* Gives the sizes (M, N, K) of shape number `index`, in the order of the output. */
void cli_bench_shape_at(const cli_bench_values *values, int64_t index, int64_t sizes[3]);

/* Holds the two titles of a plot. `title` names the formats and the sizes that do not vary.
 * `subtitle` names the device, its number of threads if it is not 0, the library's version and the
 * date. */
typedef struct cli_bench_titles {
    char title[256], subtitle[256];
} cli_bench_titles;
cli_bench_titles cli_bench_titles_of(const cli_bench_values *values, const char *device,
                                     int threads);

/* Says how far a reader can trust a row of the output, i.e. whether other work kept the machine
 * busy during the measurement. */
typedef struct cli_bench_trust {
    /* `disturbed` is true if other work kept the machine busy in every attempt to measure the
     * row. */
    bool disturbed;
    /* `probe_share` is the peak rate that a loop measured while this row was measured, as a
     * fraction of the best rate of the same loop in the whole run. The loop keeps the arithmetic
     * unit or the memory busy. */
    double probe_share;
    int attempts; /* `attempts` counts the attempts to measure the row. */
} cli_bench_trust;

/* Defines the output columns for the fields of a cli_bench_trust. cli_bench_trust_cells prints
 * their cells. */
#define CLI_BENCH_TRUST_COLUMNS                                                                    \
    {"probe_share", NULL, true,                                                                    \
     "the row's own probe / the best probe of the run: 1 is undisturbed"},                         \
        {"measured", NULL, true, "how often the row was measured: again, if it was disturbed"}, {  \
        "disturbed", NULL, false,                                                                  \
            "true: the machine was busy in every attempt (a * at the share): probe_share is "      \
            "below "                                                                               \
            "0.9, or the product was faster than its ceiling"                                      \
    }

/* Defines the output columns that describe a product: its formats and sizes. cli_bench_job_cells
 * prints their cells. */
#define CLI_BENCH_JOB_COLUMNS                                                                      \
    {"format", "format", false, "the formats as they were given"},                                 \
        {"m", "    M", true, "rows of A and D"}, {"n", "    N", true, "rows of B, columns of D"},  \
        {"k", "    K", true, "columns of A and B"}, {"device", NULL, false, "device that ran it"}, \
    {                                                                                              \
        "kernel", "kernel", false, "kernel that ran it"                                            \
    }

/* Defines the output column of a kernel's error level, i.e. of its typical error divided by the
 * largest typical error that is expected of the kernel (level.h). */
#define CLI_BENCH_LEVEL_COLUMN                                                                     \
    {                                                                                              \
        "error_level", NULL, true,                                                                 \
            "with --check, the typical error as a multiple of what the kernel's family had when "  \
            "it was measured; else, and where it was not, null"                                    \
    }

cli_bench_trust cli_bench_trust_of(const bench_ceilings *run, const bench_probed *row,
                                   int attempts);
void cli_bench_share_cell(cli_rows *rows, double share, const cli_bench_trust *trust);
void cli_bench_trust_cells(cli_rows *rows, const cli_bench_trust *trust);
/* Prints a note that explains the mark `*`. The mark stands at rows that were measured while other
 * work kept the machine busy. */
void cli_bench_explain_mark(void);

/* Prints which result of a product was wrong, and returns an exit status. */
int cli_bench_report_failure(const bench_job *job, const bench_result *result);

/* Each of these functions measures all shapes that the options give, prints the results, and
 * returns an exit status. The options must have been checked. */
int cli_bench_products(const cli_bench_values *values);
int cli_bench_recode(const cli_bench_values *values);
/* Measures products on a GPU, whose work is queued. Returns an exit status. */
int cli_bench_queued(const cli_bench_values *values);

#endif
