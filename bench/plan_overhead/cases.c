#include "overhead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const overhead_case cpu_cases[] = {
    {"bf16", "mxfp4", 8, 8, 32, NULL, 0, 0},
    {"bf16", "mxfp4", 16, 64, 64, NULL, 0, 0},
    {"bf16", "mxfp4", 128, 128, 128, NULL, 0, 0},
    {"mxfp4", "mxfp4", 8, 8, 32, NULL, 0, 0},
    {"mxfp4", "mxfp4", 16, 64, 64, NULL, 0, 0},
    {"mxfp4", "mxfp4", 128, 128, 128, NULL, 0, 0},
    {"mxfp8", "mxfp8", 8, 8, 32, NULL, 0, 0},
    {"mxfp8", "mxfp8", 16, 64, 64, NULL, 0, 0},
    {"mxfp8", "mxfp8", 128, 128, 128, NULL, 0, 0},
    {"fp8_group128", "fp8_block128", 8, 8, 32, NULL, 0, 0},
    {"fp8_group128", "fp8_block128", 16, 64, 64, NULL, 0, 0},
    {"fp8_group128", "fp8_block128", 128, 128, 128, NULL, 0, 0},
    {"f32", "f32", 8, 8, 32, NULL, 0, 0},
    {"f32", "f32", 16, 64, 64, NULL, 0, 0},
    {"f32", "f32", 128, 128, 128, NULL, 0, 0},
    {"bf16", "bf16", 8, 8, 32, NULL, 0, 0},
    {"bf16", "mxfp4", 8, 8, 32, NULL, 0, 1},
    {"mxfp4", "mxfp4", 8, 8, 32, NULL, 0, 1},
};

static const overhead_case queued_cases[] = {
    {"fp8_group128", "fp8_block128", 64, 512, 512, "sm90a_fp8", 0, 0},
    {"fp8_group128", "fp8_group128", 64, 512, 512, "sm90a_fp8", 0, 0},
    {"mxfp4", "mxfp4", 64, 512, 512, "sm90a_fold", 0, 0},
    {"mxfp4", "mxfp4", 64, 512, 512, "sm90a_fold", 0, 1},
    {"mxfp8", "mxfp8", 64, 512, 512, "sm90a_fold", BSMM_COMPUTE_FAST, 0},
    {"bf16", "bf16", 64, 512, 512, "sm90a_bf16", 0, 0},
    {"bf16", "mxfp4", 64, 512, 512, "sm90a_bf16", 0, 0},
    {"bf16", "mxfp4", 64, 512, 512, "sm90a_bf16", 0, 1},
    {"bf16", "mxfp4", 1, 512, 512, "sm90_small_m", 0, 0},
    {"f32", "mxfp4", 4, 512, 512, "sm90_small_m", 0, 0},
    {"fp8_group128", "fp8_block128", 4, 512, 512, "sm90a_fp8_small_m", 0, 0},
    {"f16", "mxfp4", 128, 512, 512, "sm90a_mixed", 0, 0},
    {"f16", "mxfp4", 128, 512, 512, "sm90a_f16", 0, 0},
    {"f16", "mxfp4", 128, 512, 512, "sm90a_f16", 0, 1},
    {"f32", "f32", 64, 512, 512, "sm80_bf16", 0, 0},
    {"nvfp4", "nvfp4", 64, 512, 512, "sm80_bf16", 0, 0},
};

const overhead_case *overhead_case_at(bool is_host, size_t index) {
    size_t count =
        is_host ? sizeof cpu_cases / sizeof *cpu_cases : sizeof queued_cases / sizeof *queued_cases;
    return index < count ? &(is_host ? cpu_cases : queued_cases)[index] : NULL;
}

