#include "options.h"
#include "common.h"
#include "nearest.h"
#include "words.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t cli_option_count(const cli_command *command) {
    size_t count = 0;
    while (command->options && (command->options[count].name || command->options[count].letter))
        count++;
    return count;
}

const char *cli_option_name(const cli_option *option, char *buffer, size_t size) {
    if (option->name)
        snprintf(buffer, size, "--%s", option->name);
    else
        snprintf(buffer, size, "-%c", option->letter);
    return buffer;
}

char *cli_option_help(const cli_option *option) {
    char *words = option->lists_words ? cli_words_list(option->arg) : NULL;
    size_t size = strlen(option->help) + (words ? strlen(words) : 0) + sizeof ":  (required)";
    char *text = cli_alloc(size, 1);
    snprintf(text, size, "%s%s%s%s", option->help, words ? ": " : "", words ? words : "",
             option->required ? " (required)" : "");
    free(words);
    return text;
}

const cli_option *cli_option_find(const cli_command *command, const char *word) {
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < cli_option_count(command); i++) {
        const cli_option *option = &command->options[i];
        if (word[0] == '-' && word[1] && word[1] == option->letter && length == 2) return option;
        if (option->name && length > 2 && !strncmp(word, "--", 2) &&
            strlen(option->name) == length - 2 && !strncmp(word + 2, option->name, length - 2))
            return option;
    }
    return NULL;
}

bool cli_takes_value(const cli_command *command, const char *word) {
    const cli_option *option = cli_option_find(command, word);
    return option && option->arg && !strchr(word, '=');
}

/* Tells whether the first `length` characters of a text begin the name of a long option, because
 * users may shorten long options. argp adds the options "help" and "usage". */
static bool begins_option(const cli_command *command, const char *name, size_t length) {
    static const char *const added[] = {"help", "usage"};
    for (size_t i = 0; i < sizeof added / sizeof added[0]; i++)
        if (!strncmp(added[i], name, length)) return true;
    for (size_t i = 0; i < cli_option_count(command); i++)
        if (command->options[i].name && !strncmp(command->options[i].name, name, length))
            return true;
    return false;
}

static int refuse_option(const cli_command *command, const char *name, size_t length) {
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), name);
    cli_nearest nearest = {.word = word};
    for (size_t i = 0; i < cli_option_count(command); i++)
        if (command->options[i].name && !command->options[i].hidden)
            cli_nearest_try(&nearest, command->options[i].name);
    return cli_usage("unrecognized option '--%s'%s", word,
                     cli_did_you_mean_this(&nearest, "--").text);
}

int cli_options_check(const cli_command *command, int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        const char *name = argv[i] + 2;
        size_t length = strncmp(argv[i], "--", 2) ? 0 : strcspn(name, "=");
        if (length && !begins_option(command, name, length))
            return refuse_option(command, name, length);
        if (cli_takes_value(command, argv[i])) i++;
    }
    return CLI_OK;
}
