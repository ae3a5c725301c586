/* Tests the messages of the command: their text, and the status that the functions return. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *printed;

/* The test includes a source file of the command bsmm, because no library contains this code. */
#undef stderr
#define stderr printed
#include "../../cli/common.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char *shrunk;

/* These functions replace functions in other source files of the command. */
const char *cli_shrunk(void) {
    return shrunk;
}
char *cli_printable(char *text) {
    return text;
}
cli_words *cli_words_of(const char *metavariable) {
    (void)metavariable;
    return NULL;
}
cli_text cli_did_you_mean(cli_words *words, const char *word) {
    (void)words, (void)word;
    return (cli_text){{0}};
}

/* Calls cli_complain and checks the status that it returns and the text that it prints. */
static void check(int status, const char *message, const char *expected) {
    char *text;
    size_t length;
    printed = open_memstream(&text, &length);
    assert_int_equal(cli_complain(status, "%s", message), status);
    fclose(printed);
    assert_string_equal(text, expected);
    free(text);
}

static void test_failure(void **state) {
    (void)state;
    check(CLI_FAILED, "a.npy: is empty", "bsmm: a.npy: is empty\n");
}

static void test_usage(void **state) {
    (void)state;
    check(CLI_USAGE, "--device: value is tpu",
          "bsmm: --device: value is tpu\n"
          "Try `bsmm --help' or `bsmm --usage' for more information.\n");
}

/* Tests the name of a field at the beginning of a message of the library. If the running command
 * has an option for this field, the message names the option instead. */
static void test_option_message(void **state) {
    (void)state;
    static const cli_option options[] = {{.name = "to"}, {.letter = 'x'}, {.name = "device"}, {0}};
    assert_string_equal(cli_option_message("device: x: y"), "device: x: y");
    cli_options = options;
    assert_string_equal(cli_option_message("device: x: y"), "--device: x: y");
    assert_string_equal(cli_option_message("format: x"), "--to: x");
    assert_string_equal(cli_option_message("family: x"), "family: x");
    assert_string_equal(cli_option_message("device"), "device");
    assert_string_equal(cli_option_message("devices: x"), "devices: x");
    assert_string_equal(cli_option_message("a device: x"), "a device: x");
    cli_options = NULL;
}

/* Tests messages after an input file has shrunk. The lost part of the file reads as zeros, which
 * may cause further failures, so only one message is printed. Each failure still returns
 * CLI_FAILED. */
static void test_shrunk_file(void **state) {
    (void)state;
    shrunk = "a.npy";
    check(CLI_FAILED, "b: value is 0", "bsmm: a.npy: shrank while it was being read\n");
    check(CLI_FAILED, "c: value is 0", "");
    check(CLI_FAILED, "d: value is 0", "");
    shrunk = NULL;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failure),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_option_message),
        cmocka_unit_test(test_shrunk_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
