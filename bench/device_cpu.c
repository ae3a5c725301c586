/* Implements the host as a device of bench. Its memory is that of the process, and its calls
 * return when their work is complete. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t alignment = 64;

typedef struct host {
    double started; /* `started` is the time in seconds at which the measurement began. */
} host;

static void *open_host(const char *name) {
    (void)name;
    return calloc(1, sizeof(host));
}

static void *stream(const void *state) {
    (void)state;
    return NULL;
}

static bool allocate(void *state, uint64_t bytes, void **memory) {
    (void)state;
    *memory =
        bytes < SIZE_MAX / 2 ? aligned_alloc(alignment, (bytes / alignment + 1) * alignment) : NULL;
    return *memory || bench_device_fail("no memory");
}

static void release(void *state, void *memory) {
    (void)state;
    free(memory);
}

static bool copy(void *state, void *to, const void *from, uint64_t bytes) {
    (void)state;
    memcpy(to, from, bytes);
    return true;
}

static bool fill_words(void *state, void *to, uint32_t word, uint64_t count) {
    (void)state;
    for (uint64_t i = 0; i < count; i++)
        memcpy((uint8_t *)to + i * sizeof word, &word, sizeof word);
    return true;
}

static bool wait(void *state) {
    (void)state;
    return true;
}

static bool start_time(void *state) {
    ((host *)state)->started = bench_now();
    return true;
}

static bool finish_time(void *state, double *seconds) {
    *seconds = bench_now() - ((host *)state)->started;
    return true;
}

/* Lists the typical error of each kernel family. `level` is the family's typical error divided by
 * the typical error of fp32 sums that are added in the same order. The other fields describe this
 * order (family_level.h). tests/unit/test_cli_level.c fails if a kernel's error is larger. The
 * values are the largest errors on a Xeon of the Sapphire Rapids generation. */
static const bench_family_level levels[] = {
    {"cpu_avx512_int8dot", .unit = 0, .level = 1.01},
    {"cpu_avx2_int8dot", .unit = 0, .level = 1.01},
    {"cpu_avx512_bf16dot", .unit = 1, .segment = 128, .chunk = 512, .wide_chunk = 512,
     .level = 1.2},
    {"cpu_avx512_f32", .unit = 1, .segment = 128, .a_scale_first = true, .chunk = 512,
     .wide_chunk = 128, .level = 1.01},
    {"cpu_avx2_f32", .unit = 1, .segment = 128, .a_scale_first = true, .chunk = 512,
     .wide_chunk = 128, .level = 1.01},
    {"cpu_f32", .unit = 1, .segment = 128, .ends_at_scales = true, .total_in_double = true,
     .level = 1.09},
    {0},
};

const bench_device_kind bench_device_cpu = {
    .name = "cpu",
    .is_host = true,
    .levels = levels,
    .open = open_host,
    .close = free,
    .stream = stream,
    .allocate = allocate,
    .release = release,
    .write = copy,
    .read = copy,
    .copy = copy,
    .fill_words = fill_words,
    .wait = wait,
    .start_time = start_time,
    .finish_time = finish_time,
};
