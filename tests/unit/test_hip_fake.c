/* Tests how the host code uses AMD's driver. The driver is fake (tests/fake_hip), so the test needs
 * no GPU. The test makes every driver function fail once, and passes pointers to memory that does
 * not belong to the device. */
#include "../fake_hip/fake_hip.h"
#include "amdgpu/runtime/device.h"
#include "core/describe.h"
#include "fake.h"
#include "message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

extern const bsmm_backend bsmm_backend_hip;
static fake_hip *gpu;
/* `fake` points to the part of the fake driver's state that all fake drivers have. */
static fake_driver *fake;

static int find_fake(void **state) {
    (void)state;
    gpu = fake_find("libamdhip64.so.6", "fake_hip_state");
    fake = gpu ? &gpu->driver : NULL;
    return fake ? 0 : -1;
}

/* Checks that the current HIP device is the same after a call as before, even if a driver function
 * failed. */
static int check_balance(void **state) {
    (void)state;
    fake->failing = NULL;
    fake->owner = 0;
    const int current = gpu->current;
    gpu->current = 0;
    return current;
}

static bool fails_as(const char *entry, hipError_t error, bsmm_status wanted) {
    const bsmm_hip_device *device;
    fake->failing = entry;
    fake->failure = error;
    const bool same = bsmm_hip_device_get(0, &device) == wanted && !device &&
                      strstr(bsmm_error_message(), entry) != NULL;
    fake->failing = NULL;
    return same;
}

/* Tests a driver that does not start. A process cannot start the driver a second time, so each
 * case runs in a child process. */
