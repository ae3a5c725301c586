/* Tests the report of `bsmm quantize` on a weight with several matrices. If the error of any of
 * them is NaN, the report must show NaN. */
/* The test includes a source file of the command bsmm, because no library contains this code. */
#include "../../cli/report.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The report (the code under test) calls these functions of the command. The functions here replace
 * the command's own functions and print nothing. */
void *cli_alloc(size_t count, size_t size) {
    void *memory = calloc(count, size);
    assert_non_null(memory);
    return memory;
}
cli_rows *cli_rows_open(const cli_column *columns, bool json) {
    (void)columns, (void)json;
    return NULL;
}
void cli_rows_close(cli_rows *rows) {
    (void)rows;
}
void cli_row_text(cli_rows *rows, const char *text) {
    (void)rows, (void)text;
}
void cli_row_number(cli_rows *rows, double value, const char *format) {
    (void)rows, (void)value, (void)format;
}
void cli_row_value(cli_rows *rows, json_t *value, const char *format, ...) {
    (void)rows, (void)format;
    json_decref(value);
}

/* Returns the largest error that the report prints for a weight of two matrices. `first` and
 * `second` are the largest errors of the two matrices. */
static double largest_of(double first, double second) {
    cli_report *report = cli_report_open(false);
    const bsmm_quantize_report parts[] = {{.max_error = first, .count = 1},
                                          {.max_error = second, .count = 1}};
    cli_report_add(report, &parts[0]);
    cli_report_add(report, &parts[1]);
    const double largest = report->sum.max_error;
    cli_report_close(report);
    return largest;
}

static void test_nan_stays(void **state) {
    (void)state;
    assert_true(largest_of(1, 2) == 2 && largest_of(2, 1) == 2);
    assert_true(isnan(largest_of((double)NAN, 1)));
    assert_true(isnan(largest_of(1, (double)NAN)));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nan_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
