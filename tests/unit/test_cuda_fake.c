/* Tests how the host code uses a CUDA driver. The driver is fake (tests/fake_cuda), so the test
 * needs no GPU. The test makes every driver function fail once, and passes pointers to memory that
 * does not belong to the device. */
#include "../fake_cuda/fake_cuda.h"
#include "core/describe.h"
#include "cuda.h"
#include "cuda/host/kernel.h"
#include "fake.h"
#include "gpu/images.h"
#include "message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

extern const bsmm_backend bsmm_backend_cuda;
static fake_cuda *gpu;
/* `fake` points to the part of the fake driver's state that all fake drivers have. */
static fake_driver *fake;

static int find_fake(void **state) {
    (void)state;
    gpu = fake_find("libcuda.so.1", "fake_cuda_state");
    fake = gpu ? &gpu->driver : NULL;
    return fake ? 0 : -1;
}

/* Checks that the library has popped every CUDA context that it pushed, even if a driver function
 * failed. */
static int check_balance(void **state) {
    (void)state;
    fake->failing = NULL;
    fake->owner = 0;
    return gpu->depth;
}

static bool fails_as(const char *entry, CUresult result, bsmm_status wanted) {
    const bsmm_cuda_device *device;
    fake->failing = entry;
    fake->failure = result;
    bool same = bsmm_cuda_device_get(0, &device) == wanted && !device &&
                strstr(bsmm_error_message(), "cu") != NULL;
    fake->failing = NULL;
    return same;
}

/* Tests a driver that does not start. A process cannot start the driver a second time, so this
 * test runs in a child process. */
static void a_driver_that_does_not_start(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        const bsmm_cuda_device *device;
        bool same = fails_as("cuInit", CUDA_ERROR_NO_DEVICE, BSMM_E_NOT_FOUND) &&
                    strstr(bsmm_error_message(), "cuInit") &&
                    bsmm_cuda_device_get(0, &device) == BSMM_E_NOT_FOUND &&
                    strstr(bsmm_error_message(), "nvidia-smi");
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
    static const char *const entries[] = {"cuDeviceGetCount",        "cuDeviceGet",
                                          "cuDeviceGetName",         "cuDeviceGetAttribute",
                                          "cuDeviceTotalMem_v2",     "cuDriverGetVersion",
                                          "cuDevicePrimaryCtxRetain"};
    const bsmm_cuda_device *device, *again;
    for (size_t i = 0; i < BSMM_COUNT(entries); i++) {
        assert_true(fails_as(entries[i], CUDA_ERROR_OUT_OF_MEMORY, BSMM_E_MEMORY));
        expect_message("FAKE_ERROR_2");
    }
    assert_int_equal(bsmm_cuda_device_get(0, &device), BSMM_OK);
    assert_int_equal(bsmm_cuda_device_get(0, &again), BSMM_OK);
    assert_ptr_equal(device, again);
    assert_string_equal(device->name, "Fake GPU 0");
    assert_int_equal(device->capability, 90);
    assert_int_equal(device->multiprocessors, 132);
}

/* Tests the list of devices. The cpu must be first, then the CUDA devices, then the devices of
 * other backends. */
static void devices_are_listed(void **state) {
    (void)state;
    bsmm_local_device info = BSMM_INIT(bsmm_local_device);
    uint32_t count = 3;
    assert_int_equal(bsmm_local_device_at(0, &info), BSMM_OK);
    assert_string_equal(info.name, "cpu");
    assert_int_equal(bsmm_local_device_at(2, &info), BSMM_OK);
    assert_string_equal(info.name, "cuda:1");
    assert_string_equal(info.title, "Fake GPU 1");
    assert_int_equal(info.cores, 132);
    assert_string_equal(info.features, "sm_90a memory:1GiB l2:50MiB cuda:13.1");
    while (bsmm_local_device_at(count, &info) == BSMM_OK) {
        assert_int_not_equal(strncmp(info.name, "cuda", 4), 0);
        count++;
    }
    char devices[32];
    snprintf(devices, sizeof devices, "%u devices", count);
    expect_message(devices);
}

static void devices_that_are_not_there(void **state) {
    (void)state;
    bsmm_matrix matrix = describe(format_named("f32"), 0, 0);
    bsmm_matmul_desc desc = {.struct_size = sizeof desc, .a = &matrix, .b = &matrix, .d = &matrix};
    bsmm_plan *plan;
    desc.device = "cuda:2";
    assert_int_equal(bsmm_plan_create(&desc, &plan), BSMM_E_NOT_FOUND);
    expect_message("sees 2 NVIDIA GPUs");
    desc.device = "cuda:two";
    assert_int_equal(bsmm_plan_create(&desc, &plan), BSMM_E_INVALID);
}

