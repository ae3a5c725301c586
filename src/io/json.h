/* JSON that other programs wrote, such as Python. */
#ifndef BSMM_JSON_H
#define BSMM_JSON_H

#include <stddef.h>

struct json_t;

/* Parses JSON as Python writes it; integers become real numbers. If the text is no such JSON, it
 * returns NULL and writes the reason into why[size]. */
struct json_t *bsmm_json_of_python(const char *text, size_t bytes, char *why, size_t size);

#endif
