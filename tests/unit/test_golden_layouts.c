/* SPDX-License-Identifier: Apache-2.0
 *
 * Scale layouts against the offset maps that torchao and torch give (tests/golden/README.md):
 * sizes and every offset. */
#include "base/base.h"
#include "golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SHOWN = 5 };

/* ---- a case as a matrix ---- */

static int64_t optional_param(const golden_case *c, const char *key) {
    return strstr(c->mode, key) != NULL ? golden_param(c, key) : 0;
}

/* A matrix whose scale matrix has the case's rows and cols: blocks of 1 x 32. */
static bsmm_matrix matrix_of(const golden_case *c, uint32_t scale) {
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    m.format = (bsmm_format){BSMM_ELEM_E4M3, scale, 1, 32};
    m.rows = golden_param(c, "rows");
    m.cols = golden_param(c, "cols") * 32;
    m.scale_tile_rows = (uint32_t)optional_param(c, "tile_rows");
    m.scale_tile_cols = (uint32_t)optional_param(c, "tile_cols");
    m.scale_ld = optional_param(c, "ld");
    assert_int_equal(bsmm_layout_from_name(c->format, &m.scale_layout), BSMM_OK);
    return m;
}

/* The stored map. With a caller's pitch nothing follows the last scale of the last line. */
typedef struct map {
    uint32_t *at; /* offset -> 1 + r * cols + c, 0 for padding */
    size_t count;
} map;

static map map_of(const golden_case *c) {
    map m = {golden_read(c->expected, 4, c->count), c->count};
    while (strstr(c->mode, "ld=") != NULL && m.at[m.count - 1] == 0) {
        m.count--;
    }
    return m;
}

/* ---- sizes and offsets ---- */

static size_t check_offsets(const golden_case *c) {
    bsmm_matrix m = matrix_of(c, BSMM_SCALE_E8M0);
    map expected = map_of(c);
    uint64_t bytes = 0;
    assert_int_equal(bsmm_scale_bytes(&m, &bytes), BSMM_OK);
    size_t wrong = bytes != expected.count;
    if (wrong != 0) {
        print_error("%s: expected %zu scales, got %llu\n", c->name, expected.count,
                    (unsigned long long)bytes);
    }
    int64_t cols = golden_param(c, "cols"), seen = 0;
    for (size_t offset = 0; offset < expected.count; offset++) {
        int64_t index = (int64_t)expected.at[offset] - 1;
        uint64_t got = 0;
        if (index < 0) {
            continue;
        }
        seen++;
        assert_int_equal(bsmm_scale_offset(&m, index / cols, index % cols, &got), BSMM_OK);
        if (got != offset && wrong++ < SHOWN) {
            print_error("%s: scale (%lld, %lld): expected offset %zu, got %llu\n", c->name,
                        (long long)(index / cols), (long long)(index % cols), offset,
                        (unsigned long long)got);
        }
    }
    assert_int_equal(seen, golden_param(c, "rows") * cols);
    free(expected.at);
    return wrong;
}

static void test_offsets(void **state) {
    (void)state;
    golden_list list = golden_open("layouts");
    size_t wrong = 0;
    for (size_t i = 0; i < list.count; i++) {
        wrong += check_offsets(&list.cases[i]);
    }
    golden_close(&list);
    assert_int_equal(wrong, 0);
}

/* ---- nothing is missing: a shortened manifest must not pass ---- */

static void test_every_layout_has_cases(void **state) {
    (void)state;
    golden_list list = golden_open("layouts");
    bsmm_layout_info info = BSMM_INIT(bsmm_layout_info);
    for (uint32_t i = 0; bsmm_layout_at(i, &info) == BSMM_OK; i++) {
        size_t cases = 0;
        for (size_t k = 0; k < list.count; k++) {
            cases += strcmp(list.cases[k].format, info.name) == 0;
        }
        if (cases < 12) {
            fail_msg("%s: %zu golden cases; every layout has 12 or more", info.name, cases);
        }
    }
    golden_close(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_layout_has_cases),
        cmocka_unit_test(test_offsets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