static const bsmm_cuda_device *device_0(void) {
    const bsmm_cuda_device *device;
    assert_int_equal(bsmm_cuda_device_get(0, &device), BSMM_OK);
    if (!test_cuda_is_built()) skip();
    return device;
}

static bsmm_status launch(const bsmm_cuda_device *device, const bsmm_cuda_function *function) {
    int argument = 0;
    return bsmm_cuda_launch(device, &(bsmm_cuda_launch_desc){
                                        .function = function,
                                        .grid = {3, 0, 2},
                                        .block = {128},
                                        .cluster = {2},
                                        .shared_bytes = function->shared_bytes,
                                        .overlap = true,
                                        .stream = &argument,
                                        .arguments = BSMM_CUDA_ARGUMENTS(&argument),
                                    });
}

static void launches_say_what_they_are_told(void **state) {
    (void)state;
    static const bsmm_cuda_function words = {"sm80/words", "store_words", 1000};
    const bsmm_cuda_device *device = device_0();
    int loads = fake->loads, launches = fake->launches;
    for (int i = 0; i < 3; i++)
        assert_int_equal(launch(device, &words), BSMM_OK);
    assert_int_equal(fake->loads, loads + 1);
    assert_int_equal(fake->launches, launches + 3);
    const CUlaunchConfig *c = &gpu->config;
    assert_true(c->gridDimX == 3 && c->gridDimY == 1 && c->gridDimZ == 2);
    assert_true(c->blockDimX == 128 && c->blockDimY == 1 && c->sharedMemBytes == 1000);
    assert_true(c->numAttrs == 2 && c->hStream);
    assert_int_equal(gpu->attributes[0].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    assert_int_equal(gpu->attributes[0].value.clusterDim.x, 2);
    assert_int_equal(gpu->attributes[1].id, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    assert_int_equal(gpu->attributes[1].value.programmaticStreamSerializationAllowed, 1);
}

/* Tests which module the library loads: the cubin if the device can run it, otherwise PTX. */
static void modules_are_what_the_device_runs(void **state) {
    (void)state;
    static const char elf[] = {0x7f, 'E', 'L', 'F'};
    static const bsmm_cuda_function recode = {"sm80/recode", "any", 0};
    const bsmm_cuda_device *hopper = device_0(), *ampere;
    assert_int_equal(bsmm_cuda_load(hopper, &recode, NULL), BSMM_OK);
    assert_memory_equal(fake->image, elf, sizeof elf);
    gpu->capability = 80;
    assert_int_equal(bsmm_cuda_device_get(1, &ampere), BSMM_OK);
    gpu->capability = 90;
    assert_int_equal(bsmm_cuda_load(ampere, &recode, NULL), BSMM_OK);
    assert_memory_equal(fake->image, "//", 2);
    static const bsmm_cuda_function probe = {"sm90a/small_m", "any", 0};
    assert_int_equal(bsmm_cuda_load(ampere, &probe, NULL), BSMM_E_UNSUPPORTED);
    expect_message("is for sm90a; Fake GPU 1 has compute capability 8.0");
}

static void each_failing_entry_is_named(void **state) {
    (void)state;
    static const bsmm_cuda_function probes[] = {{"sm90a/small_m", "a", 64},
                                                {"sm90a/small_m", "b", 64},
                                                {"sm90a/small_m", "c", 64},
                                                {"sm90a/small_m", "d", 64},
                                                {"sm90a/small_m", "e", 64}};
    static const struct {
        const char *entry, *named;
        CUresult result;
        bsmm_status status;
    } cases[] = {
        {"cuModuleLoadData", "cuModuleLoadData", CUDA_ERROR_INVALID_IMAGE, BSMM_E_UNSUPPORTED},
        {"cuModuleGetFunction", "cuModuleGetFunction", CUDA_ERROR_NOT_FOUND, BSMM_E_DEVICE},
        {"cuFuncSetAttribute", "cuFuncSetAttribute", CUDA_ERROR_INVALID_VALUE, BSMM_E_DEVICE},
        {"cuLaunchKernelEx", "cuLaunchKernelEx", CUDA_ERROR_ILLEGAL_ADDRESS, BSMM_E_DEVICE},
        {"cuCtxPushCurrent_v2", "cuCtxPushCurrent", CUDA_ERROR_INVALID_CONTEXT, BSMM_E_DEVICE},
    };
    const bsmm_cuda_device *device = device_0();
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        fake->failing = cases[i].entry;
        fake->failure = cases[i].result;
        assert_int_equal(launch(device, &probes[i]), cases[i].status);
        expect_message(cases[i].named);
        assert_int_equal(gpu->depth, 0);
        fake->failing = NULL;
        /* A failed launch must not break later launches. */
        assert_int_equal(launch(device, &probes[i]), BSMM_OK);
    }
}

static void too_much_shared_memory(void **state) {
    (void)state;
    static const bsmm_cuda_function greedy = {"sm80/words", "greedy", 300000};
    const bsmm_cuda_device *device = device_0();
    assert_int_equal(bsmm_cuda_load(device, &greedy, NULL), BSMM_E_UNSUPPORTED);
    expect_message("232448");
}

static void memory_that_runs_out(void **state) {
    (void)state;
    fake_check_memory(fake, &bsmm_backend_cuda, device_0());
}

typedef struct matrices {
    test_matrix quantized, plain; /* `quantized` and `plain` are in host memory. */
    bsmm_matrix from, to;         /* `from` and `to` are in device memory. */
    void *memory[3];
} matrices;

static void matrices_make(matrices *m) {
    rng r = {5};
    test_matrix_make(&m->quantized, describe(format_named("mxfp8"), 4, 64), FILL_ORDINARY, &r);
    test_matrix_make(&m->plain, describe(format_named("bf16"), 4, 64), FILL_ORDINARY, &r);
    m->from = m->quantized.m;
    m->to = m->plain.m;
    m->from.data = m->memory[0] = fake_upload("cuda:0", m->quantized.data_bytes);
    m->from.scales = m->memory[1] = fake_upload("cuda:0", m->quantized.scale_bytes);
    m->to.data = m->memory[2] = fake_upload("cuda:0", m->plain.data_bytes);
}

static void matrices_free(matrices *m) {
    for (int i = 0; i < 3; i++)
        bsmm_backend_cuda.release(device_0(), m->memory[i]);
    test_matrix_free(&m->quantized);
    test_matrix_free(&m->plain);
}

static void expect_refusal(const matrices *m, bsmm_status status, const char *part) {
    bsmm_exec exec = {.struct_size = sizeof exec, .device = "cuda:0"};
    assert_int_equal(bsmm_dequantize_on(&exec, &m->from, &m->to), status);
    expect_message(part);
}

static void conversions_want_device_memory(void **state) {
    (void)state;
    matrices m;
    matrices_make(&m);
    int launches = fake->launches;
    m.from.data = m.quantized.m.data;
    expect_refusal(&m, BSMM_E_INVALID, "src.data");
    expect_message("host memory; must be memory of cuda:0");
    m.from.data = m.memory[0];
    m.from.scales = m.quantized.m.scales;
    expect_refusal(&m, BSMM_E_INVALID, "src.scales");
    m.from.scales = m.memory[1];
    m.to.data = m.plain.m.data;
    expect_refusal(&m, BSMM_E_INVALID, "dst.data");
    m.to.data = (char *)m.memory[2] + 1;
    expect_refusal(&m, BSMM_E_INVALID, "dst.data");
    m.to.data = m.memory[2];
    fake->owner = 1;
    expect_refusal(&m, BSMM_E_INVALID, "memory of cuda:1; must be of cuda:0");
    fake->owner = 0;
    assert_int_equal(fake->launches, launches);
    matrices_free(&m);
}

static void quantizing_wants_device_memory(void **state) {
    (void)state;
    matrices m;
    matrices_make(&m);
    float amax = 1;
    bsmm_quantize_report report = BSMM_INIT(bsmm_quantize_report);
    bsmm_quantize_desc desc = {
        .struct_size = sizeof desc, .src = &m.to, .dst = &m.from, .device = "cuda:0"};
    assert_int_equal(bsmm_quantize(&desc, &report), BSMM_E_UNSUPPORTED);
    expect_message("report");
    desc.amax = &amax;
    assert_int_equal(bsmm_quantize(&desc, NULL), BSMM_E_INVALID);
    expect_message("amax");
    desc.amax = NULL;
    desc.src = &m.plain.m;
    assert_int_equal(bsmm_quantize(&desc, NULL), BSMM_E_INVALID);
    expect_message("src.data");
    desc.device = "cuda:7";
    assert_int_equal(bsmm_quantize(&desc, NULL), BSMM_E_NOT_FOUND);
    matrices_free(&m);
}

/* Tests that bsmm_amax_on launches its kernels. To clear the memory for the result, bsmm_amax_on
 * pushes a CUDA context. check_balance checks that it pops the context again. */
static void amax_is_launched(void **state) {
    (void)state;
    const bsmm_cuda_device *const device = device_0();
    matrices m;
    matrices_make(&m);
    const bsmm_exec exec = {.struct_size = sizeof exec, .device = "cuda:0"};
    float *amax = fake_upload("cuda:0", sizeof *amax);
    const int launches = fake->launches;
    assert_int_equal(bsmm_amax_on(&exec, &m.to, amax), BSMM_OK);
    assert_true(fake->launches > launches);
    bsmm_backend_cuda.release(device, amax);
    matrices_free(&m);
}

static void host_conversions_refuse_devices(void **state) {
    (void)state;
    matrices m;
    matrices_make(&m);
    const bsmm_exec exec = {.struct_size = sizeof exec, .device = "cuda:0"};
    bsmm_quantize_report report = BSMM_INIT(bsmm_quantize_report);
    assert_int_equal(bsmm_compare_on(&exec, &m.to, &m.from, &report), BSMM_E_UNSUPPORTED);
    expect_message("device: there is no comparison on cuda devices");
    assert_int_equal(bsmm_convert_on(&exec, &m.from, &m.from), BSMM_E_UNSUPPORTED);
    expect_message("device: there is no lossless conversion on cuda devices");
    matrices_free(&m);
}

/* The address of `stream` stands for the stream of a run. The fake driver does not use it. */
static char stream;

static bsmm_plan *plan_of(const fake_product *p, bsmm_buffers *buffers) {
    bsmm_plan *plan;
    if (bsmm_plan_create(&p->desc, &plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    *buffers = fake_product_buffers(p, &stream);
    buffers->workspace_bytes = bsmm_plan_workspace_bytes(plan);
    buffers->workspace = fake_upload("cuda:0", buffers->workspace_bytes + 64);
    return plan;
}

static void plan_free(bsmm_plan *plan, const bsmm_buffers *buffers) {
    bsmm_backend_cuda.release(device_0(), buffers->workspace);
    bsmm_plan_destroy(plan);
}

/* Tests that a run only queues work in the caller's stream. The run must not wait, load modules or
 * allocate memory. */
static void runs_only_queue(void **state) {
    (void)state;
    device_0();
    fake_product p;
    bsmm_buffers buffers;
    fake_product_make(&p, "cuda:0");
    bsmm_plan *plan = plan_of(&p, &buffers);
    fake_driver before = *fake;
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_OK);
    assert_true(fake->launches > before.launches);
    assert_ptr_equal(gpu->config.hStream, &stream);
    assert_int_equal(fake->loads, before.loads);
    assert_int_equal(fake->waits, before.waits);
    assert_int_equal(fake->allocations, before.allocations);
    assert_int_equal(fake->free_bytes, before.free_bytes);
    plan_free(plan, &buffers);
    before = *fake;
    /* bsmm_matmul waits for the device, unlike bsmm_plan_run. */
    assert_int_equal(bsmm_matmul(&p.desc), BSMM_OK);
    assert_int_equal(fake->waits, before.waits + 1);
    assert_int_equal(fake->free_bytes, before.free_bytes);
    fake_product_free(&p);
    assert_int_equal(fake->allocations, 0);
}

static const struct {
    const char *field;
    size_t offset; /* `offset` is the byte offset of the pointer in bsmm_buffers. */
} pointers[] = {
    {"a.data", offsetof(bsmm_buffers, a)},
    {"a.scales", offsetof(bsmm_buffers, a_scales)},
    {"a.global_scale", offsetof(bsmm_buffers, a_global)},
    {"b.data", offsetof(bsmm_buffers, b)},
    {"b.scales", offsetof(bsmm_buffers, b_scales)},
    {"d.data", offsetof(bsmm_buffers, d)},
    {"bias", offsetof(bsmm_buffers, bias)},
};

static void expect_run(const bsmm_plan *plan, const bsmm_buffers *given, size_t i, void *value,
                       const char *rule) {
    bsmm_buffers buffers = *given;
    memcpy((char *)&buffers + pointers[i].offset, &value, sizeof value);
    int launches = fake->launches;
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_E_INVALID);
    assert_int_equal(fake->launches, launches);
    if (strncmp(bsmm_error_message(), pointers[i].field, strlen(pointers[i].field)) != 0)
        fail_msg("%s: the message is \"%s\"", pointers[i].field, bsmm_error_message());
    expect_message(rule);
}

static void wrong_pointers_of_a_run(void **state) {
    (void)state;
    device_0();
    static _Alignas(64) char host[4096];
    fake_product p;
    bsmm_buffers buffers;
    fake_product_make(&p, "cuda:0");
    bsmm_plan *plan = plan_of(&p, &buffers);
    for (size_t i = 0; i < BSMM_COUNT(pointers); i++)
        expect_run(plan, &buffers, i, host, "host memory; must be memory of cuda:0");
    /* The pointers from index 5 on point to fp32 numbers. An address that is only a multiple of 2
     * must be refused. */
    for (size_t i = 5; i < BSMM_COUNT(pointers); i++)
        expect_run(plan, &buffers, i, (char *)buffers.workspace + 2, "aligned");
    fake->owner = 1;
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_E_INVALID);
    expect_message("memory of cuda:1");
    fake->owner = 0;
    assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_OK);
    plan_free(plan, &buffers);
    fake_product_free(&p);
    assert_int_equal(fake->allocations, 0);
}

