/* Tests plans on a GPU. A run must work in a graph and on any stream, must give bitwise identical
 * results in every run and with a packed B, and must refuse wrong pointers. The test covers every
 * GPU kernel and is skipped without a GPU. */
#include "cuda.h"
#include "operand.h"
#include "walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 144, K = 384, MOST = 130 };

/* `pairs` holds the formats of A and B, and of D if it is not f32. */
static const char *const pairs[][3] = {
    {"mxfp4", "mxfp4"},        {"mxfp8", "mxfp8"},         {"nvfp4", "nvfp4"},
    {"bf16", "mxfp4"},         {"mxfp8", "fp8_block128"},  {"fp8_group128", "fp8_block128"},
    {"bf16", "bf16"},          {"mxfp6_e2m3", "mxfp4"},    {"bf16", "f16"},
    {"mxfp8", "f32"},          {"f16", "fp8_block128"},    {"fp8_group128", "nvfp4"},
    {"fp8_group128", "mxfp4"}, {"bf16", "mxfp4", "nvfp4"},
};
static const int64_t rows[] = {1, 8, MOST};

typedef struct fixture {
    const bsmm_cuda_device *device;
    test_matrix a, b, d; /* `a`, `b` and `d` are in host memory. */
    bsmm_matmul_desc desc;
    bsmm_plan *plan;
    bsmm_buffers buffers; /* `buffers` points to device memory. */
    CUstream stream;
} fixture;

static void fixture_make(fixture *f, const bsmm_cuda_device *device, const char *const pair[3],
                         int64_t m, rng *r) {
    *f = (fixture){.device = device};
    test_matrix_make(&f->a, describe(format_named(pair[0]), m, K), FILL_ORDINARY, r);
    test_matrix_make(&f->b, describe(format_named(pair[1]), N, K), FILL_ORDINARY, r);
    test_matrix_make(&f->d, describe(format_named(pair[2] ? pair[2] : "f32"), m, N), FILL_ORDINARY,
                     r);
    f->desc =
        (bsmm_matmul_desc){.struct_size = sizeof f->desc, .a = &f->a.m, .b = &f->b.m, .d = &f->d.m};
    TEST_CUDA(device, cuStreamCreate, &f->stream, CU_STREAM_NON_BLOCKING);
    f->buffers = (bsmm_buffers){
        .struct_size = sizeof f->buffers,
        .a = test_cuda_new(device, f->a.m.data, f->a.data_bytes),
        .a_scales = test_cuda_new(device, f->a.m.scales, f->a.scale_bytes),
        .b = test_cuda_new(device, f->b.m.data, f->b.data_bytes),
        .b_scales = test_cuda_new(device, f->b.m.scales, f->b.scale_bytes),
        .d = test_cuda_new(device, NULL, f->d.data_bytes),
        .d_scales = test_cuda_new(device, NULL, f->d.scale_bytes),
        .stream = f->stream,
    };
}

