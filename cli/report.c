#include "report.h"
#include "common.h"
#include "rows.h"
#include <math.h>
#include <stdlib.h>

const cli_column cli_report_columns[] = {
    {"name", "weight", false, "name of the weight"},
    {"format", "format", false, "format quantized into"},
    {"sqnr_db", "SQNR dB", true, "10 log10(sum x^2 / sum (x - q)^2); null: exact"},
    {"max_error", "max error", true, "largest |x - q|"},
    {"clipped", "clipped", true, "share of elements above their block's largest value"},
    {"underflowed", "underflowed", true, "share of elements that were not zero and became zero"},
    {0},
};

struct cli_report {
    cli_rows *rows;
    /* `sum` adds up the reports of all matrices so far. Its fields `clipped` and `underflowed`
     * count elements here, and become fractions when the row is printed. */
    bsmm_quantize_report sum;
};

cli_report *cli_report_open(bool json) {
    cli_report *report = cli_alloc(1, sizeof *report);
    report->rows = cli_rows_open(cli_report_columns, json);
    return report;
}

void cli_report_sum(bsmm_quantize_report *sum, const bsmm_quantize_report *part) {
    sum->signal += part->signal;
    sum->noise += part->noise;
    /* If the error of any matrix of the weight is NaN, the largest error is NaN. fmax would lose
     * the NaN. */
    if (!isnan(sum->max_error) && !(part->max_error <= sum->max_error))
        sum->max_error = part->max_error;
    sum->clipped += part->clipped * (double)part->count;
    sum->underflowed += part->underflowed * (double)part->count;
    sum->count += part->count;
}

void cli_report_add(cli_report *report, const bsmm_quantize_report *part) {
    cli_report_sum(&report->sum, part);
}

static void share_cell(cli_rows *rows, double share) {
    cli_row_value(rows, json_real(share), "%.3f%%", 100 * share);
}

void cli_report_row(cli_report *report, const char *name, const char *format) {
    bsmm_quantize_report *sum = &report->sum;
    double count = sum->count ? (double)sum->count : 1;
    cli_row_text(report->rows, name);
    cli_row_text(report->rows, format);
    cli_row_number(report->rows, sum->noise == 0 ? INFINITY : 10 * log10(sum->signal / sum->noise),
                   "%.2f");
    cli_row_number(report->rows, sum->max_error, "%.4g");
    share_cell(report->rows, sum->clipped / count);
    share_cell(report->rows, sum->underflowed / count);
    *sum = (bsmm_quantize_report){0};
}

void cli_report_close(cli_report *report) {
    cli_rows_close(report->rows);
    free(report);
}
