/* Completion and the man page, which are generated from the rows of the commands. The hidden
 * commands `bsmm __complete WORD...` and `bsmm __man TEMPLATE` print them. */
#ifndef CLI_GENERATE_H
#define CLI_GENERATE_H

#include "command.h"

/* Prints the words that can complete the last word. If it prints nothing, the shell completes file
 * names. */
int cli_complete(int count, char **words);

/* Prints the man page: the template with its line "@COMMANDS@" replaced. */
int cli_man(const char *template_path);

#endif
