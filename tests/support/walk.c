#include "walk.h"

#include "core/describe.h"
#include "cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- devices ---- */

static bool wanted(const char *kind) {
    const char *only = getenv("BSMM_TEST_DEVICE");
    return !only || strcmp(only, kind) == 0;
}

static bool has_cuda(void) {
    static int known; /* 0: not tested yet, 1: no, 2: yes */
    if (!known) {
        known = test_cuda_device_or_null() ? 2 : 1;
        if (known == 1) print_message("skipped: no CUDA device: %s\n", bsmm_error_message());
    }
    return known == 2;
}

/* Returns true if these tests can fill a backend's memory: it must be the host's or CUDA's. */
static bool is_there(const bsmm_backend *backend) {
    return wanted(backend->name) &&
           (backend->host_memory || (strcmp(backend->name, "cuda") == 0 && has_cuda()));
}

/* Returns the name of a device: the cpu, then the first device of each other kind. */
static const char *device_at(uint32_t index) {
    static char name[32];
    const bsmm_backend *backend;
    uint32_t count = 0;
    for (uint32_t i = 0; (backend = bsmm_backend_at(i)); i++) {
        if (!is_there(backend) || count++ != index) continue;
        snprintf(name, sizeof name, "%s%s", backend->name, i == 0 ? "" : ":0");
        return name;
    }
    return NULL;
}

test_walk test_walk_begin(bsmm_matmul_desc *desc) {
    return (test_walk){.desc = desc, .e = {.struct_size = sizeof(bsmm_explanation)}};
}

bool test_walk_next(test_walk *w) {
    const char *device;
    while ((device = device_at(w->device))) {
        w->desc->device = device;
        w->desc->kernel = NULL;
        while (bsmm_explain(w->desc, w->kernel++, &w->e) == BSMM_OK) {
            if (!w->e.accepts) continue;
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
    return wanted("cpu") ? on_the_cpu : 0;
}

/* ---- products on a GPU ---- */

enum { CANARY = 256 }; /* bytes after each buffer that must keep their poison */

/* Buffers that lie one after another in a single allocation, which is far faster than separate
 * allocations. BSMM_TEST_EXACT requests separate allocations without canaries, for
 * compute-sanitizer. */
typedef struct arena {
    const bsmm_cuda_device *device;
    uint8_t *base;
    uint64_t size, used;
    void *exact[16];
    int count;
} arena;

static arena memory;

static void *take(const void *from, uint64_t bytes) {
    if (bytes == 0 || !from) return NULL;
    if (getenv("BSMM_TEST_EXACT")) {
        assert_true(memory.count < 16);
        return memory.exact[memory.count++] = test_cuda_new(memory.device, from, bytes);
    }
    uint64_t room = (bytes + CANARY + 255) / 256 * 256;
    assert_true(memory.used + room <= memory.size);
    uint8_t *to = memory.base + memory.used;
    memory.used += room;
    TEST_CUDA(memory.device, cuMemsetD8Async, (uintptr_t)to, 0xA5, room, NULL);
    test_cuda_write(memory.device, to, from, bytes);
    return to;
}

static void start(const bsmm_cuda_device *device) {
    memory.device = device;
    memory.used = 0;
    if (memory.base || getenv("BSMM_TEST_EXACT")) return;
    memory.size = 64u << 20;
    memory.base = test_cuda_new(device, NULL, memory.size);
}

static void finish(void) {
    while (memory.count > 0)
        test_cuda_free(memory.device, memory.exact[--memory.count]);
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
    test_cuda_read(memory.device, host, there, bytes);
    if (memory.count) return;
    test_cuda_read(memory.device, behind, (const uint8_t *)there + bytes, sizeof behind);
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

bsmm_status test_multiply(const bsmm_matmul_desc *desc) {
    if (!desc->device || strcmp(desc->device, "cuda:0") != 0) return bsmm_matmul(desc);
    start(test_cuda_device_or_null());
    bsmm_status status = multiply_there(desc);
    finish();
    return status;
}