static void a_driver_that_does_not_start(void **state) {
    (void)state;
    static const char *const entries[] = {"hipInit", "hipRuntimeGetVersion"};
    for (size_t i = 0; i < BSMM_COUNT(entries); i++) {
        pid_t child = fork();
        if (child == 0) {
            const bsmm_hip_device *device;
            const bool same = fails_as(entries[i], hipErrorNoDevice, BSMM_E_NOT_FOUND) &&
                              bsmm_hip_device_get(0, &device) == BSMM_E_NOT_FOUND &&
                              strstr(bsmm_error_message(), "/dev/kfd");
            _exit(same ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

/* Tests that the library recognizes device memory with HIP 5, which uses other numbers for the
 * types of memory. A process reads the version only once, so the test runs in a child process. */
static void device_memory_of_hip_5(void **state) {
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        const bsmm_backend *backend;
        const void *device;
        gpu->version = 50700000;
        bool same = bsmm_device_open("hip:0", &backend, &device) == BSMM_OK;
        void *memory = same ? fake_upload("hip:0", 64) : NULL;
        same = same && backend->check_pointer(device, memory, "x") == BSMM_OK &&
               backend->check_pointer(device, &backend, "x") == BSMM_E_INVALID;
        _exit(same ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Tests that the library does not remember a failed search for devices. The next call must find
 * the device. */
static void devices_that_fail_once(void **state) {
    (void)state;
    static const char *const entries[] = {"hipGetDeviceCount", "hipDeviceGetName",
                                          "hipDeviceGetAttribute", "hipDeviceTotalMem"};
    const bsmm_hip_device *device, *again;
    for (size_t i = 0; i < BSMM_COUNT(entries); i++) {
        assert_true(fails_as(entries[i], hipErrorOutOfMemory, BSMM_E_MEMORY));
        expect_message("fakeError2");
    }
    assert_int_equal(bsmm_hip_device_get(0, &device), BSMM_OK);
    assert_int_equal(bsmm_hip_device_get(0, &again), BSMM_OK);
    assert_ptr_equal(device, again);
    assert_string_equal(device->name, "Fake AMD GPU 0");
    assert_string_equal(device->arch, "gfx942");
    assert_int_equal(device->compute_units, 304);
}

static void devices_are_listed(void **state) {
    (void)state;
    bsmm_local_device info = BSMM_INIT(bsmm_local_device);
    int found = 0;
    for (uint32_t i = 0; bsmm_local_device_at(i, &info) == BSMM_OK; i++) {
        if (strncmp(info.name, "hip:", 4) != 0) continue;
        assert_int_equal(info.name[4], '0' + found);
        assert_string_equal(info.title, found ? "Fake AMD GPU 1" : "Fake AMD GPU 0");
        assert_string_equal(info.features, "gfx942 memory:1GiB l2:4MiB hip:6.3");
        found++;
    }
    assert_int_equal(found, 2);
}

static void devices_that_are_not_there(void **state) {
    (void)state;
    const bsmm_backend *backend;
    const void *device;
    assert_int_equal(bsmm_device_open("hip:2", &backend, &device), BSMM_E_NOT_FOUND);
    expect_message("this process sees 2 AMD GPUs");
    assert_int_equal(bsmm_device_open("hip:two", &backend, &device), BSMM_E_INVALID);
    expect_message("must be hip or hip:NUMBER");
}

static const bsmm_hip_device *device_0(void) {
    const bsmm_hip_device *device;
    const bsmm_gpu_image *image;
    assert_int_equal(bsmm_hip_device_get(0, &device), BSMM_OK);
    if (bsmm_gpu_image_find("cdna/words", NULL, NULL, &image) != BSMM_OK) skip();
    return device;
}

static bsmm_status launch(const bsmm_hip_device *device, const bsmm_hip_function *function) {
    int argument = 0;
    return bsmm_hip_launch(device, &(bsmm_hip_launch_desc){
                                       .function = function,
                                       .grid = {3, 0, 2},
                                       .block = {128},
                                       .shared_bytes = function->shared_bytes,
                                       .stream = &argument,
                                       .arguments = BSMM_HIP_ARGUMENTS(&argument),
                                   });
}

static void launches_say_what_they_are_told(void **state) {
    (void)state;
    static const char elf[] = {0x7f, 'E', 'L', 'F'};
    static const bsmm_hip_function words = {"cdna/words", "store_words", 1000};
    const bsmm_hip_device *device = device_0();
    const int loads = fake->loads, finds = gpu->finds, launches = fake->launches;
    for (int i = 0; i < 3; i++)
        assert_int_equal(launch(device, &words), BSMM_OK);
    assert_int_equal(fake->loads, loads + 1);
    assert_int_equal(gpu->finds, finds + 1);
    assert_int_equal(fake->launches, launches + 3);
    assert_memory_equal(fake->image, elf, sizeof elf);
    assert_true(gpu->grid[0] == 3 && gpu->grid[1] == 1 && gpu->grid[2] == 2);
    assert_true(gpu->block[0] == 128 && gpu->block[1] == 1 && gpu->shared_bytes == 1000);
    assert_non_null(gpu->stream);
}

static void each_failing_entry_is_named(void **state) {
    (void)state;
    static const bsmm_hip_function probes[] = {{"cdna/recode", "a", 64},
                                               {"cdna/recode", "b", 64},
                                               {"cdna/recode", "c", 64},
                                               {"cdna/recode", "d", 64},
                                               {"cdna/recode", "e", 64}};
    static const struct {
        const char *entry;
        hipError_t error;
        bsmm_status status;
    } cases[] = {
        {"hipModuleLoadData", hipErrorNoBinaryForGpu, BSMM_E_UNSUPPORTED},
        {"hipModuleGetFunction", hipErrorNotFound, BSMM_E_DEVICE},
        {"hipModuleLaunchKernel", hipErrorIllegalAddress, BSMM_E_DEVICE},
        {"hipGetDevice", hipErrorInvalidDevice, BSMM_E_NOT_FOUND},
        {"hipSetDevice", hipErrorInvalidDevice, BSMM_E_NOT_FOUND},
    };
    const bsmm_hip_device *device = device_0();
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        /* Another device is current now, so the library must change the current device for the
         * call. */
        gpu->current = 1;
        fake->failing = cases[i].entry;
        fake->failure = cases[i].error;
        assert_int_equal(launch(device, &probes[i]), cases[i].status);
        expect_message(cases[i].entry);
        assert_int_equal(gpu->current, 1);
        fake->failing = NULL;
        assert_int_equal(launch(device, &probes[i]),
                         BSMM_OK); /* A failed launch must not break later launches. */
        assert_int_equal(gpu->current, 1);
        gpu->current = 0;
    }
}

static void what_a_device_cannot_run_is_named(void **state) {
    (void)state;
    static const bsmm_hip_function greedy = {"cdna/words", "greedy", 70000};
    static const bsmm_hip_function words = {"cdna/words", "store_words", 0};
    static const bsmm_hip_function none = {"cdna/none", "none", 0};
    const bsmm_hip_device *device = device_0(), *other;
    assert_int_equal(bsmm_hip_load(device, &greedy, NULL), BSMM_E_UNSUPPORTED);
    expect_message("65536");
    assert_int_equal(bsmm_hip_load(device, &none, NULL), BSMM_E_NOT_FOUND);
    gpu->minor = 0; /* The third device now has another architecture, gfx90 (MI200). */
    fake->devices = 3;
    assert_int_equal(bsmm_hip_device_get(2, &other), BSMM_OK);
    gpu->minor = 4;
    fake->devices = 2;
    assert_int_equal(bsmm_hip_load(other, &words, NULL), BSMM_E_UNSUPPORTED);
    expect_message("cdna/words has no code for Fake AMD GPU 2 (gfx9.0)");
}

static void memory_that_runs_out(void **state) {
    (void)state;
    fake_check_memory(fake, &bsmm_backend_hip, device_0());
}

static void failing_calls_of_memory(void **state) {
    (void)state;
    const bsmm_exec exec = {.struct_size = sizeof exec, .device = "hip:0"};
    const void *device = device_0();
    char host[16];
    void *memory;
    assert_int_equal(bsmm_backend_hip.allocate(device, sizeof host, &memory), BSMM_OK);
    fake->failure = hipErrorIllegalAddress;
    fake->failing = "hipMemcpyAsync";
    assert_int_equal(bsmm_copy_memory(&exec, memory, host, sizeof host), BSMM_E_DEVICE);
    expect_message("hipMemcpyAsync");
    fake->failing = "hipMemsetAsync";
    assert_int_equal(bsmm_fill_memory(&exec, memory, 0, sizeof host), BSMM_E_DEVICE);
    expect_message("hipMemsetAsync");
    fake->failing = "hipStreamSynchronize";
    assert_int_equal(bsmm_synchronize_stream(&exec), BSMM_E_DEVICE);
    expect_message("hipStreamSynchronize");
    fake->failing = "hipDrvPointerGetAttributes";
    assert_int_equal(bsmm_fill_memory(&exec, memory, 0, sizeof host), BSMM_E_DEVICE);
    expect_message("hipDrvPointerGetAttributes");
    fake->failing = NULL;
    assert_int_equal(bsmm_copy_memory(&exec, host, host, sizeof host), BSMM_E_INVALID);
    bsmm_backend_hip.release(device, memory);
    assert_int_equal(fake->allocations, 0);
}

/* The address of `stream` stands for the stream of a run. The fake driver does not use it. */
static char stream;

/* Tests that a run only queues work in the caller's stream. The run must not wait, load modules or
 * allocate memory. A failed run must return an error, and the next run must work. */
static void runs_only_queue(void **state) {
    (void)state;
    fake_product p;
    bsmm_plan *plan;
    device_0();
    fake_product_make(&p, "hip:0");
    assert_int_equal(bsmm_plan_create(&p.desc, &plan), BSMM_OK);
    bsmm_buffers buffers = fake_product_buffers(&p, &stream);
    const fake_driver before = *fake;
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_OK);
    assert_int_equal(fake->launches, before.launches + 1);
    assert_ptr_equal(gpu->stream, &stream);
    assert_int_equal(fake->loads, before.loads);
    assert_int_equal(fake->waits, before.waits);
    assert_int_equal(fake->free_bytes, before.free_bytes);
    static const char *const entries[] = {"hipModuleLaunchKernel", "hipDrvPointerGetAttributes",
                                          "hipGetDevice"};
    for (size_t i = 0; i < BSMM_COUNT(entries); i++) {
        fake->failing = entries[i];
        fake->failure = hipErrorLaunchFailure;
        assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_E_DEVICE);
        expect_message(entries[i]);
        fake->failing = NULL;
        assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_OK);
    }
    bsmm_plan_destroy(plan);
    fake_product_free(&p);
    assert_int_equal(fake->allocations, 0);
}

static void wrong_pointers_of_a_run(void **state) {
    (void)state;
    static _Alignas(64) char host[4096];
    fake_product p;
    bsmm_plan *plan;
    device_0();
    fake_product_make(&p, "hip:0");
    assert_int_equal(bsmm_plan_create(&p.desc, &plan), BSMM_OK);
    bsmm_buffers buffers = fake_product_buffers(&p, &stream);
    const int launches = fake->launches;
    buffers.b_scales = host;
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_E_INVALID);
    expect_message("host memory; must be memory of hip:0");
    buffers = fake_product_buffers(&p, &stream);
    fake->owner = 1;
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_E_INVALID);
    expect_message("memory of another device (HIP's number 1)");
    fake->owner = 0;
    assert_int_equal(fake->launches, launches);
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_OK);
    bsmm_plan_destroy(plan);
    fake_product_free(&p);
    assert_int_equal(fake->allocations, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_driver_that_does_not_start, check_balance),
        cmocka_unit_test_teardown(device_memory_of_hip_5, check_balance),
        cmocka_unit_test_teardown(devices_that_fail_once, check_balance),
        cmocka_unit_test_teardown(devices_are_listed, check_balance),
        cmocka_unit_test_teardown(devices_that_are_not_there, check_balance),
        cmocka_unit_test_teardown(launches_say_what_they_are_told, check_balance),
        cmocka_unit_test_teardown(each_failing_entry_is_named, check_balance),
        cmocka_unit_test_teardown(what_a_device_cannot_run_is_named, check_balance),
        cmocka_unit_test_teardown(memory_that_runs_out, check_balance),
        cmocka_unit_test_teardown(failing_calls_of_memory, check_balance),
        cmocka_unit_test_teardown(runs_only_queue, check_balance),
        cmocka_unit_test_teardown(wrong_pointers_of_a_run, check_balance),
    };
    return cmocka_run_group_tests(tests, find_fake, NULL);
}
