/* Tests that the library reads back each weight that it has written to a checkpoint, with every
 * code in its place. The test covers every format, block shape, order and scale layout, and every
 * checkpoint family that can store the format. */
#include "operand.h"
#include "stored.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct write_case {
    /* `family` names the checkpoint family. NULL means the first family that can store the
     * format. */
    const char *family;
    const char *read_as;
    bsmm_matrix matrix;
    int64_t batch;
} write_case;

/* Fills a matrix with random codes of elements and scales, except for scales that a reader must
 * refuse. */
static void fill_random(const bsmm_matrix *m, rng *r) {
    uint8_t *data = m->data, *scales = m->scales;
    for (uint64_t i = 0; i < m->data_bytes; i++)
        data[i] = (uint8_t)rng_next(r);
    for (uint64_t i = 0; scales && i < m->scale_bytes; i++)
        scales[i] = (uint8_t)rng_next(r);
    if (m->global_scale) *m->global_scale = 1.0f + (float)rng_below(r, 1000);
}

static void write_weight(const write_case *c, const char *path, uint64_t seed) {
    bsmm_writer *writer;
    uint64_t index;
    rng r = {seed};
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    if (bsmm_writer_create(path, "safetensors", &writer) ||
        bsmm_writer_add_weight(writer, c->family, "layer.weight", &c->matrix, c->batch, &index) ||
        bsmm_writer_begin(writer))
        fail_msg("%s %s: %s", c->read_as, bsmm_format_name(c->matrix.format), bsmm_error_message());
    for (int64_t slice = 0; slice < c->batch; slice++) {
        assert_int_equal(bsmm_writer_weight(writer, index, slice, &m), BSMM_OK);
        assert_true(!m.global_scale || *m.global_scale == 1.0f);
        fill_random(&m, &r);
    }
    if (bsmm_writer_commit(writer)) fail_msg("%s", bsmm_error_message());
}

/* Generates again the random codes with which the weight was written, and compares them byte by
 * byte with the codes that were read. */
static void compare_slice(const bsmm_matrix *got, rng *r) {
    bsmm_matrix expected = *got;
    float global;
    expected.data = malloc(got->data_bytes + 1);
    expected.scales = got->scales ? malloc(got->scale_bytes + 1) : NULL;
    expected.global_scale = got->global_scale ? &global : NULL;
    assert_non_null(expected.data);
    fill_random(&expected, r);
    assert_memory_equal(got->data, expected.data, got->data_bytes);
    if (got->scales) assert_memory_equal(got->scales, expected.scales, got->scale_bytes);
    if (got->global_scale) assert_true(*got->global_scale == global);
    free(expected.data);
    free(expected.scales);
}

static void read_weight(const write_case *c, const char *path, uint64_t seed) {
    bsmm_file *file;
    uint64_t index;
    rng r = {seed};
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    if (bsmm_file_open(path, &file) || bsmm_file_weight_find(file, "layer", &index) ||
        bsmm_file_weight_at(file, index, &weight))
        fail_msg("%s %s: %s", c->read_as, bsmm_format_name(c->matrix.format), bsmm_error_message());
    assert_int_equal(bsmm_file_weight_count(file), 1);
    assert_string_equal(weight.family, c->read_as);
    assert_memory_equal(&weight.format, &c->matrix.format, sizeof weight.format);
    assert_int_equal(weight.mapped, 1);
    assert_int_equal(weight.batch, c->batch);
    assert_int_equal(weight.scale_layout, c->matrix.scale_layout);
    for (int64_t slice = 0; slice < c->batch; slice++) {
        assert_int_equal(bsmm_weight_matrix(file, index, slice, &m), BSMM_OK);
        assert_int_equal(m.rows, c->matrix.rows);
        assert_int_equal(m.cols, c->matrix.cols);
        assert_int_equal(m.order, c->matrix.order);
        assert_int_equal(m.scale_tile_rows, c->matrix.scale_tile_rows);
        assert_int_equal(m.scale_tile_cols, c->matrix.scale_tile_cols);
        compare_slice(&m, &r);
    }
    bsmm_file_close(file);
}

