/* The words of a command line that are options. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "command.h"

size_t cli_option_count(const cli_command *command);
/* "--name", or "-n" where there is only a letter. */
const char *cli_option_name(const cli_option *option, char *buffer, size_t size);

/* The option that a word names, with "=..." behind it or not; NULL: none. */
const cli_option *cli_option_find(const cli_command *command, const char *word);
/* Whether the word names an option whose value is the next word. */
bool cli_takes_value(const cli_command *command, const char *word);

/* Usage error, with the name that may have been meant, if a long option is none of the command's.
 */
int cli_options_check(const cli_command *command, int argc, char **argv);

#endif
