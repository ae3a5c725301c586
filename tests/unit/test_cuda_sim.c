/* Tests simulated NVIDIA GPUs: their names, their memory, and kernels on several of them at once.
 * Pointers that do not belong to a GPU must be refused. */
#include "core/describe.h"
#include "cuda/runtime/device.h"
#include "message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int find_simulator(void **state) {
    (void)state;
    const bsmm_cuda_driver *driver;
    if (bsmm_cuda_simulator_get(&driver) == BSMM_OK) return 0;
    print_message("%s\n", bsmm_error_message());
    return -1;
}

static void names_are_taken_apart(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int capability;
        bsmm_status status;
    } cases[] = {
        {"sim:sm_80", 80, BSMM_OK},
        {"sim:sm_90a", 90, BSMM_OK},
        {"sim:sm_100", 100, BSMM_OK},
        {"sim:sm_120", 120, BSMM_OK},
        {"sim:sm_100:1", 100, BSMM_OK},
        {"sim:sm_80:15", 80, BSMM_OK},
        {"sim:sm_80:16", 0, BSMM_E_NOT_FOUND},
        {"sim:sm_90", 0, BSMM_E_INVALID},
        {"sim:sm_1000", 0, BSMM_E_INVALID},
        {"sim:sm_100:x", 0, BSMM_E_INVALID},
    };
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        const bsmm_backend *backend;
        const void *device;
        const bsmm_status status = bsmm_device_open(cases[i].name, &backend, &device);
        if (status != cases[i].status)
            fail_msg("%s: %d, not %d", cases[i].name, (int)status, (int)cases[i].status);
        if (status == BSMM_E_INVALID) expect_message("sim:gfx950, sim:sm_80, sim:sm_90a");
        if (status != BSMM_OK) continue;
        const bsmm_cuda_device *d = device;
        assert_int_equal(d->capability, cases[i].capability);
        assert_string_equal(d->device, cases[i].name);
    }
}

static void every_model_is_listed(void **state) {
    (void)state;
    bsmm_local_device info = BSMM_INIT(bsmm_local_device);
    uint32_t found = 0;
    for (uint32_t i = 0; bsmm_local_device_at(i, &info) == BSMM_OK; i++) {
        if (strncmp(info.name, "sim:sm_", 7) != 0) continue;
        assert_string_equal(info.name + 4, bsmm_cuda_models[found]);
        assert_memory_equal(info.features, info.name + 4, strlen(info.name + 4));
        found++;
    }
    assert_int_equal(found, 4);
}

static bsmm_exec exec_of(const char *device) {
    return (bsmm_exec){.struct_size = sizeof(bsmm_exec), .device = device};
}

/* On each device, a kernel stores five uint32 in memory. The test copies them back and compares
 * them. */
static void kernels_run_on_each_device(void **state) {
    (void)state;
    static const char *const names[] = {"sim:sm_80", "sim:sm_90a", "sim:sm_100", "sim:sm_120",
                                        "sim:sm_100:1"};
    static const uint32_t sent[5] = {1, 0, 0xffffffff, 4, 5};
    const bsmm_gpu_image *image;
    if (bsmm_gpu_image_find("sm80/words", NULL, NULL, &image) != BSMM_OK) skip();
    for (size_t i = 0; i < BSMM_COUNT(names); i++) {
        const bsmm_exec exec = exec_of(names[i]);
        const bsmm_backend *backend;
        const void *device;
        uint32_t got[6];
        void *memory;
        assert_int_equal(bsmm_device_open(names[i], &backend, &device), BSMM_OK);
        assert_int_equal(bsmm_allocate_memory(names[i], sizeof got, &memory), BSMM_OK);
        assert_int_equal(bsmm_fill_memory(&exec, memory, 0xA5, sizeof got), BSMM_OK);
        if (backend->store(device, NULL, memory, sent, sizeof sent) != BSMM_OK)
            fail_msg("%s: %s", names[i], bsmm_error_message());
        assert_int_equal(bsmm_copy_memory(&exec, got, memory, sizeof got), BSMM_OK);
        assert_memory_equal(got, sent, sizeof sent);
        assert_int_equal(got[5], 0xA5A5A5A5);
        assert_int_equal(bsmm_free_memory(names[i], memory), BSMM_OK);
    }
}

