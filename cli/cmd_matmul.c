/* Implements `bsmm matmul`, which multiplies two weights of files. */
#include "check.h"
#include "common.h"
#include "device.h"
#include "fidelity.h"
#include "files.h"
#include "level.h"
#include "multiply.h"
#include "output.h"
#include "product.h"
#include "rows.h"
#include "shrink.h"
#include "tables.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct values {
    const char *out, *dtype, *kernel, *device, *c;
    double alpha, beta;
    int64_t threads;
    bool check, fast, fidelity, json;
} values;

static const cli_column columns[] = {
    {"output", "output", false, "the file written"},
    {"m", "M", true, "rows of A and D"},
    {"n", "N", true, "rows of B, columns of D"},
    {"k", "K", true, "columns of A and B"},
    {"format", "format", false, "formats of A and B"},
    {"dtype", "D", false, "type of D"},
    {"kernel", "kernel", false, "the kernel that ran"},
    {"seconds", "time", true, "of the product alone"},
    {"gflops", "GFLOP/s", true, "2 M N K / seconds / 1e9"},
    {"max_error", "max error", true, "with --check, largest error; else null"},
    {"bound_share", "of bound", true,
     "with --check, the largest error as a share of what is allowed; else null"},
    {"error_level", "of typical", true,
     "with --check, the typical error as a multiple of what the kernel's family had when it was "
     "measured; else, and where it was not, null"},
    {0},
};

typedef struct product {
    cli_operand a, b, c;
    cli_output output;
    bsmm_matmul_desc desc;
    bench_device *device;
    float alpha, beta;
    cli_ran ran;
    cli_check check;
    /* `level` is the kernel's error level, i.e. its typical error divided by the largest typical
     * error that is expected of it (level.h). It is NAN if the level is not known. */
    double level;
} product;

static bool open_operands(const values *options, char **args, product *job) {
    if (!cli_operand_open(args[0], &job->a) || !cli_operand_open(args[1], &job->b)) return false;
    return !options->c || cli_operand_open(options->c, &job->c);
}

static bool output_differs(const values *options, const product *job) {
    return cli_output_differs(job->a.file, options->out) &&
           cli_output_differs(job->b.file, options->out) &&
           cli_output_differs(job->c.file, options->out);
}

static void describe(const values *options, product *job) {
    bsmm_matmul_desc *desc = &job->desc;
    *desc = BSMM_INIT(bsmm_matmul_desc);
    job->alpha = (float)options->alpha;
    job->beta = isnan(options->beta) ? 1 : (float)options->beta;
    desc->a = &job->a.loaded.matrix;
    desc->b = &job->b.loaded.matrix;
    desc->d = &job->output.matrix;
    desc->alpha = &job->alpha;
    if (options->c) {
        desc->c = &job->c.loaded.matrix;
        desc->beta = &job->beta;
    }
    desc->threads = (uint32_t)options->threads;
    desc->device = options->device;
    desc->kernel = options->kernel;
    desc->compute = options->fast ? BSMM_COMPUTE_FAST : BSMM_COMPUTE_EXACT;
}

static bool multiply(product *job) {
    return cli_multiply_on(&job->device, &job->desc, &job->ran);
}

/* Runs another product on the device that `context` has already opened. */
static bool multiply_again(const bsmm_matmul_desc *desc, void *context) {
    cli_ran ran;
    return cli_multiply_on(&((product *)context)->device, desc, &ran);
}

/* Compares the typical error of the kernel with the measured typical error of its family
 * (level.h). This check finds a kernel that has become worse although its error is still below the
 * bound. */
static bool at_its_level(product *job) {
    job->level = (double)NAN;
    return cli_level_run(&job->desc, job->ran.kernel, multiply_again, job, &job->level) &&
           cli_level_passes(job->ran.kernel, job->level);
}

static bool within_bound(const values *options, product *job) {
    if (!options->check) return true;
    if (!cli_check_run(&job->desc, &job->check)) {
        cli_fail_library("check");
        return false;
    }
    if (job->check.share <= 1) return at_its_level(job);
    cli_fail("check: D[%lld, %lld] is %g, the reference %g; the error is %.3g of the bound",
             (long long)job->check.row, (long long)job->check.col, job->check.got,
             job->check.expected, job->check.share);
    return false;
}

static void checked_cell(cli_rows *rows, bool checked, double value) {
    if (checked)
        cli_row_number(rows, value, "%.3g");
    else
        cli_row_value(rows, NULL, "%s", "");
}

