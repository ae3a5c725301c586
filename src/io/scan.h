/* Scans JSON text without building a tree. Headers may have a million tensors, and their trees
 * would take a gigabyte. The scanner accepts the plain forms that writers use. Any other value is
 * cut out as a whole and passed to a JSON library. */
#ifndef BSMM_SCAN_H
#define BSMM_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bsmm_scan {
    const char *at, *end;
} bsmm_scan;

/* A range of the JSON text. */
typedef struct bsmm_span {
    const char *at;
    size_t length;
} bsmm_span;

void bsmm_scan_space(bsmm_scan *s);

/* Each of these functions skips space and parses the thing in its name. They return true, or return
 * false and leave the position unchanged. */
bool bsmm_scan_take(bsmm_scan *s, char token);
/* Parses a string without escapes and control characters. The span excludes the quotes. UTF-8 is
 * not checked. */
bool bsmm_scan_string(bsmm_scan *s, bsmm_span *text);
/* Parses an integer of at least 0 and at most 18 digits. */
bool bsmm_scan_count(bsmm_scan *s, uint64_t *value);
/* Finds the extent of any value by its brackets and quotes alone. Returns false at the end of the
 * text, or if no value can begin with the next character. */
bool bsmm_scan_value(bsmm_scan *s, bsmm_span *value);

#endif
