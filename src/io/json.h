/* Declares a parser for JSON text that other programs, such as Python, wrote, and a function that
 * writes JSON. */
#ifndef BSMM_JSON_H
#define BSMM_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct json_t;
struct json_error_t;

/* Parses JSON as Python's json module writes it; integers become real numbers. On failure it
 * returns NULL and writes the reason to `why`, which has `size` bytes. */
struct json_t *bsmm_json_of_python(const char *text, size_t bytes, char *why, size_t size);

/* Returns true if the JSON library failed because there was no memory. It then gives no text. */
bool bsmm_json_ran_out(const struct json_error_t *error);

/* Writes JSON without spaces. Returns NULL if `value` is NULL or there is no memory. The caller
 * frees the text. */
char *bsmm_json_text(const struct json_t *value);

#endif
