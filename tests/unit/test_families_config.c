/* Tests config.json next to a model. Quark's tensors have the same names as those of other
 * quantization tools, and only config.json says which tool wrote them. config.json may be missing,
 * unreadable, or written by Python with NaN and repeated keys. */
#include "io/json.h"
#include "stored.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static const char *in(const char *folder, const char *name) {
    char joined[128];
    snprintf(joined, sizeof joined, "%s/%s", folder, name);
    return temp_path(joined);
}

static char *fixture_text(const char *fixture, const char *name, size_t *bytes) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", BSMM_FIXTURE_DIR, fixture, name);
    char *text = (char *)read_bytes(path, bytes);
    text[*bytes] = '\0';
    return text;
}

/* Opens a fixture's model in a folder with the given config.json, or without one if `config` is
 * NULL. Stores the model's first weight. */
static bsmm_status first_weight(const char *folder, const char *fixture, const char *config,
                                bsmm_weight *weight) {
    size_t bytes;
    bsmm_file *file;
    mkdir(temp_path(folder), 0755);
    char *model = fixture_text(fixture, "model.safetensors", &bytes);
    write_bytes(in(folder, "model.safetensors"), model, bytes);
    free(model);
    if (config) write_text(in(folder, "config.json"), config);
    if (bsmm_file_open(temp_path(folder), &file)) fail_msg("%s", bsmm_error_message());
    *weight = BSMM_INIT(bsmm_weight);
    bsmm_status status = bsmm_file_weight_at(file, 0, weight);
    bsmm_file_close(file);
    return status;
}

/* Returns the config.json of a Quark fixture with a text inserted before its first key. */
static char *config_with(const char *fixture, const char *front) {
    size_t bytes;
    char *config = fixture_text(fixture, "config.json", &bytes);
    char *text = malloc(bytes + strlen(front) + 1);
    assert_non_null(text);
    assert_int_equal(config[0], '{');
    sprintf(text, "{%s%s", front, config + 1);
    free(config);
    return text;
}

static void test_as_python_writes(void **state) {
    (void)state;
    static const char *const fronts[] = {
        "",
        "\"a\": NaN, \"b\": Infinity, \"c\": -Infinity,",
        "\"a\": [NaN,-Infinity,{\"b\":Infinity}], \"text\": \"NaN \\\" Infinity \\\\\",",
        "\"model_type\": 1, \"model_type\": 2,",
        "\"quantization_config\": {\"quant_method\": \"another\"},",
        "\"lone\": \"\\ud800\", \"low\": \"\\uDFFFx\",",
        "\"two\": \"\\uD83D\\ud83d\\uDE00\\\\udead\",",
        "\"large\": 123456789012345678901234567890, \"nul\": \"\\u0000\",",
    };
    static const char *const fixtures[] = {"quark_mxfp6_e2m3", "quark_mxfp4",
                                           "quark_legacy_mxfp6_e3m2"};
    static const char *const formats[] = {"mxfp6_e2m3", "mxfp4", "mxfp6_e3m2"};
    for (size_t i = 0; i < sizeof fixtures / sizeof fixtures[0]; i++)
        for (size_t k = 0; k < sizeof fronts / sizeof fronts[0]; k++) {
            bsmm_weight w;
            char *config = config_with(fixtures[i], fronts[k]);
            if (first_weight(fixtures[i], fixtures[i], config, &w))
                fail_msg("%s: %s", fronts[k], bsmm_error_message());
            assert_string_equal(bsmm_format_name(w.format), formats[i]);
            free(config);
        }
}

/* Tests a file that begins with a byte order mark, as Python writes it with the encoding utf-8-sig.
 */
static void test_byte_order_mark(void **state) {
    (void)state;
    bsmm_weight w;
    char *config = config_with("quark_mxfp4", ""), *marked = malloc(strlen(config) + 4);
    assert_non_null(marked);
    sprintf(marked, "\xEF\xBB\xBF%s", config);
    if (first_weight("marked", "quark_mxfp4", marked, &w)) fail_msg("%s", bsmm_error_message());
    assert_string_equal(w.family, "quark");
    free(marked);
    free(config);
}

/* Tests that half a surrogate pair becomes U+FFFD, that a whole pair stays, and that positions in
 * error messages count the original bytes. */
