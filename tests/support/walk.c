#include "walk.h"

#include "core/describe.h"
#include "gpu.h"
#include "sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Returns the name of host device number `index`, or NULL after the last one. A host device is
 * one whose memory is host memory, and number 0 is the cpu. *count receives the number of host
 * devices. */
static const char *host_device_at(uint32_t index, uint32_t *count) {
    static char name[32];
    const bsmm_backend *backend;
    const char *found = NULL;
    *count = 0;
    for (uint32_t i = 0; (backend = bsmm_backend_at(i)); i++) {
        if (!backend->host_memory || !test_gpu_wants(backend->name)) continue;
        if ((*count)++ != index) continue;
        snprintf(name, sizeof name, "%s%s", backend->name, i == 0 ? "" : ":0");
        found = name;
    }
    return found;
}

/* Returns the name of device number `index`. Devices whose memory is host memory have the first
 * numbers, and GPUs have the following ones. */
static const char *device_at(uint32_t index) {
    uint32_t count;
    const char *host = host_device_at(index, &count);
    return host ? host : test_gpu_at(index - count);
}

test_walk test_walk_begin(bsmm_matmul_desc *desc) {
    return (test_walk){.desc = desc, .e = {.struct_size = sizeof(bsmm_explanation)}};
}

/* Returns true if a simulated GPU would take too long for the product. A simulator takes about a
 * millisecond for 32 elements of K of one tile of 64 x 64 results. */
static bool takes_too_long(const bsmm_matmul_desc *desc) {
    enum { MOST_K_OF_TILES = 1024 };
    const int64_t down = bsmm_ceil_div(desc->d->rows, 64),
                  across = bsmm_ceil_div(desc->d->cols, 64);
    return down * across * desc->a->cols > MOST_K_OF_TILES;
}

static bool is_left_out(const char *device, const bsmm_matmul_desc *desc) {
    static uint32_t turn;
    if (strncmp(device, "sim:", 4) != 0) return false;
    if (takes_too_long(desc)) return true;
    return turn++ % test_sample_step() != 0;
}

bool test_walk_next(test_walk *w) {
    const char *device;
    while ((device = device_at(w->device))) {
        w->desc->device = device;
        w->desc->kernel = NULL;
        while (bsmm_explain(w->desc, w->kernel++, &w->e) == BSMM_OK) {
            if (!w->e.accepts || is_left_out(device, w->desc)) continue;
            w->desc->kernel = w->e.kernel;
            if (getenv("BSMM_TEST_VERBOSE")) print_message("%s\n", w->e.kernel);
            return true;
        }
        w->device++;
        w->kernel = 0;
    }
    w->desc->device = w->desc->kernel = NULL;
    return false;
}

bool test_walk_on_cpu(const test_walk *w) {
    return strcmp(w->desc->device, "cpu") == 0;
}

int test_walk_least(int on_the_cpu) {
    return test_gpu_wants("cpu") ? on_the_cpu : 0;
}

/* A test fills CANARY bytes after each buffer with a pattern. If the pattern changes, a kernel has
 * written past the end of the buffer. */
enum { CANARY = 256 };

/* Holds all buffers of a product in one allocation, which is far faster than several. With
 * BSMM_TEST_EXACT in the environment, and on simulated GPUs, each buffer has its own allocation, so
 * that compute-sanitizer or the simulator finds accesses past its end. */
typedef struct arena {
    const char *device;
    bool exact_sizes;
    uint8_t *base;
    uint64_t size, used;
    void *exact[16];
    int count;
} arena;

static arena memory;

static void *take(const void *from, uint64_t bytes) {
    if (bytes == 0 || !from) return NULL;
    if (memory.exact_sizes) {
        assert_true(memory.count < 16);
        return memory.exact[memory.count++] = test_gpu_new(memory.device, from, bytes);
    }
    uint64_t room = (bytes + CANARY + 255) / 256 * 256;
    assert_true(memory.used + room <= memory.size);
    uint8_t *to = memory.base + memory.used;
    memory.used += room;
    const bsmm_exec exec = {.struct_size = sizeof exec, .device = memory.device};
    assert_int_equal(bsmm_fill_memory(&exec, to, 0xA5, room), BSMM_OK);
    test_gpu_write(memory.device, to, from, bytes);
    return to;
}

