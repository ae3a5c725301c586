/* Declares a scanner that reads JSON text without building a tree. A safetensors header may
 * describe a million tensors, and a tree of them would take a gigabyte. The scanner itself accepts
 * only the plain forms that usual writers produce. Callers find the extent of any other value with
 * bsmm_scan_value and pass that text to a JSON library. */
#ifndef BSMM_SCAN_H
#define BSMM_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bsmm_scan {
    const char *at, *end;
} bsmm_scan;

/* A span is a part of the JSON text. */
typedef struct bsmm_span {
    const char *at;
    size_t length;
} bsmm_span;

void bsmm_scan_space(bsmm_scan *s);

/* Each of these functions skips white space, and then parses what its name says. On success it
 * returns true and moves the position past the parsed text. Otherwise it returns false and leaves
 * the position unchanged. */
bool bsmm_scan_take(bsmm_scan *s, char token);
/* Parses a string without escape sequences and control characters. *text excludes the quotes. UTF-8
 * is not checked. */
bool bsmm_scan_string(bsmm_scan *s, bsmm_span *text);
/* Parses an integer from 0 up, of at most 18 digits. */
bool bsmm_scan_count(bsmm_scan *s, uint64_t *value);
/* Finds the extent of a value of any kind by matching brackets and quotes; the inside is not
 * checked. Returns false if the text ends first, or if no value can begin with the next
 * character. */
bool bsmm_scan_value(bsmm_scan *s, bsmm_span *value);

#endif
