#include "generate.h"
#include "options.h"
#include "words.h"
#include <stdio.h>
#include <string.h>

static void offer(const char *word, const char *partial) {
    if (!strncmp(word, partial, strlen(partial))) puts(word);
}

static void offer_words(const char *metavariable, const char *partial) {
    cli_words *words = metavariable ? cli_words_of(metavariable) : NULL;
    for (uint32_t i = 0; words && words(i); i++)
        offer(words(i), partial);
}

/* Returns the part of a word after its last '=' or ':', because the shell's completion replaces
 * only this part. */
static const char *last_part(const char *word) {
    const char *part = word;
    for (; *word; word++)
        if (*word == '=' || *word == ':') part = word + 1;
    return part;
}

/* Offers the words for the value of an option. If the value has the form GLOB=TARGET, the words
 * complete only the part after its '='. */
static void offer_value(const cli_option *option, const char *value) {
    if (!strchr(option->arg, '=') || strchr(value, '=')) offer_words(option->arg, last_part(value));
}

static void offer_options(const cli_command *command, const char *partial) {
    char name[64];
    for (size_t i = 0; i < cli_option_count(command); i++) {
        const cli_option *option = &command->options[i];
        if (option->hidden) continue;
        offer(cli_option_name(option, name, sizeof name), partial);
    }
    offer("--help", partial);
}

/* `args` lists the names of a command's arguments, as in "FORMAT CODE...". Returns the name of
 * argument number `index`. The last name also stands for all further arguments. */
static const char *argument_at(const char *args, int index) {
    while (args && index-- > 0) {
        const char *next = strchr(args, ' ');
        if (!next) break;
        args = next + 1;
    }
    return args ? args + strspn(args, "[") : NULL;
}

static int count_arguments(const cli_command *command, int count, char **words) {
    int arguments = 0;
    for (int i = 0; i < count; i++) {
        if (cli_takes_value(command, words[i]))
            i++;
        else if (words[i][0] != '-')
            arguments++;
    }
    return arguments;
}

static void complete_command(const cli_command *command, int count, char **words) {
    const char *partial = words[count - 1], *previous = count > 1 ? words[count - 2] : "";
    const cli_option *assigned = strchr(partial, '=') ? cli_option_find(command, partial) : NULL;
    if (assigned)
        offer_value(assigned, strchr(partial, '=') + 1);
    else if (cli_takes_value(command, previous))
        offer_value(cli_option_find(command, previous), partial);
    else if (partial[0] == '-')
        offer_options(command, partial);
    else
        offer_words(argument_at(command->args, count_arguments(command, count - 1, words)),
                    last_part(partial));
}

int cli_complete(int count, char **words) {
    if (count == 0) return CLI_OK;
    const cli_command *command = cli_command_find(words[0]);
    if (count == 1 || (count == 2 && !strcmp(words[0], "help")))
        offer_words("COMMAND", words[count - 1]);
    else if (command)
        complete_command(command, count - 1, words + 1);
    if (count == 1) {
        offer("help", words[0]);
        offer("--help", words[0]);
        offer("--version", words[0]);
    }
    return CLI_OK;
}
