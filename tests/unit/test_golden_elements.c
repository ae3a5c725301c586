/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the element codecs with the answers of other libraries (tests/golden/README.md). */
#include "base/base.h"
#include "format/format.h"
#include "golden.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SHOWN = 5, NO_ANSWER = 0xFF };

/* Counts the wrong codes of a test case. */
typedef struct tally {
    const golden_case *c;
    size_t wrong;
} tally;

static void report(tally *t, const char *what, double input, uint32_t expected, uint32_t got) {
    if (t->wrong++ < SHOWN) {
        print_error("%s: %s: input %a: expected 0x%x, got 0x%x\n", t->c->name, what, input,
                    (unsigned)expected, (unsigned)got);
    }
}

static bsmm_elem_info elem_named(const char *name) {
    bsmm_elem_info info = BSMM_INIT(bsmm_elem_info);
    for (uint32_t i = 0; bsmm_elem_at(i, &info) == BSMM_OK; i++) {
        if (strcmp(info.name, name) == 0) {
            return info;
        }
    }
    fail_msg("no element format is named %s", name);
    return info;
}

/* Runs all golden cases of the kind `kind`. `check` returns the number of wrong codes of a case. */
static void run_kind(const char *kind, size_t (*check)(const golden_list *, const golden_case *)) {
    golden_list list = golden_open("elements");
    size_t cases = 0, wrong = 0;
    for (size_t i = 0; i < list.count; i++) {
        if (strcmp(list.cases[i].kind, kind) == 0) {
            cases++;
            wrong += check(&list, &list.cases[i]);
        }
    }
    golden_close(&list);
    assert_int_not_equal(cases, 0);
    assert_int_equal(wrong, 0);
}

static uint32_t bits_of_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static bool is_nan_f32(uint32_t bits) {
    return (bits & 0x7FFFFFFFu) > 0x7F800000u;
}

static size_t check_decode(const golden_list *list, const golden_case *c) {
    (void)list;
    bsmm_elem_info info = elem_named(c->format);
    assert_int_equal(c->count, (size_t)1 << info.bits);
    uint32_t *expected = golden_read(c->expected, 4, c->count);
    tally t = {c, 0};
    for (uint32_t code = 0; code < c->count; code++) {
        double value = 0;
        assert_int_equal(bsmm_decode_elem(info.elem, code, &value), BSMM_OK);
        uint32_t got = bits_of_f32((float)value);
        bool exact = isnan(value) || (double)(float)value == value;
        bool same = is_nan_f32(expected[code]) ? isnan(value) : got == expected[code];
        if (!exact || !same) {
            report(&t, "decode", code, expected[code], got);
        }
    }
    free(expected);
    return t.wrong;
}

static void test_decode(void **state) {
    (void)state;
    run_kind("decode", check_decode);
}

/* Returns an array that says which codes are NaN. The golden values of the codes decide this, not
 * the code under test. */
static bool *nan_codes(const golden_list *list, const golden_case *c) {
    char name[64];
    snprintf(name, sizeof name, "decode/%s", c->format);
    const golden_case *decode = golden_find(list, name);
    uint32_t *bits = golden_read(decode->expected, 4, decode->count);
    bool *is_nan = test_calloc(decode->count, sizeof *is_nan);
    for (size_t i = 0; i < decode->count; i++) {
        is_nan[i] = is_nan_f32(bits[i]);
    }
    free(bits);
    return is_nan;
}

/* Returns true if a code is right. If the golden code is NaN, any NaN code is right. If the format
 * has no NaN, the code of +0 is right, as bsmm.h promises. */
static bool agrees(const bool *is_nan, uint32_t limit, uint32_t expected, uint32_t got) {
    if (got >= limit) {
        return false;
    }
    if (expected >= limit) {
        return expected == NO_ANSWER && got == 0;
    }
    return is_nan[expected] ? is_nan[got] : got == expected;
}

/* `got` is the code that bsmm_elem_encode gives for the input. Checks that two other calls give the
 * same code. The first is the public function bsmm_encode_elem, which takes floats; it is checked
 * if the input is a float. The second is bsmm_elem_encode with the opposite of `saturate`. It is
 * checked for formats of less than 8 bits, which have neither Inf nor NaN and always saturate. */