static void round_trip(write_case c) {
    static uint64_t seed;
    const char *path = temp_path("round.safetensors");
    if (!c.read_as) c.read_as = c.family;
    seed++;
    write_weight(&c, path, seed);
    read_weight(&c, path, seed);
}

static void test_families(void **state) {
    (void)state;
    static const struct {
        const char *family, *format;
    } pairs[] = {{"plain", "f32"},
                 {"plain", "f16"},
                 {"plain", "bf16"},
                 {"deepseek", "fp8_block128"},
                 {"deepseek", "fp8_block128_fnuz"},
                 {"modelopt", "nvfp4"},
                 {"compressed-tensors", "nvfp4"},
                 {"compressed-tensors", "mxfp4"},
                 {"compressed-tensors", "mxfp8"},
                 {"compressed-tensors", "fp8_block128"},
                 {"quark", "mxfp4"},
                 {"quark", "mxfp6_e2m3"},
                 {"quark", "mxfp6_e3m2"},
                 {"gpt-oss", "mxfp4"},
                 {"gpt-oss-hf", "mxfp4"}};
    static const int64_t shapes[][3] = {
        {1, 64, 1}, {130, 256, 1}, {3, 96, 4}, {0, 32, 1}, {2, 0, 1}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
            round_trip((write_case){
                .family = pairs[i].family,
                .matrix = describe(format_named(pairs[i].format), shapes[k][0], shapes[k][1]),
                .batch = shapes[k][2]});
}

/* Tests formats whose blocks have all columns or all rows of a matrix. Also tests mxfp6 of
 * compressed-tensors, which differs from mxfp4 only in the shapes of tensors. */
static void test_families_by_shape(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1, 64, 1},  {130, 256, 1}, {3, 96, 4},
                                        {7, 300, 1}, {2, 128, 1},   {128, 128, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const int64_t rows = shapes[i][0], cols = shapes[i][1];
        const uint32_t height = (uint32_t)rows, width = (uint32_t)cols;
        const bsmm_format channel = {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, width};
        const bsmm_format tensor = {BSMM_ELEM_E4M3, BSMM_SCALE_F32, height, width};
        round_trip((write_case){.family = "compressed-tensors",
                                .matrix = describe(channel, rows, cols),
                                .batch = shapes[i][2]});
        round_trip((write_case){.family = "compressed-tensors",
                                .matrix = describe(tensor, rows, cols),
                                .batch = shapes[i][2]});
        round_trip((write_case){
            .family = "modelopt", .matrix = describe(tensor, rows, cols), .batch = shapes[i][2]});
        if (cols % 32) continue;
        round_trip((write_case){.family = "compressed-tensors",
                                .matrix = describe(format_named("mxfp6_e2m3"), rows, cols),
                                .batch = shapes[i][2]});
    }
}

/* Tests a writer to which the caller names no checkpoint family. The writer must choose the first
 * family that can store the format. */
