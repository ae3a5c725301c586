/* Declares vocabularies, i.e. the words that a metavariable of the help, such as FORMAT or LAYOUT,
 * can stand for. */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "command.h"

/* A vocabulary is a function that returns word number `index`, or NULL after the last word. */
typedef const char *cli_words(uint32_t index);

/* Returns the vocabulary of a metavariable ("FORMAT", "FORMAT..."), or NULL if the metavariable has
 * none. */
cli_words *cli_words_of(const char *metavariable);
/* Tells whether an option with this metavariable may have the value `word`. */
bool cli_words_allow(const char *metavariable, const char *word);
/* Returns a list of the words that a metavariable allows, with a suggestion for the wrong `word`,
 * such as "a, b, c; did you mean b?". The caller frees the text. */
char *cli_words_rule(const char *metavariable, const char *word);
/* Returns a list of the words that a metavariable stands for, such as "a, b, c". The caller frees
 * the text. */
char *cli_words_list(const char *metavariable);
/* Tells whether the list `words`, which spaces separate, contains `word`. */
bool cli_has_word(const char *words, const char *word);
/* Fails with a usage error, which says that the metavariable does not allow the word. */
int cli_usage_word(const char *metavariable, const char *word);

#endif
