/* What all commands share: messages, memory, and the reading of words. */
#ifndef CLI_COMMON_H
#define CLI_COMMON_H

#include "command.h"

/* The command that runs, for messages. */
extern const char *cli_name;

/* Prints "bsmm COMMAND: message" to stderr, for usage errors with a hint at --help, and returns the
 * status. */
int cli_complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define cli_fail(...)  cli_complain(CLI_FAILED, __VA_ARGS__)
#define cli_usage(...) cli_complain(CLI_USAGE, __VA_ARGS__)
/* As cli_fail, with the library's message after `what` ("FILE", or NULL). */
int cli_fail_library(const char *what);
/* Prints "bsmm COMMAND: warning: message" to stderr. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* NULL for BSMM_OK, else the library's message. */
const char *cli_reason(bsmm_status status);
/* The library's message without the "field: " that it may begin with. */
const char *cli_reason_without(const char *field);

/* Puts '?' in the place of what is not UTF-8 and of characters that steer the terminal or hide
 * (control characters, marks of direction, zero-width ones): names in files are anybody's. Returns
 * text, which may have become shorter. (printable.c) */
char *cli_printable(char *text);
/* Whether cli_printable would leave it as it is. */
bool cli_is_printable(const char *text);

/* Memory that is there or ends the program with a message; sizes must not overflow. */
void *cli_alloc(size_t count, size_t size);
void *cli_realloc(void *memory, size_t count, size_t size);

/* Each returns false, having written why into cli_parse_error(), if the text is not one. */
bool cli_parse_size(const char *text, int64_t *value);
bool cli_parse_threads(const char *text, int64_t *value);
bool cli_parse_output(const char *text); /* the name of a file that can be written */
bool cli_parse_number(const char *text, double *value);
bool cli_parse_format(const char *text, bsmm_format *format);
bool cli_parse_format_pair(const char *text, cli_format_pair *pair); /* "A", "A:B", "mixed" */
const char *cli_parse_error(void);
const char *cli_pair_at(uint32_t index); /* the pairs that have a name; NULL past the last */

/* "812 ns", "3.25 ms", ... and "12.3 MB"; the text lives in `buffer`. */
typedef struct cli_text {
    char text[160];
} cli_text;
cli_text cli_seconds(double seconds);
cli_text cli_quantity(double value, const char *unit);

#endif
