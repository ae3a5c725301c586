/* Tests how many machine instructions bsmm_plan_run executes on the host outside its kernel. The
 * plan must have done all other work when it was made. On the CPU, the test counts the instructions
 * outside the kernel's function `run`. On a GPU, it counts the instructions outside the driver, and
 * the calls of the driver other than launches. A fake driver (tests/fake_cuda) has three GPUs, so
 * every CUDA kernel runs. The test prints the counts as a table. */
#include "core/describe.h"
#include "fake.h"
#include "fake_gpus.h"
#include "steps.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* These are limits for the number of instructions that a run executes on the host. MOST_ON_CPU
 * limits a run on the CPU, without the kernel's own instructions; on a Zen 4, 1000 instructions
 * take 60 ns. On a GPU the limit is MOST_ON_CUDA plus MOST_PER_LAUNCH for each launch, without the
 * driver's instructions. The goal for a run with one launch is at most 2406, i.e. 0.3 times the
 * 8020 instructions that a bare launch of 32 threads takes on the emulated device
 * (tests/emulated_cuda). */
enum { MOST_ON_CPU = 1000, MOST_ON_CUDA = 1800, MOST_PER_LAUNCH = 400 };

typedef struct plain_case {
    const char *a, *b;
    int64_t m, n, k;
    uint32_t compute;
    bool adds_c;
    const char *d; /* `d` is the format of D. NULL means f32. */
} plain_case;

/* Holds a plan and the memory of its runs. */
typedef struct prepared {
    const char *device;
    test_matrix host[4]; /* Holds the matrices A, B, D and C in host memory. */
    bsmm_matrix on[4];   /* Holds the matrices A, B, D and C in the memory of the device. */
    float beta;
    bsmm_matmul_desc desc;
    bsmm_plan *plan;
    bsmm_buffers buffers;
    void *workspace, *packed;
} prepared;

static void *upload(const char *device, const void *from, size_t bytes) {
    return from ? fake_upload(device, bytes + 64) : NULL;
}

static void prepare(prepared *p, const plain_case *c, const char *device) {
    const char *const formats[4] = {c->a, c->b, c->d ? c->d : "f32", "f32"};
    const int64_t rows[4] = {c->m, c->n, c->m, c->m}, cols[4] = {c->k, c->k, c->n, c->n};
    rng r = {17};
    *p = (prepared){.device = device, .beta = 1};
    for (int i = 0; i < 4; i++) {
        test_matrix *const host = &p->host[i];
        test_matrix_make(host, describe(format_named(formats[i]), rows[i], cols[i]), FILL_ORDINARY,
                         &r);
        p->on[i] = host->m;
        if (!device) continue;
        p->on[i].data = upload(device, host->m.data, host->data_bytes);
        p->on[i].scales = upload(device, host->m.scales, host->scale_bytes);
    }
    p->desc = (bsmm_matmul_desc){.struct_size = sizeof p->desc,
                                 .a = &p->on[0],
                                 .b = &p->on[1],
                                 .d = &p->on[2],
                                 .c = c->adds_c ? &p->on[3] : NULL,
                                 .beta = c->adds_c ? &p->beta : NULL,
                                 .device = device,
                                 .compute = c->compute,
                                 .threads = 1};
}

static void release(prepared *p) {
    for (int i = 0; i < 4; i++) {
        if (p->device) {
            assert_int_equal(bsmm_free_memory(p->device, p->on[i].data), BSMM_OK);
            assert_int_equal(bsmm_free_memory(p->device, p->on[i].scales), BSMM_OK);
        }
        test_matrix_free(&p->host[i]);
    }
}

static void *new_memory(const prepared *p, uint64_t bytes) {
    void *memory;
    const char *const device = p->device ? p->device : "cpu";
    assert_int_equal(bsmm_allocate_memory(device, bytes + 64, &memory), BSMM_OK);
    return memory;
}

