/* Compares the decisions of the host code for GPUs with stored digests, for some hundred random
 * products (any_product.h) and each kind of GPU. A digest covers the kernels that accept a product,
 * the reasons for which the other kernels refuse it, the workspace, and everything that a run tells
 * the driver, i.e. the kernels, the grids and all bytes of the parameters. The drivers are fake
 * (tests/fake_cuda, tests/fake_hip), so the test needs no GPU. tests/golden/choices/README.md says
 * when the stored file changes. */
#include "../fake_cuda/fake_cuda.h"
#include "../fake_hip/fake_hip.h"
#include "any_product.h"
#include "core/describe.h"
#include "digest.h"
#include "fake.h"
#include "golden_lines.h"
#include "gpu/images.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PRODUCTS = 560, CONVERSIONS = 240, MOST_NAME = 200, MOST_FOUND = 200 };

/* The test's device memory is a range of addresses that begins at `memory_begin`. No memory is
 * behind these addresses, because nothing is ever read or written there. Each buffer has a range of
 * addresses of its own. */
static const uint64_t memory_begin = (uint64_t)1 << 44, buffer_bytes = (uint64_t)1 << 38;
enum { MOST_BUFFERS = 32 };

typedef struct gpu_kind {
    const char *title, *device;
    int generation; /* `generation` is the compute capability, or the digit after gfx9. */
} gpu_kind;

static const gpu_kind kinds[] = {
    {"sm_80", "cuda:0", 80},   {"sm_90", "cuda:1", 90}, {"sm_100", "cuda:2", 100},
    {"sm_120", "cuda:3", 120}, {"gfx942", "hip:0", 4},  {"gfx950", "hip:1", 5},
};

/* Returns the state of the fake driver of a device, and sets the generation that the driver reports
 * for devices that are opened from now on. */
static fake_driver *driver_of(const gpu_kind *kind) {
    static fake_cuda *cuda;
    static fake_hip *hip;
    if (!cuda) cuda = fake_find("libcuda.so.1", "fake_cuda_state");
    if (!hip) hip = fake_find("libamdhip64.so.6", "fake_hip_state");
    if (!cuda || !hip) return NULL;
    const bool is_cuda = kind->device[0] == 'c';
    if (is_cuda) cuda->capability = kind->generation;
    if (!is_cuda) hip->minor = kind->generation;
    return is_cuda ? &cuda->driver : &hip->driver;
}

static fake_driver *open_gpu(const gpu_kind *kind) {
    const bsmm_backend *backend;
    const void *device;
    const bsmm_gpu_image *image;
    fake_driver *const driver = driver_of(kind);
    if (!driver) return NULL;
    const char *const module = kind->device[0] == 'c' ? "sm80/words" : "cdna/words";
    if (bsmm_gpu_image_find(module, NULL, NULL, &image) != BSMM_OK) return NULL;
    driver->devices = 4;
    driver->free_bytes = (size_t)1 << 37;
    assert_int_equal(bsmm_device_open(kind->device, &backend, &device), BSMM_OK);
    driver->owner = kind->device[strlen(kind->device) - 1] - '0';
    driver->first_address = memory_begin;
    driver->address_count = MOST_BUFFERS * buffer_bytes;
    driver->record = digest_add;
    return driver;
}

static void *buffer(int index) {
    return (void *)(uintptr_t)(memory_begin + (uint64_t)index * buffer_bytes + 4096);
}

static void add_status(bsmm_status status) {
    digest_add_number(status);
    if (status != BSMM_OK) digest_add_text(bsmm_error_message());
}

