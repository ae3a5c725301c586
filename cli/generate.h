/* Prints the shell completion and the man page, which are generated from the descriptions of the
 * commands (command.h). The hidden commands `bsmm __complete WORD...` and `bsmm __man TEMPLATE`
 * print them. */
#ifndef CLI_GENERATE_H
#define CLI_GENERATE_H

#include "command.h"

/* Prints the words that can complete the last word of a command line. If it prints nothing, the
 * shell completes file names. */
int cli_complete(int count, char **words);

/* Prints the man page, i.e. the text of the template file in which the descriptions of all commands
 * replace the line "@COMMANDS@". */
int cli_man(const char *template_path);

#endif
