/* Tests the geometric means that `bsmm bench --challenge` prints after its six shapes. The test
 * replaces the functions that print rows, so that it can compare the cells. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The test includes a source file of the command bsmm, because no library contains this code. */
#include "../../cli/bench_challenge.c" /* NOLINT(bugprone-suspicious-include) */

/* `cells` holds the numbers of the printed row in order. A missing number is NAN. */
static double cells[16];
static size_t cell_count;
static bool was_opened;

static void add_cell(double value) {
    assert_true(cell_count < 16);
    cells[cell_count++] = value;
}

cli_rows *cli_rows_open(const cli_column *columns, bool json) {
    assert_ptr_equal(columns, cli_bench_mean_columns);
    assert_true(json);
    was_opened = true;
    return NULL;
}

void cli_row_integer(cli_rows *rows, int64_t value) {
    (void)rows;
    add_cell((double)value);
}

void cli_row_number(cli_rows *rows, double value, const char *format) {
    (void)rows;
    (void)format;
    add_cell(value);
}

void cli_row_value(cli_rows *rows, json_t *value, const char *format, ...) {
    (void)rows;
    (void)format;
    add_cell(json_is_null(value) ? NAN : json_number_value(value));
    json_decref(value);
}

void cli_row_text(cli_rows *rows, const char *text) {
    (void)rows;
    assert_string_equal(text, "measured by others on an MI300X");
}

void cli_rows_close(cli_rows *rows) {
    (void)rows;
}

int64_t cli_bench_shapes(const cli_bench_values *values) {
    (void)values;
    return SHAPES;
}

void cli_bench_shape_at(const cli_bench_values *values, int64_t index, int64_t sizes[3]) {
    (void)values;
    cli_bench_challenge_shape_at(index, sizes);
}

const bench_device_kind *bench_device_kind_of(const char *device) {
    static const bench_device_kind kind = {.name = "gpu"};
    (void)device;
    return &kind;
}

const char *bench_device_time_note(const bench_device_kind *kind) {
    (void)kind;
    return "";
}

/* The functions from here on belong to other parts of bench_challenge.c. This test does not call
 * them. */

void cli_bench_job_cells(const cli_bench_session *session, cli_rows *rows, const char *kernel) {
    (void)session, (void)rows, (void)kernel;
    fail();
}

void cli_bench_share_cell(cli_rows *rows, double share, const cli_bench_trust *trust) {
    (void)rows, (void)share, (void)trust;
    fail();
}

void cli_bench_trust_cells(cli_rows *rows, const cli_bench_trust *trust) {
    (void)rows, (void)trust;
    fail();
}

int cli_complain(int status, const char *format, ...) {
    (void)format;
    return status;
}

/* The result of each shape is longer than a bench_result, like those of products on a GPU. */
typedef struct long_result {
    bench_result first;
    char more[40];
} long_result;

static bool is_near(double value, double wanted) {
    return fabs(value - wanted) < 1e-12 * wanted;
}

static void test_means(void **state) {
    (void)state;
    long_result results[SHAPES] = {0};
    const cli_bench_values values = {.json = true, .device = "gpu"};
    const cli_bench_parts parts = {.result_bytes = sizeof results[0]};
    cli_bench_session session = {.values = &values, .parts = &parts, .results = results};
    double seconds = 1, light = 1, published = 1;
    for (size_t i = 0; i < SHAPES; i++) {
        results[i].first.seconds = 1e-5 * (double)(i + 1);
        results[i].first.light_seconds = 2e-6 * (double)(i * i + 1);
        seconds *= results[i].first.seconds * 1e5;
        light *= results[i].first.light_seconds * 1e5;
        published *= shapes[i].published * 1e-1;
    }
    seconds = pow(seconds, 1. / SHAPES) * 1e-5;
    light = pow(light, 1. / SHAPES) * 1e-5;
    published = pow(published, 1. / SHAPES) * 1e-5;

    session.kept = SHAPES - 1; /* A shape failed, so there are no means. */
    cli_bench_print_challenge_means(&session);
    session.kept = 0;
    cli_bench_print_challenge_means(&session);
    assert_false(was_opened);

    session.kept = SHAPES;
    cli_bench_print_challenge_means(&session);
    assert_int_equal(cell_count, 5);
    assert_true(cells[0] == SHAPES);
    assert_true(is_near(cells[1], seconds));
    assert_true(is_near(cells[2], light));
    assert_true(is_near(cells[3], light / seconds));
    assert_true(is_near(cells[4], published));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_means)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