static void open_plan(fixture *f) {
    if (bsmm_plan_create(&f->desc, &f->plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    f->buffers.workspace_bytes = bsmm_plan_workspace_bytes(f->plan);
    f->buffers.workspace = test_cuda_new(f->device, NULL, f->buffers.workspace_bytes);
}

static void close_plan(fixture *f) {
    test_cuda_free(f->device, f->buffers.workspace);
    bsmm_plan_destroy(f->plan);
}

static void *mutable(const void *pointer) {
    return (void *)(uintptr_t)pointer;
}

static void fixture_free(fixture *f) {
    void *buffers[] = {mutable(f->buffers.a), mutable(f->buffers.a_scales),
                       mutable(f->buffers.b), mutable(f->buffers.b_scales),
                       f->buffers.d,          f->buffers.d_scales};
    for (size_t i = 0; i < BSMM_COUNT(buffers); i++)
        test_cuda_free(f->device, buffers[i]);
    TEST_CUDA(f->device, cuStreamDestroy, f->stream);
    test_matrix_free(&f->a);
    test_matrix_free(&f->b);
    test_matrix_free(&f->d);
}

/* Fills D with a pattern, calls `queue` to run the product, and returns the elements of D in host
 * memory. */
static void *result_of(fixture *f, void (*queue)(fixture *f)) {
    TEST_CUDA(f->device, cuMemsetD8Async, (uintptr_t)f->buffers.d, 0xA5, f->d.data_bytes,
              f->stream);
    queue(f);
    TEST_CUDA(f->device, cuStreamSynchronize, f->stream);
    void *bits = malloc(f->d.data_bytes);
    test_cuda_read(f->device, bits, f->buffers.d, f->d.data_bytes);
    return bits;
}

static void run(fixture *f) {
    if (bsmm_plan_run(f->plan, &f->buffers) != BSMM_OK)
        fail_msg("%s: %s", bsmm_plan_kernel(f->plan), bsmm_error_message());
}

static void expect_bits(fixture *f, const void *want, void (*queue)(fixture *f), const char *how) {
    void *got = result_of(f, queue);
    if (memcmp(got, want, f->d.data_bytes) != 0)
        fail_msg("%s, %s x %s, %lld rows: other bits %s", bsmm_plan_kernel(f->plan),
                 bsmm_format_name(f->a.m.format), bsmm_format_name(f->b.m.format),
                 (long long)f->d.m.rows, how);
    free(got);
}

static void poison_workspace(fixture *f) {
    if (f->buffers.workspace_bytes)
        TEST_CUDA(f->device, cuMemsetD8Async, (uintptr_t)f->buffers.workspace, 0xFF,
                  f->buffers.workspace_bytes, f->stream);
}

static void run_poisoned(fixture *f) {
    poison_workspace(f);
    run(f);
}

/* Captures a run in a graph. In the strictest capture mode, used here, every call that allocates or
 * synchronizes fails. */
static void run_in_graph(fixture *f) {
    CUgraph graph;
    CUgraphExec executable;
    poison_workspace(f);
    TEST_CUDA(f->device, cuStreamBeginCapture, f->stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    run(f);
    TEST_CUDA(f->device, cuStreamEndCapture, f->stream, &graph);
    TEST_CUDA(f->device, cuGraphInstantiate, &executable, graph, 0);
    for (int i = 0; i < 2; i++)
        TEST_CUDA(f->device, cuGraphLaunch, executable, f->stream);
    TEST_CUDA(f->device, cuStreamSynchronize, f->stream);
    TEST_CUDA(f->device, cuGraphExecDestroy, executable);
    TEST_CUDA(f->device, cuGraphDestroy, graph);
}

static void run_in_default_stream(fixture *f) {
    f->buffers.stream = NULL;
    run(f);
    TEST_CUDA(f->device, cuStreamSynchronize, NULL);
    f->buffers.stream = f->stream;
}

static void check_runs(fixture *f) {
    open_plan(f);
    void *first = result_of(f, run_poisoned);
    expect_bits(f, first, run_poisoned, "on a second run");
    expect_bits(f, first, run_in_graph, "in a graph");
    expect_bits(f, first, run_in_default_stream, "in the default stream");
    close_plan(f);
    free(first);
}

/* Fails unless the header of packed weights names one of the known packed formats. */
static void check_header(fixture *f, const void *packed, uint64_t bytes) {
    static const char *const forms[] = {"stored", "bf16", "bf16x2", "bf16x3", "f16", "fp8"};
    bsmm_packed_info info = {.struct_size = sizeof info};
    uint8_t *host = malloc(bytes);
    TEST_CUDA(f->device, cuStreamSynchronize, f->stream);
    test_cuda_read(f->device, host, packed, bytes);
    assert_int_equal(bsmm_packed_describe(host, bytes, &info), BSMM_OK);
    free(host);
    assert_int_equal(strncmp(info.panels, "sm90a_", 6), 0);
    const char *name = info.panels + 6;
    const size_t length = strcspn(name, "_");
    bool known = false;
    for (size_t i = 0; i < BSMM_COUNT(forms); i++)
        known = known || (strlen(forms[i]) == length && !strncmp(forms[i], name, length));
    const uint32_t elem = f->b.m.format.elem;
    const char *parts = elem == BSMM_ELEM_F16 ? "bf16x2" : elem == BSMM_ELEM_F32 ? "bf16x3" : NULL;
    if (!known || (parts && strcmp(name, parts) != 0))
        fail_msg("%s x %s: the panels are called %s", bsmm_format_name(f->a.m.format),
                 bsmm_format_name(f->b.m.format), info.panels);
}

/* A run with packed weights must not read B, so B's pointers are NULL here. */
static void check_packed(fixture *f) {
    const bsmm_buffers all = f->buffers;
    open_plan(f);
    uint64_t bytes = bsmm_plan_packed_b_bytes(f->plan);
    void *plain = result_of(f, run);
    close_plan(f);
    f->desc.b_packed = 1;
    if (bytes) {
        open_plan(f);
        void *packed = test_cuda_new(f->device, NULL, bytes);
        assert_int_equal(bsmm_pack_b(f->plan, &f->buffers, packed, bytes), BSMM_OK);
        check_header(f, packed, bytes);
        f->buffers.packed_b = packed;
        f->buffers.packed_b_bytes = bytes;
        f->buffers.b = f->buffers.b_scales = NULL;
        f->buffers.b_global = NULL;
        expect_bits(f, plain, run_poisoned, "from a packed B");
        expect_bits(f, plain, run_in_graph, "from a packed B in a graph");
        f->buffers.packed_b = NULL;
        f->buffers.packed_b_bytes = 0;
        f->buffers.b = all.b;
        f->buffers.b_scales = all.b_scales;
        f->buffers.b_global = all.b_global;
        close_plan(f);
        test_cuda_free(f->device, packed);
    }
    f->desc.b_packed = 0;
    free(plain);
}

/* Calls `check` for every kernel of the GPU and every pair of formats. Prints a message for a pair
 * that no kernel accepts. */
static void on_every_kernel(void (*check)(fixture *f)) {
    const bsmm_cuda_device *device = test_cuda_device();
    rng r = {71};
    int ran = 0;
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        for (size_t j = 0; j < BSMM_COUNT(rows); j++) {
            fixture f;
            fixture_make(&f, device, pairs[i], rows[j], &r);
            for (test_walk w = test_walk_begin(&f.desc); test_walk_next(&w);) {
                if (test_walk_on_cpu(&w)) continue;
                check(&f);
                ran++;
            }
            fixture_free(&f);
        }
    print_message("%d products\n", ran);
}

static void test_graphs_streams_and_repeats(void **state) {
    (void)state;
    on_every_kernel(check_runs);
}

static void test_packed_gives_the_same_bits(void **state) {
    (void)state;
    on_every_kernel(check_packed);
}

typedef struct spoiled {
    const char *field;
    size_t offset; /* `offset` is the byte offset of the pointer in bsmm_buffers. */
} spoiled;

static const spoiled pointers[] = {
    {"a.data", offsetof(bsmm_buffers, a)},
    {"a.scales", offsetof(bsmm_buffers, a_scales)},
    {"b.data", offsetof(bsmm_buffers, b)},
    {"b.scales", offsetof(bsmm_buffers, b_scales)},
    {"d.data", offsetof(bsmm_buffers, d)},
    {"d.scales", offsetof(bsmm_buffers, d_scales)},
    {"workspace", offsetof(bsmm_buffers, workspace)},
};

static void expect_refusal(fixture *f, const spoiled *s, void *value, const char *rule) {
    bsmm_buffers buffers = f->buffers;
    memcpy((char *)&buffers + s->offset, &value, sizeof value);
    assert_int_equal(bsmm_plan_run(f->plan, &buffers), BSMM_E_INVALID);
    if (strncmp(bsmm_error_message(), s->field, strlen(s->field)) != 0 ||
        !strstr(bsmm_error_message(), rule))
        fail_msg("%s: the message is \"%s\"", s->field, bsmm_error_message());
}

static void check_refusals(fixture *f) {
    open_plan(f);
    void *host = aligned_alloc(256, 1 << 20), *before = result_of(f, run);
    for (size_t i = 0; i < BSMM_COUNT(pointers); i++) {
        void *given;
        memcpy(&given, (char *)&f->buffers + pointers[i].offset, sizeof given);
        if (!given) continue;
        expect_refusal(f, &pointers[i], host, "host memory");
        expect_refusal(f, &pointers[i], NULL, "");
        bool room = pointers[i].offset == offsetof(bsmm_buffers, workspace);
        if (room) expect_refusal(f, &pointers[i], (char *)given + 4, "aligned");
    }
    expect_bits(f, before, run, "after refusals");
    close_plan(f);
    free(before);
    free(host);
}

static void test_wrong_pointers_are_refused(void **state) {
    (void)state;
    on_every_kernel(check_refusals);
}

/* Tests that a run refuses a pointer that is aligned for an element, if the kernel needs a larger
 * alignment. */
static void check_alignment(fixture *f) {
    open_plan(f);
    bsmm_buffers buffers = f->buffers;
    buffers.d = (char *)buffers.d + 4;
    bsmm_status status = bsmm_plan_run(f->plan, &buffers);
    if (status != BSMM_OK) {
        assert_int_equal(status, BSMM_E_INVALID);
        assert_non_null(strstr(bsmm_error_message(), "d.data"));
        assert_non_null(strstr(bsmm_error_message(), "aligned"));
    }
    close_plan(f);
}

static void test_misaligned_pointers_are_refused(void **state) {
    (void)state;
    const bsmm_cuda_device *device = test_cuda_device();
    rng r = {72};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++) {
        fixture f;
        fixture_make(&f, device, pairs[i], 3, &r);
        test_cuda_free(device, f.buffers.d);
        f.buffers.d = test_cuda_new(device, NULL, f.d.data_bytes + 16);
        for (test_walk w = test_walk_begin(&f.desc); test_walk_next(&w);)
            if (!test_walk_on_cpu(&w)) check_alignment(&f);
        TEST_CUDA(device, cuStreamSynchronize, f.stream);
        fixture_free(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphs_streams_and_repeats),
        cmocka_unit_test(test_packed_gives_the_same_bits),
        cmocka_unit_test(test_wrong_pointers_are_refused),
        cmocka_unit_test(test_misaligned_pointers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
