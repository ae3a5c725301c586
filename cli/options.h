/* Finds the options among the words of a command line. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "command.h"

size_t cli_option_count(const cli_command *command);
/* Returns "--name", or "-n" for an option with only a letter. */
const char *cli_option_name(const cli_option *option, char *buffer, size_t size);

/* Returns the text of the help about an option. The caller frees the text. */
char *cli_option_help(const cli_option *option);

/* Finds the option that a word of the command line names. The word may have "=..." after the name.
 * Returns NULL if there is no such option. */
const cli_option *cli_option_find(const cli_command *command, const char *word);
/* Tells whether the word names an option whose value is the next word. */
bool cli_takes_value(const cli_command *command, const char *word);

/* Fails with a usage error if the command has no option of the given long name. The message
 * suggests a similar name. */
int cli_options_check(const cli_command *command, int argc, char **argv);

#endif
