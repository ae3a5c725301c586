/* The vocabularies behind metavariables: the names that FORMAT, LAYOUT, ... can be. */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "command.h"

/* The word of an index, NULL past the last. */
typedef const char *cli_words(uint32_t index);

/* The vocabulary of a metavariable ("FORMAT", "FORMAT..."); NULL if it has none. */
cli_words *cli_words_of(const char *metavariable);
/* Whether an option of that metavariable may have this value. */
bool cli_words_allow(const char *metavariable, const char *word);
/* What a word of that metavariable must be one of, and what the wrong `word` may stand for:
 * "a, b, c; did you mean b?". The caller frees it. */
char *cli_words_rule(const char *metavariable, const char *word);
/* Usage error: the word is not in the vocabulary of the metavariable. */
int cli_usage_word(const char *metavariable, const char *word);

#endif
