/* Tests simulated AMD GPUs: their names, copies to their memory and back, and several devices at
 * once. Pointers that do not belong to a GPU must be refused. */
#include "amdgpu/runtime/device.h"
#include "core/describe.h"
#include "message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int find_simulator(void **state) {
    (void)state;
    const bsmm_hip_driver *driver;
    if (bsmm_hip_simulator_get(&driver) == BSMM_OK) return 0;
    print_message("%s\n", bsmm_error_message());
    return -1;
}

static void names_are_taken_apart(void **state) {
    (void)state;
    static const struct {
        const char *name, *arch;
        bsmm_status status;
    } cases[] = {
        {"sim:gfx942", "gfx942", BSMM_OK},       {"sim:gfx950", "gfx950", BSMM_OK},
        {"sim:gfx950:1", "gfx950", BSMM_OK},     {"sim:gfx942:31", "gfx942", BSMM_OK},
        {"sim:gfx950:32", "", BSMM_E_NOT_FOUND}, {"sim", "", BSMM_E_INVALID},
        {"sim:0", "", BSMM_E_INVALID},           {"sim:gfx90a", "", BSMM_E_INVALID},
        {"sim:gfx950:", "", BSMM_E_INVALID},     {"sim:gfx9500", "", BSMM_E_INVALID},
        {"sim:gfx950:x", "", BSMM_E_INVALID},    {"simulator", "", BSMM_E_UNSUPPORTED},
        {"hip:x", "", BSMM_E_INVALID},
    };
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        const bsmm_backend *backend;
        const void *device;
        const bsmm_status status = bsmm_device_open(cases[i].name, &backend, &device);
        if (status != cases[i].status)
            fail_msg("%s: %d, not %d", cases[i].name, (int)status, (int)cases[i].status);
        if (status != BSMM_OK) continue;
        const bsmm_hip_device *d = device;
        assert_string_equal(d->arch, cases[i].arch);
        assert_string_equal(d->device, cases[i].name);
    }
}

static void both_architectures_are_listed(void **state) {
    (void)state;
    bsmm_local_device info = BSMM_INIT(bsmm_local_device);
    int found = 0;
    for (uint32_t i = 0; bsmm_local_device_at(i, &info) == BSMM_OK; i++) {
        if (strncmp(info.name, "sim:gfx", 7) != 0) continue;
        const bool newer = strcmp(info.name, "sim:gfx950") == 0;
        assert_int_equal(info.cores, newer ? 256 : 304);
        assert_memory_equal(info.features, newer ? "gfx950 " : "gfx942 ", 7);
        found++;
    }
    assert_int_equal(found, 2);
}

static bsmm_exec exec_of(const char *device) {
    return (bsmm_exec){.struct_size = sizeof(bsmm_exec), .device = device};
}

static void memory_comes_back(void **state) {
    (void)state;
    const bsmm_exec exec = exec_of("sim:gfx942");
    uint8_t sent[1000], got[1000];
    void *a, *b;
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (uint8_t)(7 * i);
    assert_int_equal(bsmm_allocate_memory(exec.device, sizeof sent, &a), BSMM_OK);
    assert_int_equal(bsmm_allocate_memory(exec.device, sizeof sent, &b), BSMM_OK);
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_int_equal(bsmm_copy_memory(&exec, a, sent, sizeof sent), BSMM_OK);
    assert_int_equal(bsmm_fill_memory(&exec, b, 0xA5, sizeof sent), BSMM_OK);
    assert_int_equal(bsmm_copy_memory(&exec, b, a, 500), BSMM_OK);
    assert_int_equal(bsmm_copy_memory(&exec, got, b, sizeof got), BSMM_OK);
    assert_int_equal(bsmm_synchronize_stream(&exec), BSMM_OK);
    assert_memory_equal(got, sent, 500);
    for (size_t i = 500; i < sizeof got; i++)
        assert_int_equal(got[i], 0xA5);
    assert_int_equal(bsmm_copy_memory(&exec, got, sent, sizeof got), BSMM_E_INVALID);
    expect_message("one must be of sim:gfx942");
    assert_int_equal(bsmm_free_memory(exec.device, a), BSMM_OK);
    assert_int_equal(bsmm_free_memory(exec.device, b), BSMM_OK);
    assert_int_equal(bsmm_allocate_memory(exec.device, 1ull << 50, &a), BSMM_E_MEMORY);
    expect_message("hipMalloc");
    assert_null(a);
}

/* Tests that a kernel of the library runs on each simulated device. The kernel must come from the
 * code object for this device. */
static void words_are_stored_by_a_kernel(void **state) {
    (void)state;
    static const char *const names[] = {"sim:gfx942", "sim:gfx950", "sim:gfx950:1"};
    static const uint32_t sent[5] = {1, 0, 0xffffffff, 4, 5};
    const bsmm_gpu_image *image;
    if (bsmm_gpu_image_find("cdna/words", NULL, NULL, &image) != BSMM_OK) skip();
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
            fail_msg("%s", bsmm_error_message());
        assert_int_equal(bsmm_copy_memory(&exec, got, memory, sizeof got), BSMM_OK);
        assert_memory_equal(got, sent, sizeof sent);
        assert_int_equal(got[5], 0xA5A5A5A5);
        assert_int_equal(bsmm_free_memory(names[i], memory), BSMM_OK);
    }
}

static void pointers_of_others_are_named(void **state) {
    (void)state;
    static float host[4];
    const bsmm_exec exec = exec_of("sim:gfx950");
    void *memory;
    assert_int_equal(bsmm_allocate_memory("sim:gfx950:1", 64, &memory), BSMM_OK);
    assert_int_equal(bsmm_fill_memory(&exec, memory, 0, 64), BSMM_E_INVALID);
    expect_message("memory of another device");
    assert_int_equal(bsmm_fill_memory(&exec, host, 0, 16), BSMM_E_INVALID);
    expect_message("host memory; must be memory of sim:gfx950");
    assert_int_equal(bsmm_free_memory("sim:gfx950:1", memory), BSMM_OK);
}

static void the_callers_device_stays_current(void **state) {
    (void)state;
    const bsmm_hip_device *first, *second;
    int current = -1;
    void *memory;
    assert_int_equal(bsmm_hip_simulated_get(0, &first), BSMM_OK);
    assert_int_equal(bsmm_hip_simulated_get(1, &second), BSMM_OK);
    assert_int_equal(first->driver->hipSetDevice(first->ordinal), hipSuccess);
    assert_int_equal(bsmm_allocate_memory(second->device, 64, &memory), BSMM_OK);
    assert_int_equal(first->driver->hipGetDevice(&current), hipSuccess);
    assert_int_equal(current, first->ordinal);
    assert_int_equal(bsmm_free_memory(second->device, memory), BSMM_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_taken_apart),
        cmocka_unit_test(both_architectures_are_listed),
        cmocka_unit_test(memory_comes_back),
        cmocka_unit_test(words_are_stored_by_a_kernel),
        cmocka_unit_test(pointers_of_others_are_named),
        cmocka_unit_test(the_callers_device_stays_current),
    };
    return cmocka_run_group_tests(tests, find_simulator, NULL);
}
