/* Tests the status and the message that each error of a GPU driver gets. The numbers come from
 * NVIDIA's cuda.h and AMD's hip_runtime_api.h. The test does not use the library's own names of the
 * numbers, because these might contain the mistake that the test looks for. */
#include "amdgpu/runtime/driver.h"
#include "cuda/runtime/driver.h"
#include "message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct gpu_error {
    int number;
    bsmm_status status;
    const char *advice;
} gpu_error;

/* These are errors of type CUresult. */
static const gpu_error cuda_errors[] = {
    {1, BSMM_E_DEVICE, "no more is known"},
    {2, BSMM_E_MEMORY, "no memory left"},
    {3, BSMM_E_DEVICE, "was forked"},
    {34, BSMM_E_NOT_FOUND, "the toolkit's stub"},
    {46, BSMM_E_DEVICE, "holds the device exclusively"},
    {100, BSMM_E_NOT_FOUND, "sees no NVIDIA GPU"},
    {101, BSMM_E_NOT_FOUND, "there is no such GPU"},
    {200, BSMM_E_UNSUPPORTED, "older than the toolkit"},
    {201, BSMM_E_DEVICE, "primary context was destroyed"},
    {209, BSMM_E_UNSUPPORTED, "not compiled for this GPU's architecture"},
    {218, BSMM_E_UNSUPPORTED, "does not take the kernel's PTX"},
    {221, BSMM_E_UNSUPPORTED, "libnvidia-ptxjitcompiler.so.1 is missing"},
    {222, BSMM_E_UNSUPPORTED, "older than the toolkit"},
    {400, BSMM_E_INVALID, "none of this device"},
    {700, BSMM_E_DEVICE, "outside its memory"},
    {716, BSMM_E_DEVICE, "misaligned address"},
    {719, BSMM_E_DEVICE, "an earlier kernel of this process failed"},
    {803, BSMM_E_DEVICE, "differ in version"},
    {900, BSMM_E_INVALID, "is being captured"},
    {901, BSMM_E_DEVICE, "no more is known"},
};

/* These are errors of type hipError_t. */
static const gpu_error hip_errors[] = {
    {1, BSMM_E_DEVICE, "AMD's text"},
    {2, BSMM_E_MEMORY, "no memory left"},
    {35, BSMM_E_UNSUPPORTED, "older than libamdhip64.so"},
    {100, BSMM_E_NOT_FOUND, "sees no AMD GPU"},
    {101, BSMM_E_NOT_FOUND, "there is no such GPU"},
    {209, BSMM_E_UNSUPPORTED, "not compiled for this GPU's architecture"},
    {700, BSMM_E_DEVICE, "outside its memory"},
    {900, BSMM_E_INVALID, "is being captured"},
    {901, BSMM_E_DEVICE, "AMD's text"},
};

static void expect_error(const gpu_error *e, const char *name, bsmm_status status) {
    char start[64];
    assert_int_equal(status, e->status);
    snprintf(start, sizeof start, "call: %s (%d): ", name, e->number);
    expect_message(start);
    expect_message(e->advice);
}

static void errors_of_nvidia(void **state) {
    (void)state;
    for (size_t i = 0; i < BSMM_COUNT(cuda_errors); i++)
        expect_error(&cuda_errors[i], "unknown error",
                     bsmm_cuda_fail(NULL, cuda_errors[i].number, "call"));
}

static const char *name_of(hipError_t error) {
    (void)error;
    return "AMD's name";
}

static const char *text_of(hipError_t error) {
    (void)error;
    return "AMD's text";
}

static void errors_of_amd(void **state) {
    (void)state;
    const bsmm_hip_driver driver = {.hipGetErrorName = name_of, .hipGetErrorString = text_of};
    for (size_t i = 0; i < BSMM_COUNT(hip_errors); i++)
        expect_error(&hip_errors[i], "AMD's name",
                     bsmm_hip_fail(&driver, hip_errors[i].number, "call"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_nvidia),
        cmocka_unit_test(errors_of_amd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
