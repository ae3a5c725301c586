/* Tests checkpoints that other libraries have written (tests/fixtures). The library must read each
 * weight as the fixtures' manifest describes it, and every value must be exact. */
#include "operand.h"
#include "stored.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COLUMNS = 11 };

typedef struct line {
    const char *file, *kind, *family, *name, *dtype, *format, *shape, *batch, *expected, *error,
        *mentions;
} line;

static const char *fixture_path(const char *name) {
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", BSMM_FIXTURE_DIR, name);
    return path;
}

static bool given(const char *cell) {
    return strcmp(cell, "-") != 0;
}

static bsmm_status status_named(const char *name) {
    char full[64];
    snprintf(full, sizeof full, "BSMM_E_%s", name);
    for (int s = BSMM_OK; s <= BSMM_E_DEVICE; s++)
        if (strcmp(bsmm_status_name((bsmm_status)s), full) == 0) return (bsmm_status)s;
    fail_msg("%s is no status", name);
    return BSMM_OK;
}

/* Returns the format that a text describes. The text is a name such as "mxfp4", or
 * "e4m3:e8m0:128x128" for a format without a name. */
static bsmm_format format_of(const char *text) {
    static const char *const scales[] = {"none", "e8m0", "e4m3", "f32"};
    char elem[16], scale[16];
    unsigned rows, cols;
    if (sscanf(text, "%15[^:]:%15[^:]:%ux%u", elem, scale, &rows, &cols) != 4)
        return format_named(text);
    bsmm_format format = format_named(elem);
    for (uint32_t i = 0; i < 4; i++)
        if (strcmp(scales[i], scale) == 0) format.scale = i;
    format.block_rows = rows;
    format.block_cols = cols;
    return format;
}

/* Reads the float32 values of a .npy file that numpy wrote. The function does not use the
 * library's reader. */
static float *expected_values(const char *name, size_t count) {
    size_t bytes;
    uint8_t *all = read_bytes(fixture_path(name), &bytes);
    assert_true(bytes >= count * sizeof(float));
    /* The first 10 bytes are a magic number, the version and the length of the header. The header's
     * text follows. */
    assert_non_null(strstr((const char *)all + 10, "'<f4'"));
    float *values = malloc((count + 1) * sizeof *values);
    assert_non_null(values);
    memcpy(values, all + bytes - count * sizeof *values, count * sizeof *values);
    free(all);
    return values;
}

static void compare(const line *l, const double *got, const float *expected, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float value = (float)got[i];
        if (isnan(value) && isnan(expected[i])) continue;
        if (memcmp(&value, &expected[i], sizeof value) != 0)
            fail_msg("%s %s: value %zu is %a, expected %a", l->file, l->name, i, (double)value,
                     (double)expected[i]);
    }
}

/* Compares all values of a weight with the expected ones, matrix after matrix. */
static void check_values(const line *l, const bsmm_file *file, uint64_t index,
                         const bsmm_weight *weight) {
    size_t each = (size_t)(weight->rows * weight->cols);
    float *expected = expected_values(l->expected, each * (size_t)weight->batch);
    for (int64_t slice = 0; slice < weight->batch; slice++)
        for (int unpack = 0; unpack < 2; unpack++) {
            double *got = weight_values(file, index, slice, unpack);
            compare(l, got, expected + (size_t)slice * each, each);
            free(got);
        }
    free(expected);
}

static void check_weight(const line *l, const bsmm_file *file) {
    uint64_t index;
    long long rows, cols;
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    if (bsmm_file_weight_find(file, l->name, &index)) fail_msg("%s", bsmm_error_message());
    bsmm_status status = bsmm_file_weight_at(file, index, &weight);
    if (given(l->error))
        expect_failure(status, status_named(l->error), l->mentions);
    else if (status)
        fail_msg("%s %s: %s", l->file, l->name, bsmm_error_message());
    assert_string_equal(weight.name, l->name);
    assert_string_equal(weight.family, l->family);
    if (given(l->error)) return;
    assert_string_equal(weight.dtype, l->dtype);
    bsmm_format format = format_of(l->format);
    assert_memory_equal(&weight.format, &format, sizeof format);
    assert_int_equal(sscanf(l->shape, "%lldx%lld", &rows, &cols), 2);
    assert_int_equal(weight.rows, rows);
    assert_int_equal(weight.cols, cols);
    assert_int_equal(weight.batch, atoll(l->batch));
    check_values(l, file, index, &weight);
}

static void shape_text(const bsmm_tensor *tensor, char *text, size_t size) {
    snprintf(text, size, "scalar");
    size_t used = 0;
    for (uint32_t i = 0; i < tensor->ndim; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? "x" : "",
                                 (long long)tensor->shape[i]);
}

static void check_tensor_values(const line *l, const bsmm_tensor *tensor) {
    size_t count = 1;
    for (uint32_t i = 0; i < tensor->ndim; i++)
        count *= (size_t)tensor->shape[i];
    float *expected = expected_values(l->expected, count);
    double *got = malloc((count + 1) * sizeof *got);
    assert_non_null(got);
    bool swapped = tensor->order == BSMM_ORDER_COL && tensor->ndim == 2;
    size_t rows = swapped ? (size_t)tensor->shape[0] : 1, cols = count / (rows ? rows : 1);
    for (size_t i = 0; i < count; i++) {
        size_t stored_at = swapped ? i % cols * rows + i / cols : i;
        got[i] =
            bsmm_elem_decode(tensor->elem, bsmm_elem_load(tensor->elem, tensor->data, stored_at));
    }
    compare(l, got, expected, count);
    free(got);
    free(expected);
}

static void check_tensor(const line *l, const bsmm_file *file) {
    bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
    char shape[128];
    if (bsmm_file_tensor_find(file, l->name, &tensor)) fail_msg("%s", bsmm_error_message());
    assert_string_equal(tensor.dtype, l->dtype);
    shape_text(&tensor, shape, sizeof shape);
    assert_string_equal(shape, l->shape);
    if (given(l->expected)) check_tensor_values(l, &tensor);
}

static void check_line(const line *l) {
    bsmm_file *file;
    bsmm_status status = bsmm_file_open(fixture_path(l->file), &file);
    if (strcmp(l->kind, "open") == 0) {
        expect_failure(status, status_named(l->error), l->mentions);
        assert_null(file);
        return;
    }
    if (status) fail_msg("%s: %s", l->file, bsmm_error_message());
    if (strcmp(l->kind, "weight") == 0)
        check_weight(l, file);
    else if (strcmp(l->kind, "tensor") == 0)
        check_tensor(l, file);
    else
        fail_msg("%s: unknown kind", l->kind);
    bsmm_file_close(file);
}

static void test_manifest(void **state) {
    (void)state;
    size_t bytes, lines = 0;
    char *text = (char *)read_bytes(fixture_path("manifest.tsv"), &bytes);
    text[bytes] = 0;
    char *next = text;
    for (char *row; (row = strsep(&next, "\n")) && next;) {
        const char *cells[COLUMNS];
        for (int i = 0; i < COLUMNS; i++)
            assert_non_null(cells[i] = strsep(&row, "\t"));
        if (lines++ == 0) continue; /* The first line of the manifest is the table's heading. */
        line l;
        memcpy(&l, cells, sizeof l);
        check_line(&l);
    }
    assert_true(lines > 20);
    print_message("%zu lines of the manifest hold\n", lines - 1);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_manifest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
