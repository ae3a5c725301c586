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

/* Replaces control characters: names in files must not steer the terminal. Returns text. */
char *cli_printable(char *text);

/* Memory that is there or ends the program with a message; sizes must not overflow. */
void *cli_alloc(size_t count, size_t size);
void *cli_realloc(void *memory, size_t count, size_t size);

/* Each returns false, having written why into cli_parse_error(), if the text is not one. */
bool cli_parse_size(const char *text, int64_t *value);
bool cli_parse_number(const char *text, double *value);
bool cli_parse_format(const char *text, bsmm_format *format);
bool cli_parse_format_pair(const char *text, cli_format_pair *pair); /* "A", "A:B", "mixed" */
const char *cli_parse_error(void);
const char *cli_pair_at(uint32_t index); /* the pairs that have a name; NULL past the last */

/* "812 ns", "3.25 ms", ... and "12.3 MB"; the text lives in `buffer`. */
typedef struct cli_text {
    char text[64];
} cli_text;
cli_text cli_seconds(double seconds);
cli_text cli_quantity(double value, const char *unit);

#endif