static void open_plan(prepared *p) {
    if (bsmm_plan_create(&p->desc, &p->plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    p->buffers = (bsmm_buffers){.struct_size = sizeof p->buffers,
                                .a = p->on[0].data,
                                .a_scales = p->on[0].scales,
                                .b = p->on[1].data,
                                .b_scales = p->on[1].scales,
                                .c = p->desc.c ? p->on[3].data : NULL,
                                .d = p->on[2].data,
                                .d_scales = p->on[2].scales,
                                .workspace_bytes = bsmm_plan_workspace_bytes(p->plan)};
    p->buffers.workspace = p->workspace = new_memory(p, p->buffers.workspace_bytes);
    p->packed = NULL;
    if (!p->desc.b_packed) return;
    p->buffers.packed_b_bytes = bsmm_plan_packed_b_bytes(p->plan);
    p->packed = new_memory(p, p->buffers.packed_b_bytes);
    assert_int_equal(bsmm_pack_b(p->plan, &p->buffers, p->packed, p->buffers.packed_b_bytes),
                     BSMM_OK);
    p->buffers.packed_b = p->packed;
}

static void close_plan(prepared *p) {
    const char *const device = p->device ? p->device : "cpu";
    bsmm_plan_destroy(p->plan);
    assert_int_equal(bsmm_free_memory(device, p->workspace), BSMM_OK);
    assert_int_equal(bsmm_free_memory(device, p->packed), BSMM_OK);
}

static void run_once(void *context) {
    const prepared *p = context;
    if (bsmm_plan_run(p->plan, &p->buffers) != BSMM_OK) fail_msg("%s", bsmm_error_message());
}

/* Counts the instructions of a run. Two other runs come first, because the first call of a function
 * also runs the dynamic linker. */
static void count_run(prepared *p, test_steps *steps) {
    run_once(p);
    run_once(p);
    test_steps_count(run_once, p, steps);
}

static const bsmm_kernel *kernel_named(const char *name) {
    const bsmm_kernel *k;
    for (uint32_t i = 0; (k = bsmm_kernel_at(i)); i++)
        if (strcmp(k->name, name) == 0) return k;
    return NULL;
}

static const char *text_of(const plain_case *c, uint32_t packed, const char *kernel) {
    static char text[160];
    snprintf(text, sizeof text, "%-28s %12s x %-12s %3d x %3d x %3d %7s", kernel, c->a, c->b,
             (int)c->m, (int)c->n, (int)c->k,
             packed == BSMM_PACKED_WIDE      ? "wide"
             : packed == BSMM_PACKED_COMPACT ? "compact"
                                             : "stored");
    return text;
}

static void check_on_cpu(prepared *p, const plain_case *c) {
    const bsmm_kernel *const kernel = kernel_named(p->desc.kernel);
    test_steps steps = {.omitted = {(uintptr_t)kernel->run}};
    open_plan(p);
    count_run(p, &steps);
    close_plan(p);
    const char *text = text_of(c, p->desc.b_packed, kernel->name);
    print_message("%s %5d instructions\n", text, (int)steps.count);
    assert_int_equal(steps.calls[0], 1);
    if (steps.count > MOST_ON_CPU)
        fail_msg("%s: %d instructions beside the kernel; at most %d", text, (int)steps.count,
                 MOST_ON_CPU);
}

static void on_chosen_kernel(prepared *p, const plain_case *c, uint32_t packed) {
    bsmm_explanation e = {.struct_size = sizeof e};
    p->desc.b_packed = packed;
    p->desc.kernel = NULL;
    for (uint32_t i = 0; bsmm_explain(&p->desc, i, &e) == BSMM_OK && !e.accepts;)
        i++;
    p->desc.kernel = e.kernel;
    check_on_cpu(p, c);
}

static const plain_case cpu_cases[] = {
    {"mxfp4", "mxfp4", 8, 8, 32, 0, false, NULL},
    {"mxfp4", "mxfp4", 16, 64, 64, 0, false, NULL},
    {"mxfp4", "mxfp4", 128, 128, 128, 0, false, NULL},
    {"bf16", "mxfp4", 8, 8, 32, 0, false, NULL},
    {"mxfp8", "mxfp8", 16, 64, 64, 0, false, NULL},
    {"fp8_group128", "fp8_block128", 128, 128, 128, 0, false, NULL},
    {"f32", "f32", 8, 8, 32, 0, false, NULL},
    {"bf16", "mxfp4", 8, 8, 32, 0, true, NULL},
    {"mxfp8", "mxfp8", 16, 64, 64, 0, false, "mxfp8"},
};

static void test_a_run_on_the_cpu_has_few_instructions(void **state) {
    (void)state;
    if (!test_steps_can_count()) skip();
    for (size_t i = 0; i < BSMM_COUNT(cpu_cases); i++) {
        prepared p;
        prepare(&p, &cpu_cases[i], NULL);
        on_chosen_kernel(&p, &cpu_cases[i], BSMM_PACKED_NONE);
        on_chosen_kernel(&p, &cpu_cases[i], BSMM_PACKED_WIDE);
        on_chosen_kernel(&p, &cpu_cases[i], BSMM_PACKED_COMPACT);
        release(&p);
    }
}

static const plain_case cuda_cases[] = {
    {"bf16", "bf16", 64, 512, 512, 0, false, "mxfp8"},
    {"bf16", "mxfp4", 1, 512, 512, 0, true, NULL},
    {"mxfp4", "mxfp4", 512, 512, 512, 0, false, NULL},
    {"fp8_group128", "fp8_block128", 512, 512, 512, 0, false, NULL},
    {"fp8_group128", "fp8_block128", 4, 512, 512, 0, false, NULL},
    {"f16", "mxfp4", 128, 512, 512, 0, false, NULL},
    {"nvfp4", "nvfp4", 4, 512, 512, 0, false, NULL},
    {"mxfp8", "mxfp8", 512, 512, 512, BSMM_COMPUTE_FAST, false, NULL},
    {"bf16", "fp8_block128", 512, 512, 512, 0, false, NULL},
    {"f32", "f32", 64, 512, 512, 0, false, NULL},
};

/* A run may call these functions of the driver. The enumerators are the indices of the first five
 * functions in driver_functions, which are also their indices in test_steps.omitted. */
enum { LAUNCH, POINTER, MAP, PUSH, POP };
static const char *const driver_functions[] = {
    "cuLaunchKernelEx",    "cuPointerGetAttributes", "cuTensorMapReplaceAddress",
    "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2",     "cuMemsetD8Async",
    "cuMemsetD32Async",    "cuMemcpyDtoDAsync_v2"};
_Static_assert(BSMM_COUNT(driver_functions) <= TEST_STEPS_MOST_OMITTED, "too many functions");

static uintptr_t driver_at[BSMM_COUNT(driver_functions)];

/* To save time, the test counts the instructions of only the first MOST_RUNS runs of each kernel.
 * counted[i][packed] is the number of runs of the kernel bsmm_kernel_at(i) so far, on the current
 * device. `packed` is 0 for stored weights and 1 for packed weights of form wide. */
enum { MOST_RUNS = 3, MOST_KERNELS = 64 };
static int counted[MOST_KERNELS][2];

static void check_on_cuda(prepared *p, const plain_case *c) {
    test_steps steps = {.count = 0};
    memcpy(steps.omitted, driver_at, sizeof driver_at);
    open_plan(p);
    count_run(p, &steps);
    close_plan(p);
    const char *const text = text_of(c, p->desc.b_packed, p->desc.kernel);
    const int launches = (int)steps.calls[LAUNCH];
    print_message("%s %s %5d instructions, %d launches, %d pointers, %d maps\n", p->device, text,
                  (int)steps.count, launches, (int)steps.calls[POINTER], (int)steps.calls[MAP]);
    assert_true(launches > 0);
    assert_true(steps.calls[PUSH] == steps.calls[POP]);
    const int most = MOST_ON_CUDA + MOST_PER_LAUNCH * launches;
    if ((int)steps.count > most)
        fail_msg("%s %s: %d instructions beside the driver; at most %d", p->device, text,
                 (int)steps.count, most);
}

/* Checks the kernels of a device that accept the product with weights in the packed form `packed`
 * (BSMM_PACKED_*). */
static void on_kernels(prepared *p, const plain_case *c, uint32_t packed) {
    bsmm_explanation e = {.struct_size = sizeof e};
    p->desc.b_packed = packed;
    p->desc.kernel = NULL;
    for (uint32_t i = 0; bsmm_explain(&p->desc, i, &e) == BSMM_OK; i++) {
        if (!e.accepts || counted[i][packed]++ >= MOST_RUNS) continue;
        p->desc.kernel = e.kernel;
        check_on_cuda(p, c);
        p->desc.kernel = NULL;
    }
}

static void find_functions(void) {
    void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < BSMM_COUNT(driver_functions); i++)
        driver_at[i] = (uintptr_t)dlsym(library, driver_functions[i]);
}

static void test_a_run_on_cuda_has_few_instructions(void **state) {
    (void)state;
    fake_cuda *const gpu = fake_gpus_open();
    if (!gpu || !test_steps_can_count()) skip();
    find_functions();
    bool seen[MOST_KERNELS] = {false};
    int runs = 0;
    for (int d = 0; d < FAKE_GPUS; d++) {
        memset(counted, 0, sizeof counted);
        gpu->driver.owner = d;
        for (size_t i = 0; i < BSMM_COUNT(cuda_cases); i++) {
            prepared p;
            prepare(&p, &cuda_cases[i], fake_gpus[d]);
            on_kernels(&p, &cuda_cases[i], BSMM_PACKED_NONE);
            on_kernels(&p, &cuda_cases[i], BSMM_PACKED_WIDE);
            release(&p);
        }
        for (int i = 0; i < MOST_KERNELS; i++)
            if (counted[i][BSMM_PACKED_NONE]) seen[i] = true, runs++;
    }
    if (runs == 0) skip(); /* The build has no CUDA kernels. */
    const bsmm_kernel *k;
    for (uint32_t i = 0; (k = bsmm_kernel_at(i)); i++)
        if (strcmp(k->device, "cuda") == 0 && !seen[i]) fail_msg("%s: no run was counted", k->name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_on_the_cpu_has_few_instructions),
        cmocka_unit_test(test_a_run_on_cuda_has_few_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
