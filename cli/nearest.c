#include "nearest.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 127 };

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* Computes row i of the table of edit distances between the first i letters of a and the first j
 * letters of b. The row follows from the two rows before it. */
static void next_row(const char *a, const char *b, size_t i, const unsigned *before_last,
                     const unsigned *last, unsigned *row) {
    row[0] = (unsigned)i;
    for (size_t j = 1; b[j - 1]; j++) {
        row[j] = last[j - 1] + (a[i - 1] != b[j - 1]);
        row[j] = least(row[j], least(last[j], row[j - 1]) + 1);
        bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
        if (swapped) row[j] = least(row[j], before_last[j - 2] + 1);
    }
}

unsigned cli_distance(const char *a, const char *b) {
    unsigned rows[3][LONGEST + 1] = {{0}};
    size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length > LONGEST || b_length > LONGEST) return UINT_MAX;
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++)
        next_row(a, b, i, rows[(i + 1) % 3], rows[(i + 2) % 3], rows[i % 3]);
    return rows[a_length % 3][b_length];
}

/* Makes `candidate` the best suggestion if it is nearer to the misspelled word than the best one so
 * far. A candidate may differ from the word by one edit, or by a third of the word's length in
 * edits if that is more. */
void cli_nearest_try(cli_nearest *nearest, const char *candidate) {
    size_t wrong = strlen(nearest->word) / 3;
    unsigned distance = cli_distance(nearest->word, candidate);
    if (distance > (wrong ? wrong : 1) || (nearest->best && distance >= nearest->distance)) return;
    nearest->best = candidate;
    nearest->distance = distance;
}

cli_text cli_did_you_mean_this(const cli_nearest *nearest, const char *prefix) {
    cli_text text = {""};
    if (nearest->best)
        snprintf(text.text, sizeof text.text, "; did you mean %s%s?", prefix, nearest->best);
    return text;
}

cli_text cli_did_you_mean(cli_words *words, const char *word) {
    cli_nearest nearest = {.word = word};
    for (uint32_t i = 0; words && words(i); i++)
        cli_nearest_try(&nearest, words(i));
    return cli_did_you_mean_this(&nearest, "");
}
