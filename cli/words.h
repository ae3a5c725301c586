/* The vocabularies of metavariables: the names that FORMAT, LAYOUT and so on can stand for. */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "command.h"

/* A vocabulary: returns word number `index`, or NULL past the last. */
typedef const char *cli_words(uint32_t index);

/* Returns the vocabulary of a metavariable ("FORMAT", "FORMAT..."), or NULL if it has none. */
cli_words *cli_words_of(const char *metavariable);
/* Tells whether an option with that metavariable may have this value. */
bool cli_words_allow(const char *metavariable, const char *word);
/* Returns the rule for words of a metavariable and a suggestion for the wrong `word`: "a, b, c; did
 * you mean b?". The caller frees it. */
char *cli_words_rule(const char *metavariable, const char *word);
/* Fails with a usage error: the word is not in the vocabulary of the metavariable. */
int cli_usage_word(const char *metavariable, const char *word);

#endif
