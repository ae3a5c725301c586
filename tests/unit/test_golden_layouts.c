/* SPDX-License-Identifier: Apache-2.0
 * Compares scale layouts with the offset maps of torchao and torch (tests/golden/README.md). The
 * test checks sizes, every offset, and copies of scales from each layout to each other layout. */
#include "base/base.h"
#include "golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SHOWN = 5, STALE = 0xA5 };

static int64_t optional_param(const golden_case *c, const char *key) {
    return strstr(c->mode, key) != NULL ? golden_param(c, key) : 0;
}

/* Returns a matrix with blocks of 1 x 32 that has as many rows and columns of scales as the golden
 * case. */
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

/* Holds the positions of scales that a golden file expects. If a case has the parameter "ld", the
 * caller has chosen the distance between rows of scales, or between columns of scales. The
 * library's scale buffer then ends with the last scale, so map_of drops the file's padding after
 * it. */
typedef struct map {
    /* at[offset] is 1 + r * cols + c if the scale (r, c) is at this offset of the scale buffer, or
     * 0 if there is padding. */
    uint32_t *at;
    size_t count;
} map;

static map map_of(const golden_case *c) {
    map m = {golden_read(c->expected, 4, c->count), c->count};
    while (strstr(c->mode, "ld=") != NULL && m.at[m.count - 1] == 0) {
        m.count--;
    }
    return m;
}

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

/* Lists scale formats of one and of four bytes. The scales of a matrix are numbered, and the test
 * computes the code of a scale from its number modulo `modulus`. */
static const struct {
    uint32_t scale, bytes, modulus;
} widths[] = {
    /* The code of a scale is derived from its number modulo 251. This is a prime number, and no
     * tile has a multiple of 251 scales. Equal positions in neighboring tiles therefore have
     * different codes, and a scale in a wrong tile is found. */
    {BSMM_SCALE_E8M0, 1, 251},
    {BSMM_SCALE_F32, 4, UINT32_MAX},
};

static uint32_t scale_bits(uint32_t value, uint32_t modulus) {
    return value == 0 ? 0 : value % modulus + 1;
}

/* Fills a scale buffer with codes. The offset map `from` gives the number of the scale at each
 * offset i. The code at offset i is computed from this number, and is 0 in a gap. Sets the matrix's
 * pointer to the buffer. */
static uint8_t *fill_scales(const map *from, size_t width, bsmm_matrix *m) {
    uint32_t bytes = widths[width].bytes;
    uint8_t *scales = test_calloc(from->count, bytes);
    for (size_t i = 0; i < from->count; i++) {
        uint32_t bits = scale_bits(from->at[i], widths[width].modulus);
        for (uint32_t k = 0; k < bytes; k++) {
            scales[i * bytes + k] = (uint8_t)(bits >> (8 * k));
        }
    }
    m->scales = scales;
    m->scale_bytes = from->count * bytes;
    return scales;
}

/* Sets the expected bytes of the gaps between rows (or columns) of scales to STALE. If the caller
 * chose the leading dimension of the scales, the gaps may hold other data, so moving scales must
 * not change them. */
static void keep_gaps(const map *to, uint8_t *expected, uint32_t bytes) {
    for (size_t i = 0; i < to->count; i++) {
        if (to->at[i] == 0) {
            memset(expected + i * bytes, STALE, bytes);
        }
    }
}

static size_t count_differences(size_t count, const uint8_t *expected, const uint8_t *got,
                                uint32_t bytes) {
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        wrong += memcmp(expected + i * bytes, got + i * bytes, bytes) != 0;
    }
    return wrong;
}

static size_t check_move(const golden_case *from, const golden_case *to, size_t width) {
    map source = map_of(from), target = map_of(to);
    bsmm_matrix src = matrix_of(from, widths[width].scale);
    bsmm_matrix dst = matrix_of(to, widths[width].scale);
    uint8_t *given = fill_scales(&source, width, &src);
    uint8_t *expected = fill_scales(&target, width, &dst);
    uint8_t *got = test_malloc(dst.scale_bytes);
    memset(got, STALE, dst.scale_bytes);
    dst.scales = got;
    if (dst.scale_ld != 0) {
        keep_gaps(&target, expected, widths[width].bytes);
    }
    bsmm_status status = bsmm_relayout_scales(&src, &dst);
    size_t wrong = status != BSMM_OK;
    if (wrong == 0) {
        wrong = count_differences(target.count, expected, got, widths[width].bytes);
    }
    if (wrong != 0) {
        print_error("%s -> %s, %u bytes: %zu wrong: %s\n", from->name, to->name,
                    widths[width].bytes, wrong, status == BSMM_OK ? "" : bsmm_error_message());
    }
    test_free(got);
    test_free(expected);
    test_free(given);
    free(target.at);
    free(source.at);
    return wrong;
}

static bool same_shape(const golden_case *a, const golden_case *b) {
    return golden_param(a, "rows") == golden_param(b, "rows") &&
           golden_param(a, "cols") == golden_param(b, "cols");
}

static void test_relayout_any_to_any(void **state) {
    (void)state;
    golden_list list = golden_open("layouts");
    size_t moves = 0, wrong = 0;
    for (size_t i = 0; i < list.count; i++) {
        for (size_t k = 0; k < list.count; k++) {
            if (!same_shape(&list.cases[i], &list.cases[k])) {
                continue;
            }
            for (size_t w = 0; w < BSMM_COUNT(widths); w++, moves++) {
                wrong += check_move(&list.cases[i], &list.cases[k], w);
            }
        }
    }
    assert_true(moves > list.count);
    golden_close(&list);
    assert_int_equal(wrong, 0);
}

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
        cmocka_unit_test(test_relayout_any_to_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