static void check_other_ways(tally *t, const bsmm_elem_info *info, double input, bool saturate,
                             uint32_t got) {
    float narrow = (float)input;
    if ((double)narrow == input || isnan(input)) {
        uint32_t code = ~got;
        assert_int_equal(bsmm_encode_elem(info->elem, narrow, saturate, &code), BSMM_OK);
        if (code != got) {
            report(t, "bsmm_encode_elem differs", input, got, code);
        }
    }
    if (info->bits < 8 && bsmm_elem_encode(info->elem, input, !saturate) != got) {
        report(t, "the other mode differs", input, got,
               bsmm_elem_encode(info->elem, input, !saturate));
    }
}

static size_t check_encode(const golden_list *list, const golden_case *c) {
    bsmm_elem_info info = elem_named(c->format);
    bool saturate = strcmp(c->mode, "sat") == 0;
    assert_true(saturate || strcmp(c->mode, "nonsat") == 0);
    uint32_t *expected = golden_read(c->expected, info.bits > 8 ? 2 : 1, c->count);
    double *inputs = golden_inputs(list, c);
    bool *is_nan = nan_codes(list, c);
    tally t = {c, 0};
    for (size_t i = 0; i < c->count; i++) {
        uint32_t got = bsmm_elem_encode(info.elem, inputs[i], saturate);
        if (!agrees(is_nan, 1u << info.bits, expected[i], got)) {
            report(&t, "encode", inputs[i], expected[i], got);
        }
        check_other_ways(&t, &info, inputs[i], saturate, got);
    }
    test_free(is_nan);
    free(inputs);
    free(expected);
    return t.wrong;
}

static void test_encode(void **state) {
    (void)state;
    run_kind("encode", check_encode);
}

static size_t check_pack(const golden_list *list, const golden_case *c) {
    (void)list;
    bsmm_elem_info info = elem_named(c->format);
    size_t count = c->count * 8 / info.bits;
    uint32_t *codes = golden_input_codes(c, count);
    uint32_t *expected = golden_read(c->expected, 1, c->count);
    uint8_t *packed = test_malloc(c->count);
    /* The memory first contains a pattern, because a store must replace old bits instead of
     * combining with them. */
    memset(packed, 0xA5, c->count);
    uint64_t bytes = 0;
    assert_true(bsmm_elem_bytes(info.elem, count, &bytes));
    assert_int_equal(bytes, c->count);
    for (size_t i = 0; i < count; i++) {
        bsmm_elem_store(info.elem, packed, i, codes[i]);
    }
    tally t = {c, 0};
    for (size_t i = 0; i < c->count; i++) {
        if (packed[i] != expected[i]) {
            report(&t, "packed byte", (double)i, expected[i], packed[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t got = bsmm_elem_load(info.elem, packed, i);
        if (got != codes[i]) {
            report(&t, "load", (double)i, codes[i], got);
        }
    }
    test_free(packed);
    free(expected);
    free(codes);
    return t.wrong;
}

static void test_pack(void **state) {
    (void)state;
    run_kind("pack", check_pack);
}

static void require_case(const golden_list *list, const char *elem, const char *suffix) {
    char name[64];
    snprintf(name, sizeof name, "encode/%s/%s", elem, suffix);
    assert_non_null(golden_find(list, name));
}

static void test_every_format_has_cases(void **state) {
    (void)state;
    static const char *const suffixes[] = {"sat/f16",           "sat/bf16",     "sat/boundaries",
                                           "sat/random",        "nonsat/f16",   "nonsat/bf16",
                                           "nonsat/boundaries", "nonsat/random"};
    golden_list list = golden_open("elements");
    bsmm_elem_info info = BSMM_INIT(bsmm_elem_info);
    for (uint32_t i = 0; bsmm_elem_at(i, &info) == BSMM_OK; i++) {
        if (info.elem == BSMM_ELEM_F32) {
            continue;
        }
        size_t count = info.bits < 8 ? BSMM_COUNT(suffixes) / 2 : BSMM_COUNT(suffixes);
        for (size_t k = 0; k < count; k++) {
            require_case(&list, info.name, suffixes[k]);
        }
    }
    golden_close(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_format_has_cases),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_pack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
