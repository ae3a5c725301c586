/* Tests the function that returns the tensors that store a weight, e.g. its codes and its scales.
 */
#include "bsmm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bsmm_file *open_fixture(const char *path) {
    bsmm_file *file = NULL;
    assert_int_equal(bsmm_file_open(path, &file), BSMM_OK);
    return file;
}

static const char *name_of(const bsmm_file *file, uint64_t tensor) {
    bsmm_tensor info = BSMM_INIT(bsmm_tensor);
    assert_int_equal(bsmm_file_tensor_at(file, tensor, &info), BSMM_OK);
    return info.name;
}

static void test_parts(void **state) {
    (void)state;
    bsmm_file *file = open_fixture(BSMM_FIXTURE_DIR "/modelopt_nvfp4/model.safetensors");
    uint64_t index, tensors[BSMM_WEIGHT_TENSORS];
    assert_int_equal(bsmm_file_weight_find(file, "lm_head", &index), BSMM_OK);
    assert_int_equal(bsmm_weight_tensors(file, index, tensors), BSMM_OK);
    assert_string_equal(name_of(file, tensors[0]), "lm_head.weight");
    assert_string_equal(name_of(file, tensors[1]), "lm_head.weight_scale");
    assert_string_equal(name_of(file, tensors[2]), "lm_head.weight_scale_2");
    bsmm_file_close(file);
}

static void test_missing_parts(void **state) {
    (void)state;
    bsmm_file *file = open_fixture(BSMM_FIXTURE_DIR "/gpt_oss.safetensors");
    uint64_t index, tensors[BSMM_WEIGHT_TENSORS];
    assert_int_equal(bsmm_file_weight_find(file, "block.0.mlp.mlp1_bias", &index), BSMM_OK);
    assert_int_equal(bsmm_weight_tensors(file, index, tensors), BSMM_OK);
    assert_string_equal(name_of(file, tensors[0]), "block.0.mlp.mlp1_bias");
    assert_true(tensors[1] == BSMM_NO_TENSOR && tensors[2] == BSMM_NO_TENSOR);
    assert_int_equal(bsmm_file_weight_find(file, "block.0.mlp.mlp1_weight", &index), BSMM_OK);
    assert_int_equal(bsmm_weight_tensors(file, index, tensors), BSMM_OK);
    assert_string_equal(name_of(file, tensors[1]), "block.0.mlp.mlp1_weight.scales");
    assert_true(tensors[2] == BSMM_NO_TENSOR);
    bsmm_file_close(file);
}

static void test_bad_arguments(void **state) {
    (void)state;
    bsmm_file *file = open_fixture(BSMM_FIXTURE_DIR "/gpt_oss.safetensors");
    uint64_t tensors[BSMM_WEIGHT_TENSORS];
    uint64_t count = bsmm_file_weight_count(file);
    assert_int_equal(bsmm_weight_tensors(NULL, 0, tensors), BSMM_E_INVALID);
    assert_int_equal(bsmm_weight_tensors(file, 0, NULL), BSMM_E_INVALID);
    assert_int_equal(bsmm_weight_tensors(file, count, tensors), BSMM_E_NOT_FOUND);
    bsmm_file_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_missing_parts),
        cmocka_unit_test(test_bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
