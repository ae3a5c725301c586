/* Tests the progress bar of the command: when it is drawn, and what it shows. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct timespec fake_time;
static int fake_terminal;
static FILE *printed;

static int read_fake_time(clockid_t clock, struct timespec *time) {
    (void)clock;
    *time = fake_time;
    return 0;
}

static int is_fake_terminal(int file) {
    return file == STDERR_FILENO && fake_terminal;
}

/* The test includes a source file of the command bsmm, because no library contains this code. */
#define clock_gettime read_fake_time
#define isatty        is_fake_terminal
#undef stderr
#define stderr printed
#include "../../cli/progress.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static char *text;
static size_t length;
static int started; /* `started` is the time in seconds at which the progress bar begins. */

/* Sets the clock to the given time after the start of the progress bar. */
static void set_time(int milliseconds) {
    fake_time = (struct timespec){started + milliseconds / 1000, milliseconds % 1000 * 1000000};
}

static cli_progress begin(int at, uint64_t total) {
    started = at;
    printed = open_memstream(&text, &length);
    fake_terminal = 1;
    set_time(0);
    return cli_progress_begin("compare", total);
}

static void end(void) {
    fclose(printed);
    free(text);
}

/* Sets the clock, adds an amount to the progress, and checks what the bar prints. */
static void check_add(cli_progress *progress, int milliseconds, uint64_t amount,
                      const char *wanted) {
    const size_t before = length;
    set_time(milliseconds);
    cli_progress_add(progress, amount);
    fflush(printed);
    assert_string_equal(text + before, wanted);
}

static void test_times_and_shares(void **state) {
    (void)state;
    cli_progress progress = begin(5, 40);
    fflush(printed);
    check_add(&progress, 250, 10, "");
    check_add(&progress, 375, 10, "\rcompare [###############               ]  50%\033[K");
    check_add(&progress, 437, 2, "");
    check_add(&progress, 500, 8, "\rcompare [######################        ]  75%\033[K");
    check_add(&progress, 3000, 0,
              "\rcompare [######################        ]  75%  1 s left\033[K");
    check_add(&progress, 8000, 2,
              "\rcompare [########################      ]  80%  2 s left\033[K");
    /* An amount beyond the total does not make the progress bar longer. */
    check_add(&progress, 9200, 16, "\rcompare [##############################] 100%\033[K");
    check_add(&progress, 9400, 6, "\rcompare [##############################] 100%\033[K");
    const size_t before = length;
    cli_progress_end(&progress);
    fflush(printed);
    assert_string_equal(text + before, "\r\033[K");
    end();
}

/* Tests that the progress bar is erased, even if the command ends within a second. */
static void test_short(void **state) {
    (void)state;
    cli_progress progress = begin(0, 2);
    fflush(printed);
    check_add(&progress, 375, 1, "\rcompare [###############               ]  50%\033[K");
    const size_t before = length;
    cli_progress_end(&progress);
    fflush(printed);
    assert_string_equal(text + before, "\r\033[K");
    end();
}

/* Tests a first update without progress. The bar then cannot estimate the remaining time, so it
 * shows none. */
static void test_nothing_done(void **state) {
    (void)state;
    cli_progress progress = begin(5, 0);
    fflush(printed);
    check_add(&progress, 2000, 0, "\rcompare [                              ]   0%\033[K");
    check_add(&progress, 2200, 1, "\rcompare [##############################] 100%\033[K");
    end();
}

static void test_silent(void **state) {
    (void)state;
    cli_progress progress = begin(5, 4);
    fflush(printed);
    check_add(&progress, 100, 4, "");
    cli_progress_end(&progress);
    fake_terminal = 0;
    progress = cli_progress_begin("compare", 4);
    check_add(&progress, 5000, 1, "");
    cli_progress_end(&progress);
    fflush(printed);
    assert_int_equal(length, 0);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_and_shares),
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_nothing_done),
        cmocka_unit_test(test_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
