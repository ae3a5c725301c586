/* A walk over JSON text that builds no tree: headers have a million tensors, whose trees would take
 * a gigabyte. It takes the plain forms that writers use; what it does not take is cut out whole,
 * for a JSON library to judge. */
#ifndef BSMM_SCAN_H
#define BSMM_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bsmm_scan {
    const char *at, *end;
} bsmm_scan;

/* A part of the text. */
typedef struct bsmm_span {
    const char *at;
    size_t length;
} bsmm_span;

void bsmm_scan_space(bsmm_scan *s);

/* Each skips space, takes what it is named after and returns true, or returns false and leaves the
 * rest where it was. */
bool bsmm_scan_take(bsmm_scan *s, char token);
/* A string without escapes and control characters; the span lacks the quotes. UTF-8 is not checked.
 */
bool bsmm_scan_string(bsmm_scan *s, bsmm_span *text);
/* An integer of 0 and more, of 18 digits at most. */
bool bsmm_scan_count(bsmm_scan *s, uint64_t *value);
/* The extent of any value, by its brackets and quotes alone; false at the end of the text and
 * before what no value begins with. */
bool bsmm_scan_value(bsmm_scan *s, bsmm_span *value);

#endif