static void print_row(const values *options, const product *job) {
    const bsmm_matrix *a = job->desc.a, *b = job->desc.b;
    double operations = 2.0 * (double)a->rows * (double)b->rows * (double)a->cols;
    cli_rows *rows = cli_rows_open(columns, options->json);
    char format[2 * sizeof(cli_text)];
    snprintf(format, sizeof format, "%s:%s", cli_format_text(a->format).text,
             cli_format_text(b->format).text);
    cli_row_text(rows, options->out);
    cli_row_integer(rows, a->rows);
    cli_row_integer(rows, b->rows);
    cli_row_integer(rows, a->cols);
    cli_row_text(rows, format);
    cli_row_text(rows, options->dtype);
    cli_row_text(rows, job->ran.kernel);
    cli_row_value(rows, json_real(job->ran.seconds), "%s", cli_seconds(job->ran.seconds).text);
    cli_row_number(rows, operations / job->ran.seconds / 1e9, "%.3g");
    checked_cell(rows, options->check, job->check.max_error);
    checked_cell(rows, options->check, job->check.share);
    checked_cell(rows, options->check && !isnan(job->level), job->level);
    cli_rows_close(rows);
}

static bool work(const values *options, char **args, product *job) {
    if (!open_operands(options, args, job) || !output_differs(options, job)) return false;
    if (!cli_output_create(&job->output, options->out, options->dtype, job->a.loaded.matrix.rows,
                           job->b.loaded.matrix.rows)) {
        cli_fail_library(NULL);
        return false;
    }
    describe(options, job);
    if (!multiply(job) || !within_bound(options, job) || cli_fail_shrunk()) return false;
    if (cli_output_write(&job->output)) return true;
    cli_fail_library(NULL);
    return false;
}

static int run(const void *arguments, char **args, int count) {
    const values *options = arguments;
    (void)count;
    if (!isnan(options->beta) && !options->c)
        return cli_usage("--beta: needs a matrix; give it by --c");
    product job = {0};
    bool done = work(options, args, &job);
    if (done) print_row(options, &job);
    bench_device_close(job.device);
    cli_output_free(&job.output);
    cli_operand_close(&job.a);
    cli_operand_close(&job.b);
    cli_operand_close(&job.c);
    return done ? CLI_OK : CLI_FAILED;
}

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .arg = "FILE",
     .help = "file to write D to: .npy, else safetensors with the tensor \"d\"",
     .kind = CLI_OUTPUT,
     .offset = offsetof(values, out),
     .required = true},
    {.name = "dtype",
     .arg = "DTYPE",
     .help = "type of D, f32 unless given",
     .kind = CLI_TEXT,
     .offset = offsetof(values, dtype)},
    {.name = "alpha",
     .arg = "NUMBER",
     .help = "factor of the product, 1 unless given",
     .kind = CLI_NUMBER,
     .offset = offsetof(values, alpha)},
    {.name = "beta",
     .arg = "NUMBER",
     .help = "factor of C, 1 when C is given",
     .kind = CLI_NUMBER,
     .offset = offsetof(values, beta)},
    {.name = "c",
     .arg = "FILE:TENSOR",
     .help = "C (M, N), of type f32, f16 or bf16, to be added",
     .kind = CLI_TEXT,
     .offset = offsetof(values, c)},
    {.name = "kernel",
     .arg = "KERNEL",
     .help = "run this kernel or fail",
     .kind = CLI_TEXT,
     .offset = offsetof(values, kernel)},
    CLI_OPTION_DEVICE(values),
    CLI_OPTION_FIDELITY(values),
    CLI_OPTION_FAST(values),
    {.name = "check",
     .help = "compare with the reference; beyond the bound nothing is written",
     .kind = CLI_FLAG,
     .offset = offsetof(values, check)},
    CLI_OPTION_THREADS(values),
    CLI_OPTION_JSON(values),
    {0},
};

/* A beta of NAN means that the user did not give --beta. */
static const values defaults = {.dtype = "f32", .alpha = 1, .beta = NAN};

const cli_command cli_matmul = {
    .name = "matmul",
    .args = "A B",
    .summary = "Multiply two weights of files: D = alpha A B^T + beta C",
    .text = "A is (M, K) and B is (N, K), each FILE:TENSOR, FILE:TENSOR[SLICE] for one matrix of a "
            "batch, or FILE where it holds one weight only. A .npy file has no bf16: such a D is "
            "rounded to bf16 and stored as f32.",
    .examples = "  bsmm matmul x.npy model.safetensors:layers.0.fc -o d.npy --check\n"
                "  bsmm matmul a.safetensors:x b.safetensors:y -o d.safetensors --dtype bf16\n"
                "  bsmm matmul x.npy moe.safetensors:experts.up_proj[3] -o d.npy\n",
    .options = options,
    .output = {columns, cli_fidelity_columns},
    .defaults = &defaults,
    .values_size = sizeof(values),
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
