/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the golden files of tests/golden/data (tests/golden/README.md describes them). Everything
 * here fails the running cmocka test, naming the file, when data is missing, short or malformed. */
#ifndef BSMM_TESTS_GOLDEN_H
#define BSMM_TESTS_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

/* One row of a manifest; the fields are the cells. */
typedef struct golden_case {
    char name[80], kind[16], format[32], mode[80], source[48], input[80], expected[64];
    size_t count; /* of values in `expected` */
} golden_case;

typedef struct golden_list {
    golden_case *cases;
    size_t count; /* never 0 */
} golden_list;

/* The manifest NAME.tsv. */
golden_list golden_open(const char *name);
void golden_close(golden_list *list);

/* The one case of that name. */
const golden_case *golden_find(const golden_list *list, const char *name);

/* `count` values of 1, 2 or 4 bytes at a reference FILE@BYTE. Free with free(). */
uint32_t *golden_read(const char *reference, size_t width, size_t count);

/* The inputs of an encode case, case->count of them. Free with free(). */
double *golden_inputs(const golden_list *list, const golden_case *c);

/* The `count` codes that a pack case packs. Free with free(). */
uint32_t *golden_input_codes(const golden_case *c, size_t count);

/* The number after "key=" in a mode such as "rows=7,cols=3". */
int64_t golden_param(const golden_case *c, const char *key);

#endif
