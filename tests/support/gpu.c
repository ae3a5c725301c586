#include "gpu.h"

#include "core/describe.h"
#include "gpu/images.h"

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *name, *image;
    /* `title` names the kind of GPU in messages. If it is NULL, tests use this device only if the
     * environment variable BSMM_TEST_DEVICE names it. */
    const char *title;
} devices[] = {
    {"cuda:0", "sm80/words", "CUDA"},   {"hip:0", "cdna/words", "HIP"},
    {"sim:gfx942", "cdna/words", NULL}, {"sim:gfx950", "cdna/words", NULL},
    {"sim:sm_80", "sm80/words", NULL},  {"sim:sm_90a", "sm80/words", NULL},
    {"sim:sm_100", "sm80/words", NULL}, {"sim:sm_120", "sm80/words", NULL},
};

/* Tells whether the device's name matches `wanted`, the value of the environment variable
 * BSMM_TEST_DEVICE. `wanted` is a name, the beginning of a name or a pattern. */
static bool names(const char *wanted, const char *device) {
    const size_t length = strlen(wanted);
    if (fnmatch(wanted, device, 0) == 0) return true;
    return strncmp(device, wanted, length) == 0 && (!device[length] || device[length] == ':');
}

bool test_gpu_wants(const char *kind) {
    const char *only = getenv("BSMM_TEST_DEVICE");
    return !only || names(only, kind);
}

static bool is_there(size_t i) {
    /* `known` remembers for each device whether it exists: 0 means not known yet, 1 means no, 2
     * means yes. */
    static int known[BSMM_COUNT(devices)];
    const bsmm_gpu_image *image;
    void *memory = NULL;
    if (known[i]) return known[i] == 2;
    const bool built = bsmm_gpu_image_find(devices[i].image, NULL, NULL, &image) == BSMM_OK;
    const bool opens = built && bsmm_allocate_memory(devices[i].name, 1, &memory) == BSMM_OK;
    if (opens)
        bsmm_free_memory(devices[i].name, memory);
    else if (devices[i].title)
        print_message("skipped: no %s device: %s\n", devices[i].title, bsmm_error_message());
    else
        fail_msg("%s: %s", devices[i].name, bsmm_error_message());
    known[i] = opens ? 2 : 1;
    return opens;
}

const char *test_gpu_at(uint32_t index) {
    const bool named = getenv("BSMM_TEST_DEVICE") != NULL;
    for (size_t i = 0; i < BSMM_COUNT(devices); i++)
        if ((named || devices[i].title) && test_gpu_wants(devices[i].name) && is_there(i) &&
            index-- == 0)
            return devices[i].name;
    return NULL;
}

void test_gpu_need(void) {
    if (!test_gpu_at(0)) skip();
}

static bsmm_exec exec_of(const char *device) {
    return (bsmm_exec){.struct_size = sizeof(bsmm_exec), .device = device};
}

static void check(bsmm_status status) {
    if (status != BSMM_OK) fail_msg("%s", bsmm_error_message());
}

void *test_gpu_new(const char *device, const void *from, size_t bytes) {
    const bsmm_exec exec = exec_of(device);
    void *memory = NULL;
    if (bytes == 0) return NULL;
    check(bsmm_allocate_memory(device, bytes, &memory));
    check(bsmm_fill_memory(&exec, memory, 0xA5, bytes));
    check(bsmm_synchronize_stream(&exec));
    if (from) test_gpu_write(device, memory, from, bytes);
    return memory;
}

void test_gpu_write(const char *device, void *to, const void *from, size_t bytes) {
    const bsmm_exec exec = exec_of(device);
    check(bsmm_copy_memory(&exec, to, from, bytes));
    check(bsmm_synchronize_stream(&exec));
}

void test_gpu_read(const char *device, void *to, const void *from, size_t bytes) {
    const bsmm_exec exec = exec_of(device);
    if (bytes == 0) return;
    check(bsmm_copy_memory(&exec, to, from, bytes));
    check(bsmm_synchronize_stream(&exec));
}

void test_gpu_free(const char *device, void *memory) {
    if (memory) check(bsmm_free_memory(device, memory));
}
