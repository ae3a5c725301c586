/* Suggests the word that a misspelt one may have been meant to be. */
#ifndef CLI_NEAREST_H
#define CLI_NEAREST_H

#include "common.h"
#include "words.h"

/* How many letters must be inserted, left out, replaced or swapped with the next to make one word
 * of the other; words of more than 127 letters are infinitely far. */
unsigned cli_distance(const char *a, const char *b);

/* The candidate that is nearest to a word, of those that may have been meant. */
typedef struct cli_nearest {
    const char *word; /* what was written */
    const char *best; /* NULL: nothing so far is near */
    unsigned distance;
} cli_nearest;
void cli_nearest_try(cli_nearest *nearest, const char *candidate);

/* "; did you mean mxfp4?", or "" where nothing is near. */
cli_text cli_did_you_mean(cli_words *words, const char *word);
cli_text cli_did_you_mean_this(const cli_nearest *nearest, const char *prefix);

#endif