static void test_surrogates(void **state) {
    (void)state;
    char why[128];
    static const char text[] =
        "[\"\\ud800\", \"\\uD83D\\uDE00\", \"\\udc00\\ud800\", \"\\\\ud800\"]";
    static const char *const values[] = {"\xEF\xBF\xBD", "\xF0\x9F\x98\x80",
                                         "\xEF\xBF\xBD\xEF\xBF\xBD", "\\ud800"};
    json_t *root = bsmm_json_of_python(text, strlen(text), why, sizeof why);
    if (!root) fail_msg("%s", why);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(json_string_value(json_array_get(root, i)), values[i]);
    json_decref(root);
    assert_null(bsmm_json_of_python("\xEF\xBB\xBF[\"\\ud800\", x]", 16, why, sizeof why));
    assert_non_null(strstr(why, "byte 15"));
    assert_null(bsmm_json_of_python("[\"\\ud80", 7, why, sizeof why));
}

static void expect_doubt(const char *folder, const char *fixture, const char *config,
                         const char *mentions) {
    bsmm_weight w;
    expect_failure(first_weight(folder, fixture, config, &w), BSMM_E_FORMAT, mentions);
    assert_non_null(strstr(bsmm_error_message(), ".weight: config.json cannot be read: "));
}

static void test_unreadable(void **state) {
    (void)state;
    expect_doubt("cut", "quark_mxfp6_e2m3", "{\"quantization_config\": {", "byte 25");
    expect_doubt("empty", "quark_mxfp4", "", "byte 0");
    expect_doubt("words", "quark_mxfp4", "{\"a\": nan}", "byte");
    expect_doubt("legacy", "quark_legacy_mxfp4", "[", "byte 1");
    mkdir(temp_path("folder"), 0755);
    mkdir(in("folder", "config.json"), 0755);
    expect_doubt("folder", "quark_mxfp4", NULL, "not a regular file");
}

/* Tests a quantization_config in the metadata of the file. One config is no JSON. The other config
 * says that 4 elements take 3 bytes, but a row has 25 bytes. */
static void test_in_metadata(void **state) {
    (void)state;
    static const struct {
        const char *config, *mentions;
    } cases[] = {
        {"{", ".weight: metadata quantization_config cannot be read: byte 1"},
        {"{\\\"quant_method\\\":\\\"quark\\\",\\\"global_quant_config\\\":{\\\"weight\\\":"
         "{\\\"dtype\\\":\\\"fp6_e2m3\\\"}}}",
         "must be [..., rows, a multiple of 3]"},
    };
    static const stored tensors[] = {
        {.name = "a.weight", .dtype = "U8", .ndim = 2, .shape = {2, 25}, .bytes = 50},
        {.name = "a.weight_scale", .dtype = "U8", .ndim = 2, .shape = {2, 1}, .bytes = 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char metadata[256];
        bsmm_weight w = BSMM_INIT(bsmm_weight);
        snprintf(metadata, sizeof metadata, "{\"quantization_config\":\"%s\"}", cases[i].config);
        bsmm_file *file = open_stored(tensors, 2, metadata);
        assert_int_equal(bsmm_file_weight_count(file), 1);
        expect_failure(bsmm_file_weight_at(file, 0, &w), BSMM_E_FORMAT, cases[i].mentions);
        bsmm_file_close(file);
    }
}

/* Tests a model without config.json. Quark's mxfp6 tensors must be refused, because their format is
 * unknown without it. Quark's mxfp4 tensors are read like ModelOpt's, which have the same names and
 * types. */
static void test_absent(void **state) {
    (void)state;
    bsmm_weight w;
    expect_failure(first_weight("absent", "quark_mxfp6_e2m3", NULL, &w), BSMM_E_FORMAT,
                   "no quantization_config names their format");
    assert_int_equal(first_weight("none", "quark_mxfp4", "{\"model_type\": NaN}", &w), BSMM_OK);
    assert_string_equal(w.family, "modelopt");
}

/* Tests checkpoint families that the library recognizes by the names and types of their tensors.
 * They do not need a config.json. */
static void test_not_needed(void **state) {
    (void)state;
    bsmm_weight w;
    assert_int_equal(first_weight("deepseek", "deepseek", "{", &w), BSMM_OK);
    assert_int_equal(first_weight("nvfp4", "modelopt_nvfp4", "{", &w), BSMM_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_python_writes), cmocka_unit_test(test_byte_order_mark),
        cmocka_unit_test(test_surrogates),       cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_in_metadata),      cmocka_unit_test(test_absent),
        cmocka_unit_test(test_not_needed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
