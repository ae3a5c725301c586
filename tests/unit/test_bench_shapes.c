/* Tests the list of shapes that `bsmm bench` measures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The test includes a source file of the command bsmm, because no library contains this code. */
#include "../../cli/bench_shapes.c" /* NOLINT(bugprone-suspicious-include) */

int64_t cli_bench_challenge_shapes(void) {
    return 6;
}

void cli_bench_challenge_shape_at(int64_t index, int64_t sizes[3]) {
    sizes[0] = index, sizes[1] = 70 + index, sizes[2] = 500;
}

static void expect_shape(const cli_bench_values *values, int64_t index, int64_t m, int64_t n,
                         int64_t k) {
    int64_t sizes[3] = {-1, -1, -1};
    cli_bench_shape_at(values, index, sizes);
    assert_int_equal(sizes[0], m);
    assert_int_equal(sizes[1], n);
    assert_int_equal(sizes[2], k);
}

static void test_ranges(void **state) {
    (void)state;
    const cli_bench_values one = {.m_range = {5, 5}, .k_range = {32, 32}, .k_step = 1, .n = 9};
    assert_int_equal(cli_bench_shapes(&one), 1);
    expect_shape(&one, 0, 5, 9, 32);
    /* M doubles up to the end of its range. For each M, K takes all its values. */
    const cli_bench_values many = {.m_range = {3, 12}, .k_range = {64, 160}, .k_step = 32, .n = 7};
    assert_int_equal(cli_bench_shapes(&many), 12);
    expect_shape(&many, 0, 3, 7, 64);
    expect_shape(&many, 3, 3, 7, 160);
    expect_shape(&many, 4, 6, 7, 64);
    expect_shape(&many, 11, 12, 7, 160);
    const cli_bench_values short_of = {
        .m_range = {3, 11}, .k_range = {64, 159}, .k_step = 32, .n = 7};
    assert_int_equal(cli_bench_shapes(&short_of), 6);
    expect_shape(&short_of, 5, 6, 7, 128);
}

static void test_challenge(void **state) {
    (void)state;
    const cli_bench_values all = {
        .all_shapes = true, .m_range = {1, 1}, .k_range = {32, 32}, .k_step = 1, .n = 9};
    assert_int_equal(cli_bench_shapes(&all), 6);
    expect_shape(&all, 0, 0, 70, 500);
    expect_shape(&all, 5, 5, 75, 500);
}

static void expect_titles(const cli_bench_values *values, int threads, const char *title,
                          const char *subtitle) {
    const cli_bench_titles titles = cli_bench_titles_of(values, "cpu", threads);
    assert_string_equal(titles.title, title);
    if (strncmp(titles.subtitle, subtitle, strlen(subtitle)) != 0)
        fail_msg("the subtitle is \"%s\"", titles.subtitle);
    /* The subtitle ends with the date. */
    int year, month, day, end = 0;
    sscanf(titles.subtitle + strlen(subtitle), "%*u.%*u.%*u, %4d-%2d-%2d%n", &year, &month, &day,
           &end);
    assert_true(end && !titles.subtitle[strlen(subtitle) + (size_t)end]);
}

static void test_titles(void **state) {
    (void)state;
    cli_bench_values values = {
        .m_range = {3, 3}, .k_range = {64, 160}, .k_step = 32, .n = 7, .formats.name = "mxfp4"};
    expect_titles(&values, 1, "bsmm bench: mxfp4, N=7, M=3", "cpu, 1 thread, bsmm ");
    values.m_range[1] = 12;
    expect_titles(&values, 2, "bsmm bench: mxfp4, N=7, K=64", "cpu, 2 threads, bsmm ");
    expect_titles(&values, 0, "bsmm bench: mxfp4, N=7, K=64", "cpu, bsmm ");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges),
                                       cmocka_unit_test(test_challenge),
                                       cmocka_unit_test(test_titles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
