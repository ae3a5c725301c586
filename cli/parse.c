/* Parses a command line. glibc's argp does the parsing, prints --help and reports usage errors. */
#include "common.h"
#include "fidelity.h"
#include "options.h"
#include "whole.h"
#include "words.h"
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_KEY = 0x100 }; /* An option without a letter has the key FIRST_KEY plus its index. */

typedef struct parse {
    const cli_command *command;
    char *values;
    bool *seen;
    char **args;
    int arg_count;
} parse;

static int key_of(const cli_command *command, size_t row) {
    int letter = command->options[row].letter;
    return letter ? letter : FIRST_KEY + (int)row;
}

/* Prints a usage error and exits. The function argp_error is not used for this, because it would
 * print the user's text unchanged, with any characters that control the terminal. */
#define refuse(...) exit(cli_usage(__VA_ARGS__))

static bool check_word(const cli_option *option, const char *text) {
    char name[64];
    if (!option->arg || cli_words_allow(option->arg, text)) return true;
    char *rule = cli_words_rule(option->arg, text);
    int status = cli_usage("%s: value is %s; must be one of %s",
                           cli_option_name(option, name, sizeof name), text, rule);
    free(rule);
    exit(status);
}

static void append(cli_list *list, const char *item) {
    list->items = cli_realloc(list->items, list->count + 1, sizeof *list->items);
    list->items[list->count++] = item;
}

/* Returns the second word of an option that takes two words. argp knows only options with one
 * word. */
static char *next_word(struct argp_state *state) {
    return state->next < state->argc ? state->argv[state->next++] : "";
}

static bool store(const cli_option *option, void *field, char *text, struct argp_state *state) {
    int64_t *range = field;
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)field = true;
        return true;
    case CLI_TEXT:
        *(const char **)field = text;
        return check_word(option, text);
    case CLI_OUTPUT:
        *(const char **)field = text;
        return cli_parse_output(text);
    case CLI_THREADS:
        return cli_parse_threads(text, field);
    case CLI_SIZE:
        return cli_parse_size(text, field);
    case CLI_NUMBER:
        return cli_parse_number(text, field);
    case CLI_FORMAT:
        return cli_parse_format(text, field);
    case CLI_WEIGHT_FORMAT:
        return cli_parse_weight_format(text, field);
    case CLI_FORMAT_PAIR:
        return cli_parse_format_pair(text, field);
    case CLI_RANGE:
        return cli_parse_size(text, &range[0]) && cli_parse_size(next_word(state), &range[1]);
    case CLI_LIST:
        append(field, text);
        return true;
    }
    return false;
}

static void check_complete(const parse *parsed) {
    const cli_command *command = parsed->command;
    char name[64];
    for (size_t i = 0; i < cli_option_count(command); i++)
        if (command->options[i].required && !parsed->seen[i])
            refuse("%s is missing", cli_option_name(&command->options[i], name, sizeof name));
    if (parsed->arg_count < command->min_args) refuse("expected %s", command->args);
    if (command->max_args >= 0 && parsed->arg_count > command->max_args)
        refuse("unexpected argument '%s'", parsed->args[command->max_args]);
}

static error_t parse_key(int key, char *arg, struct argp_state *state) {
    parse *parsed = state->input;
    const cli_command *command = parsed->command;
    char name[64];
    if (key == ARGP_KEY_ARG) {
        parsed->args[parsed->arg_count++] = arg;
        return 0;
    }
    if (key == ARGP_KEY_END) check_complete(parsed);
    for (size_t i = 0; i < cli_option_count(command); i++) {
        const cli_option *option = &command->options[i];
        if (key_of(command, i) != key) continue;
        if (!store(option, parsed->values + option->offset, arg, state))
            refuse("%s: %s", cli_option_name(option, name, sizeof name), cli_parse_error());
        parsed->seen[i] = true;
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

static char *join_text(const cli_command *command) {
    const char *text = command->text ? command->text : "";
    const char *examples = command->examples ? command->examples : "";
    size_t size = strlen(command->summary) + strlen(text) + strlen(examples) + 32;
    char *doc = cli_alloc(size, 1);
    snprintf(doc, size, "%s.%s%s\v%s%s", command->summary, *text ? "\n\n" : "", text,
             *examples ? "Examples:\n" : "", examples);
    return doc;
}

static void free_values(const parse *parsed) {
    const cli_command *command = parsed->command;
    for (size_t i = 0; i < cli_option_count(command); i++)
        if (command->options[i].kind == CLI_LIST)
            free(((cli_list *)(void *)(parsed->values + command->options[i].offset))->items);
    free(parsed->values);
}

/* Returns the help of an option. argp frees the returned text if it is not the original text. */
static char *help_of(int key, const char *text, void *input) {
    const parse *parsed = input;
    for (size_t i = 0; parsed && i < cli_option_count(parsed->command); i++)
        if (key_of(parsed->command, i) == key) return cli_option_help(&parsed->command->options[i]);
    return (char *)(uintptr_t)text;
}

static struct argp make_argp(const cli_command *command) {
    size_t count = cli_option_count(command);
    struct argp_option *options = cli_alloc(count + 1, sizeof *options);
    for (size_t i = 0; i < count; i++) {
        const cli_option *option = &command->options[i];
        options[i] = (struct argp_option){.name = option->name,
                                          .key = key_of(command, i),
                                          .arg = option->arg,
                                          .flags = option->hidden ? OPTION_HIDDEN : 0,
                                          .doc = option->help};
    }
    return (struct argp){.options = options,
                         .parser = parse_key,
                         .args_doc = command->args,
                         .doc = join_text(command),
                         .help_filter = help_of};
}

static void free_argp(struct argp *argp) {
    free((void *)argp->options);
    free((void *)argp->doc);
}

/* Puts a space before each negative number, so that argp does not read it as an option. strtod
 * skips the space when the number is parsed later. */
static void protect_negative_numbers(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        char *end;
        if (argv[i][0] != '-' || !argv[i][1]) continue;
        strtod(argv[i], &end);
        if (*end) continue;
        char *copy = cli_alloc(strlen(argv[i]) + 2, 1);
        copy[0] = ' ';
        argv[i] = strcpy(copy + 1, argv[i]) - 1;
    }
}

int cli_command_run(const cli_command *command, int argc, char **argv) {
    argp_err_exit_status = CLI_USAGE;
    cli_name = argv[0];
    cli_options = command->options;
    if (cli_options_check(command, argc, argv)) return CLI_USAGE;
    if (command->takes_negative_numbers) protect_negative_numbers(argc, argv);
    struct argp argp = make_argp(command);
    parse parsed = {.command = command,
                    .values = cli_alloc(1, command->values_size + 1),
                    .seen = cli_alloc(cli_option_count(command) + 1, sizeof(bool)),
                    .args = cli_alloc((size_t)argc + 1, sizeof(char *))};
    if (command->defaults) memcpy(parsed.values, command->defaults, command->values_size);
    argp_parse(&argp, argc, argv, 0, NULL, &parsed);
    free_argp(&argp);
    free(parsed.seen);
    int status = cli_fidelity_run(command, parsed.values, parsed.args, parsed.arg_count);
    free_values(&parsed);
    free(parsed.args);
    return status;
}
