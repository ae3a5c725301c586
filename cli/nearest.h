/* Suggests a known word for a misspelled word. */
#ifndef CLI_NEAREST_H
#define CLI_NEAREST_H

#include "common.h"
#include "words.h"

/* Returns the edit distance of two words. It is the number of edits that turn one word into the
 * other, where an edit inserts, removes or replaces a letter, or swaps it with the next one. If a
 * word has more than 127 letters, the distance counts as infinite. */
unsigned cli_distance(const char *a, const char *b);

/* Holds the known word that is nearest to a misspelled word. Only words that are similar enough
 * count. */
typedef struct cli_nearest {
    const char *word; /* `word` is the misspelled word that the user wrote. */
    const char *best; /* `best` is the best known word so far, or NULL if none is similar. */
    unsigned distance;
} cli_nearest;
void cli_nearest_try(cli_nearest *nearest, const char *candidate);

/* These functions return "; did you mean mxfp4?" with the most similar word, or "" if no word is
 * similar. */
cli_text cli_did_you_mean(cli_words *words, const char *word);
cli_text cli_did_you_mean_this(const cli_nearest *nearest, const char *prefix);

#endif
