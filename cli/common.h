/* Declares functions that all commands share. They print messages, allocate memory, and parse
 * words of the command line. */
#ifndef CLI_COMMON_H
#define CLI_COMMON_H

#include "command.h"

/* `cli_name` is the name of the running command, which begins each message. */
extern const char *cli_name;

/* Prints "bsmm COMMAND: message" to stderr and returns the status. For a usage error it also
 * mentions --help. */
int cli_complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define cli_fail(...)  cli_complain(CLI_FAILED, __VA_ARGS__)
#define cli_usage(...) cli_complain(CLI_USAGE, __VA_ARGS__)
/* `cli_options` holds the options of the running command, or is NULL. An empty entry ends the
 * list. */
extern const cli_option *cli_options;
/* The library's messages begin with the name of a field. If an option of the running command sets
 * this field, returns the message with the option's name instead. The text is valid until the next
 * call. */
const char *cli_option_message(const char *message);

/* Prints the library's error message and returns CLI_FAILED. If `what` is not NULL, the function
 * prints `what`, for example the name of a file, before the message. */
int cli_fail_library(const char *what);
/* Prints "bsmm COMMAND: warning: message" to stderr. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns NULL for BSMM_OK, else the library's message, as cli_option_message changes it. */
const char *cli_reason(bsmm_status status);
/* Returns the library's last error message without the name `field` and ": " at its start. */
const char *cli_reason_without(const char *field);

/* Replaces invalid UTF-8 and dangerous characters in a text by '?'. Names in files come from
 * unknown sources. They may contain control characters, direction marks or zero-width characters,
 * which control the terminal or hide text. Returns `text`, which may have become shorter
 * (printable.c). */
char *cli_printable(char *text);
/* Tells whether cli_printable would leave the text unchanged. */
bool cli_is_printable(const char *text);

/* Tells whether a text ends with `end`. */
bool cli_ends_with(const char *text, const char *end);
/* Returns the length of the name of a weight's module, i.e. of the weight's name without
 * ".weight". */
size_t cli_module_length(const char *weight);

/* These functions allocate memory. If there is not enough, the program ends with a message. The
 * product of the two sizes must not overflow. */
void *cli_alloc(size_t count, size_t size);
void *cli_realloc(void *memory, size_t count, size_t size);

/* These functions parse one word of the command line. If the word is invalid, they return false and
 * store the reason for cli_parse_error(). */
bool cli_parse_size(const char *text, int64_t *value);
bool cli_parse_threads(const char *text, int64_t *value);
bool cli_parse_output(const char *text); /* Accepts the name of a file that can be written. */
bool cli_parse_number(const char *text, double *value);
bool cli_parse_format(const char *text, bsmm_format *format);
/* Accepts a pair of formats, i.e. "A" for both operands, "A:B" or "mixed". */
bool cli_parse_format_pair(const char *text, cli_format_pair *pair);
const char *cli_parse_error(void);
/* Stores the message "value is TEXT; RULE", which cli_parse_error then returns. Returns false, so
 * that a parser can return the result. */
bool cli_parse_refuse(const char *text, const char *rule);
/* Returns the name of entry `index` in the list of named pairs of formats, such as "mixed", or NULL
 * past the last entry. */
const char *cli_pair_at(uint32_t index);

/* Holds a short text. cli_seconds formats a time ("812 ns", "3.25 ms"), and cli_quantity formats a
 * size ("12.3 MB"). */
typedef struct cli_text {
    char text[160];
} cli_text;
cli_text cli_seconds(double seconds);
cli_text cli_quantity(double value, const char *unit);

#endif
