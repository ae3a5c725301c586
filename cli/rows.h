/* Prints the output of a command, either as a table with aligned columns or as one JSON object for
 * each row. */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include "command.h"
#include <jansson.h>

typedef struct cli_rows cli_rows;

cli_rows *cli_rows_open(const cli_column *columns, bool json);

/* The functions cli_row_* set the next cell of the current row, in the order of the columns. This
 * one sets the cell to a text. A NULL text is null in JSON and "-" in a table. */
void cli_row_text(cli_rows *rows, const char *text);
void cli_row_integer(cli_rows *rows, int64_t value);
/* Sets the next cell to a number. `format` is its printf format in the table. NaN and Inf become
 * null in JSON. */
void cli_row_number(cli_rows *rows, double value, const char *format)
    __attribute__((format(printf, 3, 0)));
/* Sets the next cell. JSON output contains `value`, and a NULL `value` becomes null. A table
 * contains the text that printf would make of `format` and the arguments after it. The caller must
 * not release its reference to `value`, because the function does so. */
void cli_row_value(cli_rows *rows, json_t *value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets the next cell to `text`, or in JSON output to `value`. A NULL `value` becomes null, and a
 * table does not need it. The function releases the caller's reference to `value`. */
void cli_row_cell(cli_rows *rows, json_t *value, const char *text);
/* Tells whether the rows are printed as JSON, so that cells need values. */
bool cli_rows_are_json(const cli_rows *rows);

/* Lets rows of JSON wait for cli_rows_flush. Otherwise each row of JSON is written as soon as it is
 * complete, because the next one may take long to measure. */
void cli_rows_collect(cli_rows *rows);
/* Prints the rows that were collected so far. Later rows use at least the same column widths. A
 * row whose cells are not all set is dropped. */
void cli_rows_flush(cli_rows *rows);
void cli_rows_close(cli_rows *rows);

#endif