static void start(const char *device) {
    if (memory.base && strcmp(memory.device, device) != 0) {
        test_gpu_free(memory.device, memory.base);
        memory.base = NULL;
    }
    memory.device = device;
    memory.used = 0;
    memory.exact_sizes = getenv("BSMM_TEST_EXACT") || strncmp(device, "sim:", 4) == 0;
    if (memory.base || memory.exact_sizes) return;
    memory.size = 64u << 20;
    memory.base = test_gpu_new(device, NULL, memory.size);
}

static void finish(void) {
    while (memory.count > 0)
        test_gpu_free(memory.device, memory.exact[--memory.count]);
}

static uint64_t bytes_of(const bsmm_matrix *m, bool scales) {
    uint64_t bytes = 0;
    if (scales && m->format.scale == BSMM_SCALE_NONE) return 0;
    assert_int_equal((scales ? bsmm_scale_bytes : bsmm_data_bytes)(m, &bytes), BSMM_OK);
    return bytes;
}

static void place(const bsmm_matrix *host, bsmm_matrix *there) {
    *there = *host;
    there->data = take(host->data, bytes_of(host, false));
    there->scales = take(host->scales, bytes_of(host, true));
    there->global_scale =
        host->global_scale ? take(host->global_scale, sizeof *host->global_scale) : NULL;
}

static void fetch(const void *there, void *host, uint64_t bytes) {
    uint8_t behind[CANARY];
    if (bytes == 0) return;
    test_gpu_read(memory.device, host, there, bytes);
    if (memory.count) return;
    test_gpu_read(memory.device, behind, (const uint8_t *)there + bytes, sizeof behind);
    for (int i = 0; i < CANARY; i++)
        if (behind[i] != 0xA5) fail_msg("byte %d behind a buffer of D was written", i);
}

static void place_epilogue(const bsmm_matmul_desc *desc, bsmm_epilogue *there,
                           bsmm_matrix *residual) {
    const bsmm_epilogue *host = desc->epilogue;
    *there = *host;
    if (host->residual) {
        place(host->residual, residual);
        there->residual = residual;
    }
    there->row_scale = take(host->row_scale, (uint64_t)desc->d->rows * sizeof(float));
    there->col_scale = take(host->col_scale, (uint64_t)desc->d->cols * sizeof(float));
}

static bsmm_status multiply_there(const bsmm_matmul_desc *desc) {
    bsmm_matmul_desc on = *desc;
    bsmm_matrix a, b, c, d;
    place(desc->a, &a);
    place(desc->b, &b);
    place(desc->d, &d);
    if (desc->c) place(desc->c, &c);
    if (desc->c && desc->c->data == desc->d->data) c.data = d.data;
    on.a = &a, on.b = &b, on.c = desc->c ? &c : NULL, on.d = &d;
    if (desc->bias)
        on.bias = take(desc->bias, (uint64_t)b.rows * bsmm_elem_row(desc->bias_elem)->bits / 8);
    bsmm_epilogue epilogue;
    bsmm_matrix residual;
    if (desc->epilogue) {
        place_epilogue(desc, &epilogue, &residual);
        if (epilogue.residual && desc->epilogue->residual->data == desc->d->data)
            residual.data = d.data;
        on.epilogue = &epilogue;
    }
    bsmm_status status = bsmm_matmul(&on);
    if (status != BSMM_OK) return status;
    fetch(d.data, desc->d->data, bytes_of(desc->d, false));
    fetch(d.scales, desc->d->scales, bytes_of(desc->d, true));
    return BSMM_OK;
}

static bool has_host_memory(const char *device) {
    const bsmm_backend *backend;
    for (uint32_t i = 0; (backend = bsmm_backend_at(i)); i++)
        if (backend->host_memory && strncmp(device, backend->name, strlen(backend->name)) == 0)
            return true;
    return false;
}

bsmm_status test_multiply(const bsmm_matmul_desc *desc) {
    if (!desc->device || has_host_memory(desc->device)) return bsmm_matmul(desc);
    start(desc->device);
    bsmm_status status = multiply_there(desc);
    finish();
    return status;
}