void overhead_fail(const char *what, const char *why) {
    fprintf(stderr, "plan_overhead: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

static bsmm_format format_of(const char *name) {
    bsmm_format format = {.elem = strcmp(name, "f32") == 0 ? BSMM_ELEM_F32 : BSMM_ELEM_BF16};
    if (strcmp(name, "f32") != 0 && strcmp(name, "bf16") != 0 &&
        bsmm_format_from_name(name, &format))
        overhead_fail(name, bsmm_error_message());
    return format;
}

/* Allocates host memory and sets each byte to `fill`. */
static void *allocate(overhead_product *product, uint64_t bytes, int fill) {
    void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!memory) overhead_fail("memory", "not to be had");
    memset(memory, fill, bytes);
    product->memory[product->count++] = memory;
    return memory;
}

/* Makes a matrix in host memory. All bytes of its elements are equal and give a small value in
 * every format. Its scales are near 1. */
static bsmm_matrix matrix_of(const char *name, int64_t rows, int64_t cols,
                             overhead_product *product) {
    enum { SMALL = 0x31, E8M0_ONE = 127, E4M3_ONE = 0x38, F32_SMALL = 0x3f };
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    uint64_t data, scales = 0;
    m.format = format_of(name);
    m.rows = rows;
    m.cols = cols;
    if (bsmm_data_bytes(&m, &data) || (m.format.scale && bsmm_scale_bytes(&m, &scales)))
        overhead_fail(name, bsmm_error_message());
    m.data = allocate(product, data, SMALL);
    if (m.format.scale)
        m.scales = allocate(product, scales,
                            m.format.scale == BSMM_SCALE_E8M0   ? E8M0_ONE
                            : m.format.scale == BSMM_SCALE_E4M3 ? E4M3_ONE
                                                                : F32_SMALL);
    return m;
}

/* Returns a copy of the matrix in the memory of the device `queued`, or the matrix itself if
 * `queued` is NULL. */
static bsmm_matrix place(bench_device *queued, const bsmm_matrix *host) {
    bsmm_matrix there = *host;
    if (queued && !bench_device_put(queued, host, true, &there))
        overhead_fail("memory", bench_device_error());
    return there;
}

static void *room(overhead_product *product, bench_device *queued, uint64_t bytes) {
    void *memory = NULL;
    if (!queued) return allocate(product, bytes, 0);
    if (!bench_device_new(queued, NULL, bytes, &memory))
        overhead_fail("memory", bench_device_error());
    return memory;
}

static void pack(overhead_product *product, bench_device *queued) {
    product->buffers.packed_b_bytes = bsmm_plan_packed_b_bytes(product->plan);
    void *packed = room(product, queued, product->buffers.packed_b_bytes);
    if (bsmm_pack_b(product->plan, &product->buffers, packed, product->buffers.packed_b_bytes))
        overhead_fail("bsmm_pack_b", bsmm_error_message());
    product->buffers.packed_b = packed;
}

bool overhead_make(const overhead_case *c, const char *device, bench_device *queued, int64_t rows,
                   overhead_product *product) {
    *product = (overhead_product){0};
    bsmm_matrix host_a = matrix_of(c->a, rows, c->k, product);
    bsmm_matrix host_b = matrix_of(c->b, c->n, c->k, product);
    bsmm_matrix host_d = matrix_of("f32", rows, c->n, product);
    bsmm_matrix a = place(queued, &host_a), b = place(queued, &host_b), d = place(queued, &host_d);
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    desc.a = &a;
    desc.b = &b;
    desc.d = &d;
    desc.device = device;
    char kernel[64];
    snprintf(kernel, sizeof kernel, "%s_%s", bench_device_kind_of(device)->name,
             c->kernel ? c->kernel : "");
    desc.kernel = c->kernel ? kernel : NULL;
    desc.compute = c->compute;
    desc.b_packed = c->packed;
    desc.threads = 1;
    if (bsmm_plan_create(&desc, &product->plan)) {
        overhead_destroy(product);
        return false;
    }
    bsmm_buffers *buffers = &product->buffers;
    *buffers = BSMM_INIT(bsmm_buffers);
    buffers->a = a.data;
    buffers->a_scales = a.scales;
    buffers->b = b.data;
    buffers->b_scales = b.scales;
    buffers->d = d.data;
    buffers->workspace_bytes = bsmm_plan_workspace_bytes(product->plan);
    buffers->workspace = room(product, queued, buffers->workspace_bytes);
    if (queued) buffers->stream = bench_device_stream(queued);
    if (c->packed) pack(product, queued);
    return true;
}

void overhead_destroy(overhead_product *product) {
    bsmm_plan_destroy(product->plan);
    for (size_t i = 0; i < product->count; i++)
        free(product->memory[i]);
}