/* Tests that a simulated GPU gets PTX even if a real GPU would get a cubin. The simulator executes
 * only PTX. */
static void images_are_ptx(void **state) {
    (void)state;
    static const struct {
        const char *device, *module, *code;
    } cases[] = {
        {"sim:sm_80", "sm80/words", "compute_80"},       {"sim:sm_90a", "sm80/words", "compute_80"},
        {"sim:sm_90a", "sm90a/pack_fp8", "compute_90a"}, {"sim:sm_100", "sm80/words", "compute_80"},
        {"sim:sm_100", "sm90a/pack_fp8", NULL},
    };
    const bsmm_gpu_image *image;
    if (bsmm_gpu_image_find("sm80/words", NULL, NULL, &image) != BSMM_OK) skip();
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        const bsmm_backend *backend;
        const void *device;
        assert_int_equal(bsmm_device_open(cases[i].device, &backend, &device), BSMM_OK);
        assert_int_equal(bsmm_cuda_image_find(device, cases[i].module, &image), BSMM_OK);
        if (cases[i].code)
            assert_string_equal(image->code, cases[i].code);
        else
            assert_null(image);
    }
}

static void pointers_of_others_are_named(void **state) {
    (void)state;
    static float host[4];
    const bsmm_exec exec = exec_of("sim:sm_100");
    void *memory;
    assert_int_equal(bsmm_allocate_memory("sim:sm_100:1", 64, &memory), BSMM_OK);
    assert_int_equal(bsmm_fill_memory(&exec, memory, 0, 64), BSMM_E_INVALID);
    expect_message("memory of another simulator");
    expect_message("must be of sim:sm_100");
    assert_int_equal(bsmm_fill_memory(&exec, host, 0, 16), BSMM_E_INVALID);
    expect_message("host memory; must be memory of sim:sm_100");
    assert_int_equal(bsmm_free_memory("sim:sm_100:1", memory), BSMM_OK);
    assert_int_equal(bsmm_allocate_memory("sim:sm_100", 1ull << 50, &memory), BSMM_E_MEMORY);
    expect_message("cuMemAlloc");
}

static void the_callers_context_stays_current(void **state) {
    (void)state;
    const bsmm_cuda_device *first, *second;
    CUcontext current = NULL;
    void *memory;
    assert_int_equal(bsmm_cuda_simulated_get(0, &first), BSMM_OK);
    assert_int_equal(bsmm_cuda_simulated_get(1, &second), BSMM_OK);
    assert_int_equal(bsmm_cuda_enter(first), BSMM_OK);
    assert_int_equal(bsmm_allocate_memory(second->device, 64, &memory), BSMM_OK);
    assert_int_equal(first->driver->cuCtxGetCurrent(&current), CUDA_SUCCESS);
    assert_ptr_equal(current, first->context);
    assert_int_equal(bsmm_free_memory(second->device, memory), BSMM_OK);
    bsmm_cuda_leave(first);
}

/* Tests that "cuda:0" still means NVIDIA's driver after the process has opened the simulator,
 * although the simulator's library has the same file name as the driver. */
static void the_simulator_is_no_cuda_device(void **state) {
    (void)state;
    const bsmm_cuda_driver *driver;
    if (bsmm_cuda_driver_get(&driver) == BSMM_OK) assert_null(driver->bsmm_sim_device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_taken_apart),
        cmocka_unit_test(every_model_is_listed),
        cmocka_unit_test(kernels_run_on_each_device),
        cmocka_unit_test(images_are_ptx),
        cmocka_unit_test(pointers_of_others_are_named),
        cmocka_unit_test(the_callers_context_stays_current),
        cmocka_unit_test(the_simulator_is_no_cuda_device),
    };
    return cmocka_run_group_tests(tests, find_simulator, NULL);
}
