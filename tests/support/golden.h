/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the golden files of tests/golden/data, which tests/golden/README.md describes. If data is
 * missing, short or malformed, these functions fail the running cmocka test and name the file. */
#ifndef BSMM_TESTS_GOLDEN_H
#define BSMM_TESTS_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

/* Holds one row of a manifest (tests/golden/README.md), i.e. one test case. The fields are the
 * cells of the row. */
typedef struct golden_case {
    char name[80], kind[16], format[32], mode[80], source[48], input[80], expected[64];
    size_t count;
} golden_case;

typedef struct golden_list {
    golden_case *cases;
    size_t count;
} golden_list;

/* Reads the manifest tests/golden/data/NAME.tsv. */
golden_list golden_open(const char *name);
void golden_close(golden_list *list);

/* Returns the only case with this name. */
const golden_case *golden_find(const golden_list *list, const char *name);

/* Reads `count` values of `width` bytes (1, 2 or 4) from a golden file. `reference` names the file
 * and the offset of its first byte as FILE@BYTE. The caller frees the values by free(). */
uint32_t *golden_read(const char *reference, size_t width, size_t count);

/* Reads the inputs of a case that tests encoding. Their number is case->count. The caller frees
   the inputs by free(). */
double *golden_inputs(const golden_list *list, const golden_case *c);

/* Reads the `count` element codes that a case packs into bytes. The caller frees the codes by
   free(). */
uint32_t *golden_input_codes(const golden_case *c, size_t count);

/* Returns the number that follows `key` in the mode of a case. A mode is a text such as
 * "rows=7,cols=3". */
int64_t golden_param(const golden_case *c, const char *key);

#endif
