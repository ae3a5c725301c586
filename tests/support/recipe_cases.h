/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the golden bytes of recipes, which tests/golden/RECIPES-NOTES.md describes. If data is
 * missing, short or malformed, these functions fail the running cmocka test. */
#ifndef BSMM_TESTS_RECIPE_CASES_H
#define BSMM_TESTS_RECIPE_CASES_H

#include <stddef.h>
#include <stdint.h>

/* Holds one case of the golden recipes (tests/golden/RECIPES-NOTES.md). The pointers are valid
 * until the set of cases is freed. */
typedef struct recipe_case {
    char name[32], recipe[32], format[32], options[48], dtype[8];
    int64_t rows, cols;
    /* `input` points to the golden bytes of the input, and the other pointers to the expected
     * result. `global` is NULL if there is no second-level scale. */
    const uint8_t *input, *data, *scales, *global;
    size_t data_bytes, scales_bytes;
} recipe_case;

typedef struct recipe_cases {
    recipe_case *cases;
    size_t count;
    struct recipe_file *files;
    size_t file_count;
} recipe_cases;

recipe_cases recipe_cases_open(void);
void recipe_cases_close(recipe_cases *set);

#endif