/* Tests that a failed run returns an error, and that the next run works. */
static void failing_runs(void **state) {
    (void)state;
    static const struct {
        const char *entry;
        CUresult result;
        bsmm_status status;
    } cases[] = {
        {"cuLaunchKernelEx", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, BSMM_E_DEVICE},
        {"cuPointerGetAttributes", CUDA_ERROR_ILLEGAL_ADDRESS, BSMM_E_DEVICE},
        {"cuCtxPushCurrent_v2", CUDA_ERROR_INVALID_CONTEXT, BSMM_E_DEVICE},
    };
    device_0();
    fake_product p;
    bsmm_buffers buffers;
    fake_product_make(&p, "cuda:0");
    bsmm_plan *plan = plan_of(&p, &buffers);
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        fake->failing = cases[i].entry;
        fake->failure = cases[i].result;
        assert_int_equal(bsmm_plan_run(plan, &buffers), cases[i].status);
        expect_message("FAKE_ERROR_");
        assert_int_equal(gpu->depth, 0);
        fake->failing = NULL;
        assert_int_equal(bsmm_plan_run(plan, &buffers), BSMM_OK);
    }
    fake->failing = "cuStreamSynchronize";
    fake->failure = CUDA_ERROR_LAUNCH_FAILED;
    assert_int_equal(bsmm_matmul(&p.desc), BSMM_E_DEVICE);
    expect_message("cuStreamSynchronize");
    fake->failing = NULL;
    plan_free(plan, &buffers);
    fake_product_free(&p);
    assert_int_equal(fake->allocations, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_driver_that_does_not_start, check_balance),
        cmocka_unit_test_teardown(devices_that_fail_once, check_balance),
        cmocka_unit_test_teardown(devices_are_listed, check_balance),
        cmocka_unit_test_teardown(devices_that_are_not_there, check_balance),
        cmocka_unit_test_teardown(launches_say_what_they_are_told, check_balance),
        cmocka_unit_test_teardown(modules_are_what_the_device_runs, check_balance),
        cmocka_unit_test_teardown(each_failing_entry_is_named, check_balance),
        cmocka_unit_test_teardown(too_much_shared_memory, check_balance),
        cmocka_unit_test_teardown(memory_that_runs_out, check_balance),
        cmocka_unit_test_teardown(conversions_want_device_memory, check_balance),
        cmocka_unit_test_teardown(amax_is_launched, check_balance),
        cmocka_unit_test_teardown(host_conversions_refuse_devices, check_balance),
        cmocka_unit_test_teardown(quantizing_wants_device_memory, check_balance),
        cmocka_unit_test_teardown(runs_only_queue, check_balance),
        cmocka_unit_test_teardown(wrong_pointers_of_a_run, check_balance),
        cmocka_unit_test_teardown(failing_runs, check_balance),
    };
    return cmocka_run_group_tests(tests, find_fake, NULL);
}
