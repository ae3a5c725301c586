/* JSON that other programs than this library's writer have written. */
#ifndef BSMM_JSON_H
#define BSMM_JSON_H

#include <stddef.h>

struct json_t;

/* What Python wrote; integers become real numbers. NULL, with the reason in why[size]: it is no
 * such text. */
struct json_t *bsmm_json_of_python(const char *text, size_t bytes, char *why, size_t size);

#endif
