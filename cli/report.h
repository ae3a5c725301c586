/* Reports the errors of quantization. The report adds the errors of all matrices of a weight, so
 * that the table has one row for each weight. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "command.h"

typedef struct cli_report cli_report;

extern const cli_column cli_report_columns[];

/* Adds the errors of a part of a tensor to `sum`. The fields clipped and underflowed of `sum`
 * count elements. */
void cli_report_sum(bsmm_quantize_report *sum, const bsmm_quantize_report *part);

cli_report *cli_report_open(bool json);
void cli_report_add(cli_report *report, const bsmm_quantize_report *part);
/* Prints a row with the sum of all error reports that the caller has added since the previous
 * row. */
void cli_report_row(cli_report *report, const char *name, const char *format);
void cli_report_close(cli_report *report);

#endif
