#include "common.h"
#include "nearest.h"
#include "shrink.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *cli_name = "bsmm";

static char parse_error[1024];

int cli_complain(int status, const char *format, ...) {
    static bool told;
    char message[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    /* Another program shortened an input file while it was mapped. The lost part of the file reads
     * as zeros and may cause further errors, so the program reports only the shortened file. */
    if (status == CLI_FAILED && cli_shrunk()) {
        if (told) return status;
        told = true;
        snprintf(message, sizeof message, "%s: shrank while it was being read", cli_shrunk());
    }
    fprintf(stderr, "%s: %s\n", cli_name, cli_printable(message));
    /* This text is the same as the one that glibc's argp prints after other usage errors. */
    if (status == CLI_USAGE)
        fprintf(stderr, "Try `%s --help' or `%s --usage' for more information.\n", cli_name,
                cli_name);
    return status;
}

void cli_warn(const char *format, ...) {
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: warning: %s\n", cli_name, cli_printable(message));
}

const cli_option *cli_options;

/* Gives the option that sets a field of the library's structs. The library's messages begin with
 * the name of the field, which a user of the command does not know. If several rows have the same
 * field, the first row is used whose option belongs to the running command. */
static const struct {
    const char *field, *option;
} options_of_fields[] = {
    {"device", "device"}, {"family", "family"}, {"format", "format"},
    {"format", "to"},     {"kernel", "kernel"}, {"kind", "output"},
    {"layout", "layout"}, {"path", "output"},   {"recipe", "recipe"},
};

static bool has_option(const char *name) {
    for (const cli_option *option = cli_options; option && (option->name || option->letter);
         option++)
        if (option->name && !strcmp(option->name, name)) return true;
    return false;
}

const char *cli_option_message(const char *message) {
    static char text[1024];
    const size_t length = strcspn(message, ":");
    for (size_t i = 0; i < sizeof options_of_fields / sizeof options_of_fields[0]; i++) {
        const char *field = options_of_fields[i].field, *option = options_of_fields[i].option;
        if (!message[length] || strlen(field) != length || strncmp(field, message, length) ||
            !has_option(option))
            continue;
        snprintf(text, sizeof text, "--%s%s", option, message + length);
        return text;
    }
    return message;
}

const char *cli_reason(bsmm_status status) {
    return status ? cli_option_message(bsmm_error_message()) : NULL;
}

const char *cli_reason_without(const char *field) {
    const char *message = bsmm_error_message();
    size_t length = strlen(field);
    bool begins = !strncmp(message, field, length) && !strncmp(message + length, ": ", 2);
    return begins ? message + length + 2 : message;
}

int cli_fail_library(const char *what) {
    const char *message = cli_option_message(bsmm_error_message());
    return what ? cli_fail("%s: %s", what, message) : cli_fail("%s", message);
}

bool cli_ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

size_t cli_module_length(const char *weight) {
    const char *dropped = cli_ends_with(weight, ".weight") ? ".weight" : "";
    return strlen(weight) - strlen(dropped);
}

void *cli_realloc(void *memory, size_t count, size_t size) {
    size_t bytes;
    void *grown = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes)) grown = realloc(memory, bytes ? bytes : 1);
    if (!grown) exit(cli_fail("no memory for %zu times %zu bytes", count, size));
    return grown;
}

void *cli_alloc(size_t count, size_t size) {
    void *memory = cli_realloc(NULL, count, size);
    memset(memory, 0, count * size);
    return memory;
}

const char *cli_parse_error(void) {
    return parse_error;
}

bool cli_parse_refuse(const char *text, const char *rule) {
    snprintf(parse_error, sizeof parse_error, "value is %.100s; %s", text, rule);
    return false;
}

static bool parse_whole(const char *text, long long most, int64_t *value) {
    char *end, rule[64];
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (end == text || *end || parsed < 0)
        return cli_parse_refuse(text, "must be a whole number, 0 or more");
    snprintf(rule, sizeof rule, "must be at most %lld", most);
    /* strtoll sets errno if the number has more than 63 bits. */
    if (errno || parsed > most) return cli_parse_refuse(text, rule);
    *value = parsed;
    return true;
}

bool cli_parse_size(const char *text, int64_t *value) {
    return parse_whole(text, INT64_MAX, value);
}

bool cli_parse_threads(const char *text, int64_t *value) {
    return parse_whole(text, CLI_MOST_THREADS, value);
}

bool cli_parse_output(const char *text) {
    if (!strcmp(text, "-"))
        return cli_parse_refuse(text, "standard output is not supported; name a file");
    return text[0] != '-' ||
           cli_parse_refuse(text, "begins like an option; write ./ before the name");
}

bool cli_parse_number(const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    if (end == text || *end || !isfinite(*value))
        return cli_parse_refuse(text, "must be a finite number");
    return true;
}

bool cli_parse_format(const char *text, bsmm_format *format) {
    if (!bsmm_format_from_name(text, format)) return true;
    /* The caller puts the option's name before the reason, so this code removes the library's
     * prefix "format: " from the reason. */
    snprintf(parse_error, sizeof parse_error, "%s", cli_reason_without("format"));
    snprintf(parse_error + strlen(parse_error), sizeof parse_error - strlen(parse_error), "%s",
             cli_did_you_mean(cli_words_of("FORMATS"), text).text);
    return false;
}

static const struct {
    const char *name, *a, *b;
} pairs[] = {
    {"mixed", "mxfp8", "mxfp4"},
    {"fp8_groupwise", "fp8_group128", "fp8_block128"},
};

const char *cli_pair_at(uint32_t index) {
    return index < sizeof pairs / sizeof pairs[0] ? pairs[index].name : NULL;
}

bool cli_parse_format_pair(const char *text, cli_format_pair *pair) {
    pair->name = text;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (!strcmp(text, pairs[i].name))
            return cli_parse_format(pairs[i].a, &pair->a) && cli_parse_format(pairs[i].b, &pair->b);
    const char *colon = strchr(text, ':');
    if (!colon) return cli_parse_format(text, &pair->a) && cli_parse_format(text, &pair->b);
    char first[64];
    if (colon - text >= (ptrdiff_t)sizeof first)
        return cli_parse_refuse(text, "must be A:B, two formats");
    memcpy(first, text, (size_t)(colon - text));
    first[colon - text] = '\0';
    return cli_parse_format(first, &pair->a) && cli_parse_format(colon + 1, &pair->b);
}

static cli_text scaled(double value, const char *const *units, int count, const char *suffix) {
    cli_text result;
    int unit = 0;
    while (unit + 1 < count && fabs(value) >= 999.5) {
        value /= 1000;
        unit++;
    }
    int decimals = fabs(value) < 9.995 ? 2 : fabs(value) < 99.95 ? 1 : 0;
    snprintf(result.text, sizeof result.text, "%.*f %s%s", decimals, value, units[unit], suffix);
    return result;
}

cli_text cli_seconds(double seconds) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    return scaled(seconds * 1e9, units, 4, "");
}

cli_text cli_quantity(double value, const char *unit) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    return scaled(value, prefixes, 6, unit);
}