static void test_default_families(void **state) {
    (void)state;
    static const struct {
        const char *format, *family;
    } pairs[] = {{"f32", "plain"},
                 {"e5m2", "bsmm"},
                 {"e2m1", "bsmm"},
                 {"fp8_block128", "deepseek"},
                 {"fp8_group128", "bsmm"},
                 {"nvfp4", "modelopt"},
                 {"mxfp4", "compressed-tensors"},
                 {"mxfp8", "compressed-tensors"},
                 {"mxfp8_e5m2", "bsmm"},
                 {"mxfp6_e3m2", "quark"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        round_trip((write_case){.read_as = pairs[i].family,
                                .matrix = describe(format_named(pairs[i].format), 64, 128),
                                .batch = 1});
}

/* Tests bsmm's own checkpoint family with every element format, every scale format, odd sizes and
 * both orders. */
static void test_every_format(void **state) {
    (void)state;
    for (uint32_t elem = next_elem(BSMM_ELEM_NONE); elem; elem = next_elem(elem))
        for (uint32_t scale = BSMM_SCALE_NONE; scale < BSMM_SCALE_COUNT; scale++)
            for (uint32_t order = BSMM_ORDER_ROW; order <= BSMM_ORDER_COL; order++) {
                bsmm_format format = {elem, scale, scale ? 2 : 0, scale ? 20 : 0};
                write_case c = {.family = "bsmm", .matrix = describe(format, 13, 33), .batch = 2};
                c.matrix.order = order;
                round_trip(c);
            }
}

static void test_every_layout(void **state) {
    (void)state;
    static const char *const formats[] = {"mxfp4", "nvfp4", "mxfp6_e2m3", "fp8_group128"};
    for (size_t f = 0; f < 4; f++)
        for (uint32_t layout = BSMM_LAYOUT_ROW_MAJOR; layout < BSMM_LAYOUT_COUNT; layout++)
            for (int64_t batch = 1; batch <= 3; batch += 2) {
                write_case c = {.family = "bsmm",
                                .matrix = describe(format_named(formats[f]), 140, 1056),
                                .batch = batch};
                c.matrix.scale_layout = layout;
                if (layout == BSMM_LAYOUT_TILE_CONTIGUOUS)
                    c.matrix.scale_tile_rows = 16, c.matrix.scale_tile_cols = 3;
                bsmm_matrix check = c.matrix;
                uint64_t bytes;
                /* This layout does not support this block shape, so the combination is skipped. */
                if (bsmm_scale_bytes(&check, &bytes)) continue;
                round_trip(c);
            }
}

/* Tests that a second-level scale is written if the caller requests one, and not otherwise. */
static void test_global_scales(void **state) {
    (void)state;
    float global = 3;
    bsmm_tensor t = BSMM_INIT(bsmm_tensor);
    for (int asked = 0; asked < 2; asked++) {
        bsmm_file *file;
        write_case c = {
            .read_as = "bsmm", .matrix = describe(format_named("mxfp4"), 4, 64), .batch = 1};
        c.family = "bsmm";
        if (asked) c.matrix.global_scale = &global;
        round_trip(c);
        assert_int_equal(bsmm_file_open(temp_path("round.safetensors"), &file), BSMM_OK);
        assert_int_equal(bsmm_file_tensor_find(file, "layer.weight_scale_2", &t),
                         asked ? BSMM_OK : BSMM_E_NOT_FOUND);
        bsmm_file_close(file);
    }
}

/* Tests a file with two kinds of Quark weights. config.json says which layer has which kind. */
static void test_quark_mixture(void **state) {
    (void)state;
    static const char *const formats[] = {"mxfp6_e2m3", "mxfp4", "mxfp6_e3m2", "mxfp6_e2m3"};
    bsmm_writer *writer;
    bsmm_file *file;
    char name[24];
    assert_int_equal(bsmm_writer_create(temp_path("mix"), "safetensors", &writer), BSMM_OK);
    for (int i = 0; i < 4; i++) {
        bsmm_matrix m = describe(format_named(formats[i]), 4, 64);
        snprintf(name, sizeof name, "l%d.weight", i);
        assert_int_equal(bsmm_writer_add_weight(writer, "quark", name, &m, 1, NULL), BSMM_OK);
    }
    assert_int_equal(bsmm_writer_begin(writer), BSMM_OK);
    assert_int_equal(bsmm_writer_commit(writer), BSMM_OK);
    assert_int_equal(bsmm_file_open(temp_path("mix"), &file), BSMM_OK);
    for (int i = 0; i < 4; i++) {
        uint64_t index;
        bsmm_weight weight = BSMM_INIT(bsmm_weight);
        snprintf(name, sizeof name, "l%d", i);
        assert_int_equal(bsmm_file_weight_find(file, name, &index), BSMM_OK);
        assert_int_equal(bsmm_file_weight_at(file, index, &weight), BSMM_OK);
        assert_string_equal(weight.family, "quark");
        assert_string_equal(bsmm_format_name(weight.format), formats[i]);
    }
    bsmm_file_close(file);
}

/* Tests that the writer refuses a format that the checkpoint family cannot represent. */
static void test_refusals(void **state) {
    (void)state;
    static float global = 2;
    bsmm_writer *writer;
    bsmm_matrix m = describe(format_named("mxfp4"), 4, 64);
    assert_int_equal(bsmm_writer_create(temp_path("refused"), "safetensors", &writer), BSMM_OK);
#define ADD(family) bsmm_writer_add_weight(writer, family, "w", &m, 1, NULL)
    expect_failure(ADD("nobody"), BSMM_E_NOT_FOUND, "\"nobody\"");
    expect_failure(ADD("quark-legacy"), BSMM_E_UNSUPPORTED, "only read");
    expect_failure(ADD("gguf"), BSMM_E_UNSUPPORTED, "only GGUF files have it");
    expect_failure(ADD("modelopt"), BSMM_E_UNSUPPORTED, "modelopt cannot hold mxfp4");
    expect_failure(ADD("plain"), BSMM_E_UNSUPPORTED, "no scales");
    m.global_scale = &global;
    expect_failure(ADD("quark"), BSMM_E_UNSUPPORTED, "no global scale");
    m.global_scale = NULL;
    m.cols = 33;
    expect_failure(ADD("quark"), BSMM_E_UNSUPPORTED, "number of columns");
    m.cols = 48;
    expect_failure(ADD("gpt-oss"), BSMM_E_UNSUPPORTED, "number of columns");
    m.scale_layout = BSMM_LAYOUT_NV_128X4;
    expect_failure(ADD("quark"), BSMM_E_UNSUPPORTED, "row-major scales");
    m.order = BSMM_ORDER_COL;
    expect_failure(ADD("quark"), BSMM_E_UNSUPPORTED, "only row-major matrices can be stored");
    m.format.elem = 99;
    expect_failure(ADD("bsmm"), BSMM_E_INVALID, "matrix.format.elem");
    m = describe(format_named("e4m3"), 4, 64);
    expect_failure(ADD("plain"), BSMM_E_UNSUPPORTED, "f32, f16 and bf16");
#undef ADD
    expect_failure(bsmm_writer_add_weight(writer, NULL, "w", &m, 0, NULL), BSMM_E_INVALID, "batch");
    expect_failure(bsmm_writer_add_weight(writer, NULL, "", &m, 1, NULL), BSMM_E_INVALID, "name");
    m.rows = m.cols = INT64_MAX / 64;
    expect_failure(bsmm_writer_add_weight(writer, NULL, "w", &m, 1, NULL), BSMM_E_INVALID,
                   "overflows");
    m = describe(format_named("mxfp4"), 1 << 20, 1 << 20);
    expect_failure(bsmm_writer_add_weight(writer, NULL, "w", &m, INT64_MAX, NULL), BSMM_E_INVALID,
                   "overflows");
    bsmm_writer_abort(writer);
}

/* Tests a weight of which the writer refuses a tensor. The file must then contain none of the
 * weight's tensors. */
static void test_half_added(void **state) {
    (void)state;
    bsmm_writer *writer;
    int64_t one = 1;
    bsmm_matrix m = describe(format_named("mxfp4"), 4, 64);
    assert_int_equal(bsmm_writer_create(temp_path("half"), "safetensors", &writer), BSMM_OK);
    assert_int_equal(bsmm_writer_add_tensor(writer, "w_scale", "U8", 1, &one, NULL), BSMM_OK);
    expect_failure(bsmm_writer_add_weight(writer, "bsmm", "w", &m, 1, NULL), BSMM_E_INVALID,
                   "\"w_scale\" was added before");
    assert_int_equal(bsmm_writer_add_tensor(writer, "w", "U8", 1, &one, NULL), BSMM_OK);
    assert_int_equal(bsmm_writer_begin(writer), BSMM_OK);
    assert_int_equal(bsmm_writer_commit(writer), BSMM_OK);
}

/* Reads a file whose metadata declare a weight. Reading must fail with a message that has the text
 * `mentions`, or succeed if `mentions` is NULL. */
static void check_declaration(const char *declaration, const char *mentions) {
    static const stored tensors[] = {
        {.name = "w", .dtype = "F4", .ndim = 2, .shape = {4, 64}, .bytes = 128},
        {.name = "w_scale", .dtype = "F8_E8M0", .ndim = 2, .shape = {4, 2}, .bytes = 8}};
    char metadata[1024] = "{\"bsmm.w\":\"", *to = metadata + strlen(metadata);
    for (const char *from = declaration; *from; from++) {
        if (*from == '"') *to++ = '\\';
        *to++ = *from;
    }
    memcpy(to, "\"}", 3);
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    bsmm_file *file = open_stored(tensors, 2, metadata);
    bsmm_status status = bsmm_file_weight_at(file, 0, &weight);
    if (mentions)
        expect_failure(status, BSMM_E_FORMAT, mentions);
    else if (status)
        fail_msg("%s", bsmm_error_message());
    assert_string_equal(weight.family, "bsmm");
    bsmm_file_close(file);
}

/* Tests a file whose metadata declare other formats than the stored tensors have. Reading it must
 * return an error. */
static void test_broken_declarations(void **state) {
    (void)state;
    static const struct {
        const char *declaration, *mentions;
    } cases[] = {
        {"{", "metadata bsmm.w"},
        {"{}", "bsmm.w.elem: is missing"},
#define D(scale, block, batch, rows, cols, order, layout, tile)                                    \
    "{\"elem\":\"e2m1\",\"scale\":\"" scale "\",\"block\":" block ",\"batch\":" batch              \
    ",\"rows\":" rows ",\"cols\":" cols ",\"order\":\"" order "\",\"layout\":\"" layout            \
    "\",\"tile\":" tile ",\"global\":\"multiplier\"}"
        {D("e8m0", "[1,32]", "0", "4", "64", "row", "row_major", "[0,0]"), "w.batch: value is 0"},
        {D("e8m0", "[1,32]", "1", "-4", "64", "row", "row_major", "[0,0]"), "rows: value is -4"},
        {D("e8m0", "[1,32]", "1", "4", "64", "row", "row_major", "[1,1]"), "scale_tile_rows"},
        {D("e8m0", "[1,32]", "1", "5", "64", "row", "row_major", "[0,0]"), "w: has 128 bytes"},
        {D("e8m0", "[1,32]", "9", "4", "64", "row", "row_major", "[0,0]"), "w: has 128 bytes"},
        {D("e8m0", "[1,32]", "9223372036854775807", "4", "64", "row", "row_major", "[0,0]"),
         "w: has 128 bytes"},
        {D("e8m0", "[1,32]", "1", "4", "64", "row", "nv_128x4", "[0,0]"),
         "w_scale: has 8 bytes; the declared layout takes 512"},
        {D("f32", "[1,32]", "1", "4", "64", "row", "row_major", "[0,0]"),
         "w_scale.dtype: value is F8_E8M0; must be F32"},
        {D("e8m0", "[1,32]", "1", "4", "64", "row", "row_major", "[0,0]"), NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_declaration(cases[i].declaration, cases[i].mentions);
}

/* Each entry has a field of a declaration, a valid value, and invalid values. The last invalid
 * value is NULL: it stands for a missing field, and it ends the list. */
static const struct {
    const char *name, *value, *wrong[6];
} fields[] = {
    {"elem", "\"e2m1\"", {"1", "\"e9m9\"", "\"e8m0\""}},
    {"scale", "\"e8m0\"", {"1", "\"e5m0\""}},
    {"block", "[1,32]", {"32", "[1]", "[1,32,1]", "[1,-1]", "[1.0,32]"}},
    {"batch", "1", {"\"1\"", "1.0", "null"}},
    {"rows", "4", {"\"4\"", "4.0", "null"}},
    {"cols", "64", {"\"64\"", "64.0", "null"}},
    {"order", "\"row\"", {"0", "\"diagonal\""}},
    {"layout", "\"row_major\"", {"0", "\"spiral\""}},
    {"tile", "[0,0]", {"0", "[0]", "[4294967296,0]", "[-1,0]", "[0,\"0\"]"}},
    {"global", "\"multiplier\"", {"0", "\"factor\""}},
};

/* Reads a declaration in which one field has another value. If the value is NULL, the field is
 * missing. The message must name the field. */
static void check_field(size_t field, const char *value) {
    char text[512] = "", mentions[96];
    for (size_t i = 0; i < BSMM_COUNT(fields); i++)
        if (i != field || value)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%c\"%s\":%s",
                     text[0] ? ',' : '{', fields[i].name, i == field ? value : fields[i].value);
    snprintf(mentions, sizeof mentions, "metadata bsmm.w.%s: is missing or not a value of its kind",
             fields[field].name);
    check_declaration(strcat(text, "}"), mentions);
}

static void test_wrong_fields(void **state) {
    (void)state;
    for (size_t i = 0; i < BSMM_COUNT(fields); i++) {
        size_t wrong = 0;
        do
            check_field(i, fields[i].wrong[wrong]);
        while (fields[i].wrong[wrong++]);
    }
}

static bool has_word(const char *words, const char *word) {
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (!at[length] || strchr(" ,", at[length])))
            return true;
    return false;
}

/* Checks that the writer accepts exactly the formats in the library's table entry of a checkpoint
 * family, and that the reader reads them. */
static void check_written(const bsmm_family_info *info, bsmm_writer *writer, const char *format) {
    bsmm_matrix m = describe(format_named(format), 128, 512);
    bool takes = bsmm_writer_add_weight(writer, info->name, format, &m, 1, NULL) == BSMM_OK;
    bool all = strcmp(info->name, "bsmm") == 0;
    if (takes != (all || has_word(info->written, format)))
        fail_msg("%s %s %s", info->name, takes ? "writes" : "does not write", format);
    if (takes && !all) assert_true(has_word(info->formats, format));
}

static void check_all_written(const bsmm_family_info *info) {
    bsmm_writer *writer;
    bsmm_preset_info preset = BSMM_INIT(bsmm_preset_info);
    bsmm_elem_info elem = BSMM_INIT(bsmm_elem_info);
    const char *kind = strcmp(info->name, "gguf") ? "safetensors" : "gguf";
    assert_int_equal(bsmm_writer_create(temp_path("table"), kind, &writer), BSMM_OK);
    for (uint32_t i = 0; bsmm_preset_at(i, &preset) == BSMM_OK; i++)
        check_written(info, writer, preset.name);
    for (uint32_t i = 0; bsmm_elem_at(i, &elem) == BSMM_OK; i++)
        if (elem.elem != BSMM_ELEM_E8M0) check_written(info, writer, elem.name);
    assert_int_equal(info->writes, info->written[0] != '\0');
    bsmm_writer_abort(writer);
}

/* Tests the table of checkpoint families. Names must be unique, and the writer must accept the
 * listed formats. */
static void test_table(void **state) {
    (void)state;
    bsmm_family_info info = BSMM_INIT(bsmm_family_info);
    unsigned count = 0, writers = 0;
    for (; bsmm_family_at(count, &info) == BSMM_OK; count++) {
        assert_true(info.name[0] && info.formats[0] && info.detected_by[0] && info.source[0]);
        writers += info.writes;
        check_all_written(&info);
    }
    assert_int_equal(count, 11);
    assert_int_equal(writers, 9);
    expect_failure(bsmm_family_at(count, &info), BSMM_E_NOT_FOUND, "11 families");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families),         cmocka_unit_test(test_families_by_shape),
        cmocka_unit_test(test_default_families), cmocka_unit_test(test_every_format),
        cmocka_unit_test(test_every_layout),     cmocka_unit_test(test_global_scales),
        cmocka_unit_test(test_quark_mixture),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_half_added),       cmocka_unit_test(test_broken_declarations),
        cmocka_unit_test(test_wrong_fields),     cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
