/* Tests the header of packed weights. If one bit of a field is changed, the error must name this
 * field. */
#include "packed_b.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_named(const packed_b *f, const char *text) {
    assert_int_equal(packed_b_run(f, f->plan), BSMM_E_INVALID);
    if (!strstr(bsmm_error_message(), text))
        fail_msg("\"%s\" does not say \"%s\"", bsmm_error_message(), text);
}

static void put(packed_b *f, int at, const char *text, size_t size) {
    memset(f->packed + at, 0, size);
    memcpy(f->packed + at, text, strlen(text));
}

static void test_header_fields(void **state) {
    (void)state;
    static const struct {
        int at;
        const char *name;
    } numbers[] = {{VERSION, "version: value is 76; must be 1"},
                   {GLOBAL_KIND, "global_kind: value is 77; must be 0"},
                   {FORMAT, "format.elem"},
                   {FORMAT + 4, "format.scale: value is 76; must be 1"},
                   {FORMAT + 8, "format.block_rows: value is 76; must be 1"},
                   {FORMAT + 12, "format.block_cols"},
                   {ROWS, "rows"},
                   {COLS, "cols"},
                   {GROUPS, "groups: value is 77; must be 0"},
                   {BYTES, "bytes"},
                   {ZERO, "zero"}};
    rng r = {46};
    packed_b f;
    packed_b_make(&f, format_named("mxfp4"), describe(format_named("mxfp4"), 40, 64), 3,
                  FILL_ORDINARY, &r);
    packed_b_pack(&f, BSMM_PACKED_COMPACT);
    uint8_t whole[HEADER];
    memcpy(whole, f.packed, HEADER);
    assert_int_equal(packed_b_run(&f, f.plan), BSMM_OK);
    for (size_t i = 0; i < BSMM_COUNT(numbers); i++) {
        char text[80];
        snprintf(text, sizeof text, "packed_b.%s", numbers[i].name);
        f.packed[numbers[i].at] ^= 77;
        expect_named(&f, text);
        memcpy(f.packed, whole, HEADER);
    }
    put(&f, FORM, "wide", 8);
    expect_named(&f, "packed_b.form: value is \"wide\"; must be \"compact\"");
    memcpy(f.packed, whole, HEADER);
    put(&f, DEVICE, "cuda", 16);
    expect_named(&f, "packed_b.device: value is \"cuda\"; must be \"cpu\"");
    memcpy(f.packed, whole, HEADER);
    put(&f, PANELS, "int8\n", 16);
    expect_named(&f, "packed_b.panels: value is \"int8?\"; must be \"\"");
    put(&f, 0, "bsmmpb1", 8);
    expect_named(&f, "packed_b.magic: value is \"bsmmpb1\", which an older library wrote");
    put(&f, 0, "GGUF", 8);
    expect_named(&f, "packed_b.magic: value is \"GGUF\"; must be \"bsmmpb2\"");
    memcpy(f.packed, whole, HEADER);
    assert_int_equal(packed_b_run(&f, f.plan), BSMM_OK);
    for (int i = 0; i < 8 * HEADER; i++) { /* The loop changes each bit of the header in turn. */
        f.packed[i / 8] ^= (uint8_t)(1 << i % 8);
        expect_named(&f, "packed_b.");
        f.packed[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    packed_b_free(&f);
}

static void expect_info(const packed_b *f, uint64_t bytes, bsmm_status status, const char *text) {
    bsmm_packed_info info = {.struct_size = sizeof info};
    assert_int_equal(bsmm_packed_describe(f->packed, bytes, &info), status);
    if (status && !strstr(bsmm_error_message(), text))
        fail_msg("\"%s\" does not say \"%s\"", bsmm_error_message(), text);
}

static void test_describe(void **state) {
    (void)state;
    rng r = {47};
    packed_b f;
    packed_b_make(&f, format_named("bf16"), describe(format_named("mxfp8"), 21, 96), 3,
                  FILL_ORDINARY, &r);
    packed_b_pack(&f, BSMM_PACKED_COMPACT);
    bsmm_packed_info info = {.struct_size = sizeof info};
    assert_int_equal(bsmm_packed_describe(f.packed, f.bytes, &info), BSMM_OK);
    assert_int_equal(info.form, BSMM_PACKED_COMPACT);
    assert_int_equal(info.version, 1);
    assert_string_equal(info.device, "cpu");
    assert_string_equal(info.panels, "");
    assert_true(bsmm_format_equal(info.format, f.b.m.format));
    assert_true(info.rows == 21 && info.cols == 96 && info.groups == 0 && info.bytes == f.bytes);
    expect_info(&f, f.bytes - 1, BSMM_E_INVALID, "packed_b_bytes: value is");
    expect_info(&f, HEADER - 1, BSMM_E_INVALID, "packed_b_bytes: value is 127");
    f.packed[VERSION] = 9;
    expect_info(&f, f.bytes, BSMM_E_INVALID, "packed_b.version: value is 9; must be 1");
    f.packed[VERSION] = 1;
    put(&f, FORM, "narrow", 8);
    expect_info(&f, f.bytes, BSMM_E_INVALID, "packed_b.form: value is \"narrow\"");
    put(&f, FORM, "compact", 8);
    put(&f, 0, "bsmmpb1", 8);
    expect_info(&f, f.bytes, BSMM_E_INVALID, "bsmmpb1");
    put(&f, 0, "bsmmpb2", 8);
    expect_info(&f, f.bytes, BSMM_OK, "");
    packed_b_free(&f);
}

/* Tests bsmm_unpack_b with random headers. It must not read past the end of the packed bytes. */
static void test_unpack_of_any_header(void **state) {
    (void)state;
    rng r = {48};
    packed_b f;
    packed_b_make(&f, format_named("bf16"), describe(format_named("mxfp4"), 21, 96), 3,
                  FILL_ORDINARY, &r);
    packed_b_pack(&f, BSMM_PACKED_COMPACT);
    uint8_t *tight = guarded_alloc(f.bytes);
    for (int i = 0; i < 4096; i++) {
        memcpy(tight, f.packed, f.bytes);
        int at = VERSION + (int)rng_below(&r, HEADER - VERSION);
        tight[at] = (uint8_t)rng_next(&r);
        bsmm_packed_info info = {.struct_size = sizeof info};
        if (bsmm_packed_describe(tight, f.bytes, &info) != BSMM_OK || info.bytes != f.bytes)
            continue;
        bsmm_matrix b = describe(info.format, info.rows, info.cols);
        b.global_kind = info.global_kind;
        uint64_t data, scales = 0;
        if (bsmm_data_bytes(&b, &data) || (b.format.scale && bsmm_scale_bytes(&b, &scales)))
            continue;
        if (data > 1 << 20 || scales > 1 << 20) continue;
        float global;
        b.data = packed_b_room(data + 64), b.scales = packed_b_room(scales + 64),
        b.global_scale = &global;
        (void)bsmm_unpack_b(tight, f.bytes, info.groups ? info.groups - 1 : 0, &b);
        free(b.data);
        free(b.scales);
    }
    guarded_free(tight, f.bytes);
    packed_b_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_fields),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_unpack_of_any_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
