/* Tests how the library loads the CUDA driver, finds devices by name and launches kernels. Tests
 * that need a GPU are skipped without one. */
#include "core/describe.h"
#include "cuda.h"
#include "cuda/host/kernel.h"
#include "gpu/images.h"
#include "gpu/words.h"
#include "message.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

extern const bsmm_backend bsmm_backend_cuda;

/* Tests that structs for the CUDA driver have the same sizes as in CUDA's header. */
static void structs_are_the_drivers(void **state) {
    (void)state;
    assert_int_equal(sizeof(CUlaunchAttribute), 72);
    assert_int_equal(offsetof(CUlaunchAttribute, value), 8);
    assert_int_equal(sizeof(CUlaunchConfig), 56);
    assert_int_equal(offsetof(CUlaunchConfig, attrs), 40);
    assert_int_equal(sizeof(CUtensorMap), 128);
}

static void errors_have_a_status_and_advice(void **state) {
    (void)state;
    static const struct {
        CUresult result;
        bsmm_status status;
        const char *part;
    } cases[] = {
        {CUDA_ERROR_OUT_OF_MEMORY, BSMM_E_MEMORY, "free some"},
        {CUDA_ERROR_NO_DEVICE, BSMM_E_NOT_FOUND, "nvidia-smi"},
        {CUDA_ERROR_NO_BINARY_FOR_GPU, BSMM_E_UNSUPPORTED, "architecture"},
        {CUDA_ERROR_ILLEGAL_ADDRESS, BSMM_E_DEVICE, "outside its memory"},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, BSMM_E_INVALID, "captured"},
        {12345, BSMM_E_DEVICE, "(12345)"},
    };
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        assert_int_equal(bsmm_cuda_fail(NULL, cases[i].result, "cuThisCall"), cases[i].status);
        expect_message("cuThisCall: ");
        expect_message(cases[i].part);
    }
}

static void names_of_devices_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bsmm_status status;
        const char *part;
    } cases[] = {
        {"cpu", BSMM_OK, ""},
        {"cpu:0", BSMM_OK, ""},
        {"cpu:1", BSMM_E_NOT_FOUND, "cpu:1"},
        {"tpu", BSMM_E_UNSUPPORTED, "tpu"},
        {"", BSMM_E_UNSUPPORTED, "device"},
        {"cud", BSMM_E_UNSUPPORTED, "cud"},
        {"cuda:", BSMM_E_INVALID, "cuda:NUMBER"},
        {"cuda:x", BSMM_E_INVALID, "cuda:NUMBER"},
        {"cuda:-1", BSMM_E_INVALID, "cuda:NUMBER"},
        {"cuda:0 ", BSMM_E_INVALID, "cuda:NUMBER"},
        {"cuda:99999", BSMM_E_INVALID, "cuda:NUMBER"},
        {"cuda:63", BSMM_E_NOT_FOUND, "NVIDIA"},
        {"cuda:9999", BSMM_E_NOT_FOUND, "NVIDIA"},
    };
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        const bsmm_backend *backend;
        const void *device;
        assert_int_equal(bsmm_device_open(cases[i].name, &backend, &device), cases[i].status);
        if (cases[i].status != BSMM_OK) expect_message(cases[i].part);
    }
}

static void modules_are_found_by_name(void **state) {
    (void)state;
    const bsmm_gpu_image *image;
    if (!test_cuda_is_built()) {
        const bsmm_cuda_device device = {.capability = 90, .name = "GPU"};
        assert_int_equal(bsmm_cuda_image_find(&device, "sm80/words", &image), BSMM_E_UNSUPPORTED);
        expect_message("no nvcc");
        return;
    }
    assert_int_equal(bsmm_gpu_image_find("sm90a/probe", NULL, NULL, &image), BSMM_OK);
    assert_string_equal(image->name, "sm90a/probe");
    assert_int_equal(bsmm_gpu_image_find("sm90a/none", NULL, NULL, &image), BSMM_E_NOT_FOUND);
    expect_message("sm90a/none");
    assert_null(image);
}

static void other_architectures_are_refused(void **state) {
    (void)state;
    if (!test_cuda_is_built()) skip();
    static const struct {
        int capability;
        /* A device loads compiled code only if its compute capability fits. `probe` is true if a
         * device of this compute capability can run the code of the kernel sm90a/probe, and `words`
         * is true if it can run that of sm80/words. */
        bool probe, words;
    } cases[] = {{75, false, false}, {80, false, true},  {89, false, true},
                 {90, true, true},   {100, false, true}, {120, false, true}};
    static const bsmm_cuda_function probe = {.module = "sm90a/probe"},
                                    words = {.module = "sm80/words"};
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        char why[200];
        bsmm_cuda_device device = {.capability = cases[i].capability, .name = "GPU"};
        bsmm_product p = {.device = &device};
        p.a.m.format.elem = p.b.m.format.elem = p.d.m.format.elem = BSMM_ELEM_BF16;
        assert_int_equal(!bsmm_cuda_refuse(&p, &probe, why, sizeof why), cases[i].probe);
        assert_int_equal(!bsmm_cuda_refuse(&p, &words, why, sizeof why), cases[i].words);
    }
}

enum { BLOCKS = 8, CLUSTER = 4, WORDS = 25000 };
static const bsmm_cuda_function probe = {"sm90a/probe", "probe_launch", WORDS * 4};