static bsmm_buffers buffers_of(const any_product *p, const bsmm_plan *plan) {
    const bsmm_matrix *const m = p->matrices;
    const bsmm_epilogue *const e = p->desc.epilogue;
    const bsmm_group *const g = p->desc.group;
    const uint32_t flags = g ? g->flags : 0;
    bsmm_buffers b = {.struct_size = sizeof b, .workspace_bytes = bsmm_plan_workspace_bytes(plan)};
    b.a = buffer(0);
    b.b = p->desc.b_packed ? NULL : buffer(1);
    b.d = buffer(2);
    b.a_scales = m[ANY_A].format.scale ? buffer(3) : NULL;
    b.b_scales = m[ANY_B].format.scale && b.b ? buffer(4) : NULL;
    b.d_scales = m[ANY_D].format.scale ? buffer(5) : NULL;
    b.a_global = m[ANY_A].format.scale == BSMM_SCALE_E4M3 && p->has_globals ? buffer(6) : NULL;
    b.b_global =
        m[ANY_B].format.scale == BSMM_SCALE_E4M3 && p->has_globals && b.b ? buffer(7) : NULL;
    b.c = p->desc.c ? buffer(8) : NULL;
    b.bias = p->desc.bias_elem ? buffer(9) : NULL;
    b.workspace = buffer(10);
    b.packed_b = p->desc.b_packed ? buffer(11) : NULL;
    b.packed_b_bytes = p->desc.b_packed ? bsmm_plan_packed_b_bytes(plan) : 0;
    b.stream = NULL;
    b.residual = e && e->residual ? buffer(12) : NULL;
    b.row_scale = e && e->scale_by & BSMM_SCALE_BY_ROW ? buffer(13) : NULL;
    b.col_scale = e && e->scale_by & BSMM_SCALE_BY_COL ? buffer(14) : NULL;
    b.rows = p->counts_on_device ? 0 : p->rows;
    b.device_rows = p->counts_on_device ? buffer(15) : NULL;
    b.group_sizes = g && g->kind != BSMM_GROUP_BATCH ? buffer(16) : NULL;
    b.gather = flags & BSMM_GROUP_GATHER_A ? buffer(17) : NULL;
    b.group_alpha = flags & BSMM_GROUP_EACH_ALPHA ? buffer(18) : NULL;
    if (flags & BSMM_GROUP_EACH_A_GLOBAL) b.a_global = buffer(6);
    if (flags & BSMM_GROUP_EACH_B_GLOBAL && b.b) b.b_global = buffer(7);
    if (flags & BSMM_GROUP_EACH_D_GLOBAL) b.d_global = buffer(19);
    return b;
}

/* Makes a plan with the kernel that desc names, packs B if the plan has packed weights, and runs
 * it. Returns the status of the first call that fails. */
static bsmm_status run_plan(const any_product *p, uint64_t *workspace) {
    bsmm_plan *plan;
    digest_fill();
    bsmm_status status = bsmm_plan_create(&p->desc, &plan);
    *workspace = 0;
    add_status(status);
    if (status != BSMM_OK) return status;
    bsmm_buffers b = buffers_of(p, plan);
    *workspace = b.workspace_bytes;
    digest_add_number(b.workspace_bytes);
    digest_add_number(bsmm_plan_packed_b_bytes(plan));
    if (bsmm_plan_packed_b_bytes(plan)) {
        bsmm_buffers unpacked = b;
        unpacked.b = buffer(1);
        unpacked.b_scales = p->matrices[ANY_B].format.scale ? buffer(4) : NULL;
        digest_fill();
        add_status(bsmm_pack_b(plan, &unpacked, buffer(11), bsmm_plan_packed_b_bytes(plan)));
    }
    digest_fill();
    status = bsmm_plan_run(plan, &b);
    add_status(status);
    bsmm_plan_destroy(plan);
    return status;
}

/* Adds to the digest what bsmm_explain reports about a kernel. If the kernel accepts the product,
 * also adds what a run by this kernel tells the driver. */
static void visit_kernel(any_product *p, const bsmm_explanation *e) {
    uint64_t workspace;
    digest_add_text(e->kernel);
    digest_add_text(e->reason);
    digest_add_number(e->k_parts);
    digest_add_number(e->packed_b_bytes);
    digest_add(&e->bound, sizeof e->bound);
    if (!e->accepts) return;
    p->desc.kernel = e->kernel;
    run_plan(p, &workspace);
    p->desc.kernel = NULL;
}

static void visit_kernels(any_product *p, const char *backend) {
    bsmm_explanation e = {.struct_size = sizeof e};
    const bsmm_kernel *kernel;
    for (uint32_t i = 0; (kernel = bsmm_kernel_at(i)); i++) {
        if (strcmp(kernel->device, backend) != 0) continue;
        const bsmm_status status = bsmm_explain(&p->desc, i, &e);
        add_status(status);
        if (status == BSMM_OK) visit_kernel(p, &e);
    }
}

static void check_product(const gpu_kind *kind, int number, int *runs) {
    any_product p;
    char name[MOST_NAME], about[MOST_NAME], found[MOST_FOUND];
    bsmm_plan *plan = NULL;
    uint64_t workspace = 0;
    bsmm_status status = BSMM_OK;
    any_product_make(&p, (uint64_t)number, false);
    p.desc.device = kind->device;
    digest_reset();
    for (int round = 0; round < DIGEST_ROUNDS; round++) {
        digest_begin(round);
        visit_kernels(&p, kind->device[0] == 'c' ? "cuda" : "hip");
        status = run_plan(&p, &workspace);
    }
    *runs += status == BSMM_OK;
    const bool made = bsmm_plan_create(&p.desc, &plan) == BSMM_OK;
    snprintf(name, sizeof name, "%s %d", kind->title, number);
    snprintf(found, sizeof found, "%s %llu %d %08x", made ? bsmm_plan_kernel(plan) : "-",
             (unsigned long long)workspace, status, digest_end());
    bsmm_plan_destroy(plan);
    any_product_name(&p, about, sizeof about);
    golden_lines_check(name, found, about);
}

