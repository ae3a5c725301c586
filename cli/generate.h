/* What is made from the command rows besides --help: completion and the man page. Both are asked
 * for by hidden first words, `bsmm __complete WORD...` and `bsmm __man TEMPLATE`. */
#ifndef CLI_GENERATE_H
#define CLI_GENERATE_H

#include "command.h"

/* Prints the words that can complete the last one; nothing: file names. */
int cli_complete(int count, char **words);

/* Prints the man page: the template with its line "@COMMANDS@" replaced. */
int cli_man(const char *template_path);

#endif