static bsmm_status launch_probe(const bsmm_cuda_device *device, void *ranks, uint32_t words) {
    return bsmm_cuda_launch(device, &(bsmm_cuda_launch_desc){
                                        .function = &probe,
                                        .grid = {BLOCKS},
                                        .block = {32},
                                        .cluster = {CLUSTER},
                                        .shared_bytes = words * 4,
                                        .arguments = BSMM_CUDA_ARGUMENTS(&ranks, &words),
                                    });
}

static void clusters_and_shared_memory_arrive(void **state) {
    (void)state;
    const bsmm_cuda_device *device = test_cuda_device();
    if (device->capability != 90) skip();
    uint32_t *ranks = test_cuda_new(device, NULL, BLOCKS * 4), got[BLOCKS];
    assert_int_equal(launch_probe(device, ranks, WORDS), BSMM_OK);
    test_cuda_read(device, got, ranks, sizeof got);
    for (uint32_t i = 0; i < BLOCKS; i++)
        assert_int_equal(got[i], i % CLUSTER);
    test_cuda_free(device, ranks);
}

/* Tests that the driver refuses an impossible launch, and that the next launch works. */
static void failed_launches_leave_the_context_alive(void **state) {
    (void)state;
    const bsmm_cuda_device *device = test_cuda_device();
    if (device->capability != 90) skip();
    static const bsmm_cuda_function huge = {"sm90a/probe", "probe_launch", 1u << 20},
                                    none = {"sm90a/probe", "no_such_kernel", 0};
    assert_int_equal(bsmm_cuda_load(device, &huge, NULL), BSMM_E_UNSUPPORTED);
    assert_int_equal(bsmm_cuda_load(device, &none, NULL), BSMM_E_DEVICE);
    expect_message("no_such_kernel");
    assert_int_not_equal(launch_probe(device, NULL, WORDS + 1), BSMM_OK);
    expect_message("cuLaunchKernelEx");
    clusters_and_shared_memory_arrive(state);
}

static void the_callers_context_stays(void **state) {
    (void)state;
    const bsmm_cuda_device *device = test_cuda_device();
    CUcontext before, after;
    assert_int_equal(device->driver->cuCtxGetCurrent(&before), CUDA_SUCCESS);
    void *to = test_cuda_new(device, NULL, 64);
    static const uint32_t words[4] = {1, 2, 3, 4};
    uint32_t got[5];
    assert_int_equal(bsmm_backend_cuda.store(device, NULL, to, words, sizeof words), BSMM_OK);
    test_cuda_read(device, got, to, sizeof got);
    assert_memory_equal(got, words, sizeof words);
    assert_int_equal(got[4], 0xA5A5A5A5);
    test_cuda_free(device, to);
    assert_int_equal(device->driver->cuCtxGetCurrent(&after), CUDA_SUCCESS);
    assert_ptr_equal(after, before);
}

static void pointers_are_told_apart(void **state) {
    (void)state;
    const bsmm_cuda_device *device = test_cuda_device();
    static int data;
    void *memory = test_cuda_new(device, NULL, 256);
    void *heap = test_malloc(16);
    assert_int_equal(bsmm_backend_cuda.check_pointer(device, memory, "a.data"), BSMM_OK);
    assert_int_equal(bsmm_backend_cuda.check_pointer(device, (char *)memory + 100, "a.data"),
                     BSMM_OK);
    assert_int_equal(bsmm_backend_cuda.check_pointer(device, heap, "a.data"), BSMM_E_INVALID);
    expect_message("a.data");
    expect_message("host memory");
    assert_int_equal(bsmm_backend_cuda.check_pointer(device, &data, "a.data"), BSMM_E_INVALID);
    test_free(heap);
    test_cuda_free(device, memory);
}

/* Tests that an allocation larger than the device's memory returns an error, and that the device
 * continues to work. */
static void memory_runs_out(void **state) {
    (void)state;
    const bsmm_cuda_device *device = test_cuda_device();
    void *memory;
    assert_int_equal(bsmm_backend_cuda.allocate(device, (uint64_t)1 << 50, &memory), BSMM_E_MEMORY);
    expect_message("cuMemAlloc");
    assert_int_equal(bsmm_backend_cuda.allocate(device, 1 << 20, &memory), BSMM_OK);
    bsmm_backend_cuda.release(device, memory);
    assert_int_equal(bsmm_backend_cuda.finish(device, NULL), BSMM_OK);
}

static void *load_in_thread(void *argument) {
    const bsmm_cuda_device *device;
    void *handle = NULL;
    (void)argument;
    if (bsmm_cuda_device_get(0, &device) == BSMM_OK) bsmm_cuda_load(device, &probe, &handle);
    return handle;
}

static void threads_share_one_record(void **state) {
    (void)state;
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    void *handles[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load_in_thread, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], &handles[i]);
    for (int i = 1; i < THREADS; i++)
        assert_ptr_equal(handles[i], handles[0]);
    const bsmm_cuda_device *device = test_cuda_device_or_null();
    if (device && device->capability == 90) assert_non_null(handles[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs_are_the_drivers),
        cmocka_unit_test(errors_have_a_status_and_advice),
        cmocka_unit_test(names_of_devices_are_checked),
        cmocka_unit_test(modules_are_found_by_name),
        cmocka_unit_test(other_architectures_are_refused),
        cmocka_unit_test(threads_share_one_record),
        cmocka_unit_test(clusters_and_shared_memory_arrive),
        cmocka_unit_test(failed_launches_leave_the_context_alive),
        cmocka_unit_test(the_callers_context_stays),
        cmocka_unit_test(pointers_are_told_apart),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