static void test_products(void **state) {
    (void)state;
    golden_lines_open("gpu_products");
    int opened = 0;
    for (size_t i = 0; i < BSMM_COUNT(kinds); i++) {
        int runs = 0;
        if (!open_gpu(&kinds[i])) continue;
        opened++;
        for (int number = 0; number < PRODUCTS; number++)
            check_product(&kinds[i], number, &runs);
        print_message("%s: %d of %d products ran\n", kinds[i].title, runs, PRODUCTS);
        assert_true(runs > PRODUCTS / 4);
    }
    golden_lines_close();
    if (opened == 0) skip(); /* The build has no GPU kernels. */
}

/* Quantizes a matrix, dequantizes it, computes the amax of the dequantized values, and moves its
 * scales to another layout. The matrix has the format and size of A or B of a random product. Adds
 * to the digest the status of each call and everything that the call tells the GPU driver. */
static void convert(any_product *p, const gpu_kind *kind, rng *r) {
    static const char *const plain[] = {"f32", "bf16", "f16"};
    static const char *const recipes[] = {NULL, NULL, NULL, "ocp", "rceil", "torchao"};
    const bsmm_exec exec = {.struct_size = sizeof exec, .device = kind->device};
    bsmm_matrix quantized = p->matrices[rng_below(r, 2)];
    bsmm_matrix values =
        describe(format_named(plain[rng_below(r, 3)]), quantized.rows, quantized.cols);
    bsmm_matrix moved = quantized;
    if (rng_below(r, 6) == 0) values.order = BSMM_ORDER_COL;
    quantized.data = buffer(0);
    quantized.scales = quantized.format.scale ? buffer(1) : NULL;
    moved.scale_layout = rng_below(r, BSMM_LAYOUT_CUBLAS_BLK128 + 1);
    moved.scale_ld = 0;
    moved.scale_tile_rows = moved.scale_tile_cols = 0;
    moved.scales = quantized.scales ? buffer(4) : NULL;
    if (quantized.format.scale == BSMM_SCALE_E4M3 && p->has_globals)
        quantized.global_scale = buffer(2);
    values.data = buffer(3);
    const bsmm_quantize_desc desc = {.struct_size = sizeof desc,
                                     .src = &values,
                                     .dst = &quantized,
                                     .recipe = recipes[rng_below(r, 6)],
                                     .flags = rng_below(r, 4) ? 0 : rng_below(r, 4),
                                     .amax = rng_below(r, 3) ? NULL : buffer(5),
                                     .device = kind->device};
    digest_fill();
    add_status(bsmm_quantize(&desc, NULL));
    digest_fill();
    add_status(bsmm_dequantize_on(&exec, &quantized, &values));
    add_status(bsmm_amax_on(&exec, &values, buffer(6)));
    add_status(bsmm_relayout_scales_on(&exec, &quantized, &moved));
}

static void check_conversion(const gpu_kind *kind, int number) {
    any_product p;
    char name[MOST_NAME], about[MOST_NAME], found[MOST_FOUND];
    any_product_make(&p, (uint64_t)number, number % 3 == 0);
    digest_reset();
    for (int round = 0; round < DIGEST_ROUNDS; round++) {
        rng r = {(uint64_t)number};
        digest_begin(round);
        convert(&p, kind, &r);
    }
    snprintf(name, sizeof name, "%s %d", kind->title, number);
    snprintf(found, sizeof found, "%08x", digest_end());
    any_product_name(&p, about, sizeof about);
    golden_lines_check(name, found, about);
}

static void test_conversions(void **state) {
    (void)state;
    golden_lines_open("gpu_conversions");
    int opened = 0;
    for (size_t i = 0; i < BSMM_COUNT(kinds); i++) {
        if (!open_gpu(&kinds[i])) continue;
        opened++;
        for (int number = 0; number < CONVERSIONS; number++)
            check_conversion(&kinds[i], number);
    }
    golden_lines_close();
    if (opened == 0) skip(); /* The build has no GPU kernels. */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products),
                                       cmocka_unit_test(test_conversions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
