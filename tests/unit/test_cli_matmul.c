/* Tests that `bsmm matmul --check` fails and writes no result if a kernel's result is wrong. No
 * kernel of the library gives wrong results, so the test replaces the kernel and the check by
 * functions of its own. */
#include "../../cli/rows.h"

static int shown;

/* This function replaces the function of the same name in cli/rows.c. It is defined before
 * cmd_matmul.c is included, because a table in that file is named `columns`, like the parameter
 * here. */
cli_rows *cli_rows_open(const cli_column *columns, bool json) {
    (void)columns, (void)json;
    shown++;
    return NULL;
}

/* The test includes a source file of the command bsmm, because no library contains this code. */
#include "../../cli/cmd_matmul.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Holds what the replaced functions below return. `share` is the largest error as a share of the
 * bound, which cli_check_run reports. `can_check`, `level_runs` and `level_passes` are the results
 * of cli_check_run, cli_level_run and cli_level_passes. `shrunk` is the result of cli_fail_shrunk,
 * and `can_write` is that of cli_output_write. */
static struct {
    double share;
    bool can_check, level_runs, level_passes, shrunk, can_write;
} world;
static int written;
static char message[512];

/* These functions replace functions in other source files of the command. */
const cli_column cli_fidelity_columns[] = {{0}};
int cli_complain(int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return status;
}
int cli_fail_library(const char *what) {
    return cli_fail("%s: the library failed", what ? what : "");
}
bool cli_operand_open(const char *text, cli_operand *operand) {
    *operand = (cli_operand){.loaded.matrix = BSMM_INIT(bsmm_matrix)};
    operand->loaded.matrix.rows = operand->loaded.matrix.cols = 1;
    return strcmp(text, "missing") != 0;
}
void cli_operand_close(cli_operand *operand) {
    (void)operand;
}
bool cli_output_differs(const bsmm_file *file, const char *out) {
    (void)file, (void)out;
    return true;
}
bool cli_output_create(cli_output *output, const char *path, const char *dtype, int64_t rows,
                       int64_t cols) {
    (void)output, (void)path, (void)dtype, (void)rows, (void)cols;
    return true;
}
bool cli_output_write(const cli_output *output) {
    (void)output;
    written++;
    return world.can_write;
}
void cli_output_free(cli_output *output) {
    (void)output;
}
bool cli_multiply_on(bench_device **device, const bsmm_matmul_desc *desc, cli_ran *ran) {
    (void)device, (void)desc;
    *ran = (cli_ran){.kernel = "wrong", .seconds = 1};
    return true;
}
void bench_device_close(bench_device *device) {
    (void)device;
}
bool cli_check_run(const bsmm_matmul_desc *desc, cli_check *check) {
    (void)desc;
    *check = (cli_check){.share = world.share};
    return world.can_check;
}
bool cli_level_run(const bsmm_matmul_desc *desc, const char *kernel, cli_multiply *again,
                   void *context, double *level) {
    (void)desc, (void)kernel, (void)again, (void)context;
    *level = 1;
    return world.level_runs;
}
bool cli_level_passes(const char *kernel, double level) {
    (void)kernel, (void)level;
    return world.level_passes;
}
bool cli_fail_shrunk(void) {
    return world.shrunk;
}
void cli_rows_close(cli_rows *rows) {
    (void)rows;
}
void cli_row_text(cli_rows *rows, const char *text) {
    (void)rows, (void)text;
}
void cli_row_integer(cli_rows *rows, int64_t value) {
    (void)rows, (void)value;
}
void cli_row_number(cli_rows *rows, double value, const char *format) {
    (void)rows, (void)value, (void)format;
}
void cli_row_value(cli_rows *rows, json_t *value, const char *format, ...) {
    (void)rows, (void)format;
    json_decref(value);
}
cli_text cli_format_text(bsmm_format format) {
    (void)format;
    return (cli_text){"f32"};
}
cli_text cli_seconds(double seconds) {
    (void)seconds;
    return (cli_text){"1 s"};
}

/* Runs the command. Returns its exit status, after checking that a result is shown only if the
 * command succeeds. */
static int multiply_files(char *a, bool check) {
    values given = defaults;
    given.out = "d.npy";
    given.check = check;
    written = shown = 0;
    message[0] = '\0';
    const int status = cli_matmul.run(&given, (char *[]){a, (char[]){"b"}, NULL}, 2);
    assert_int_equal(shown, status == CLI_OK);
    return status;
}

static void set_right(void) {
    world.share = 0.5;
    world.can_check = world.level_runs = world.level_passes = world.can_write = true;
    world.shrunk = false;
}

static void test_right(void **state) {
    (void)state;
    set_right();
    assert_int_equal(multiply_files((char[]){"a"}, true), CLI_OK);
    assert_int_equal(written, 1);
}

static void expect_refused(const char *mentions) {
    assert_int_equal(multiply_files((char[]){"a"}, true), CLI_FAILED);
    assert_int_equal(written, 0);
    assert_non_null(strstr(message, mentions));
    set_right();
}

/* Tests each reason for which a result is not written. */
static void test_wrong(void **state) {
    (void)state;
    set_right();
    world.share = 1.01;
    expect_refused("the error is 1.01 of the bound");
    world.can_check = false;
    expect_refused("check: the library failed");
    world.level_runs = false;
    expect_refused("");
    world.level_passes = false;
    expect_refused("");
    world.shrunk = true;
    expect_refused("");
}

/* Tests that `bsmm matmul` without --check writes a result although it is wrong, and that the
 * command fails if a file cannot be read or written. */
static void test_unchecked(void **state) {
    (void)state;
    set_right();
    world.share = 1.01;
    assert_int_equal(multiply_files((char[]){"a"}, false), CLI_OK);
    assert_int_equal(written, 1);
    assert_int_equal(multiply_files((char[]){"missing"}, false), CLI_FAILED);
    assert_int_equal(written, 0);
    world.can_write = false;
    assert_int_equal(multiply_files((char[]){"a"}, false), CLI_FAILED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_unchecked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
