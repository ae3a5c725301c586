/* Defines the two backends for NVIDIA GPUs: "cuda" for GPUs and "sim" for simulated ones. */
#include "core/kernel.h"
#include "cuda/host/recode_calls.h"
#include "cuda/runtime/device.h"
#include "gpu/words.h"

#include <stdio.h>
#include <string.h>

typedef bsmm_status get_device(uint32_t ordinal, const bsmm_cuda_device **device);

static bsmm_status open_with(get_device *get, uint32_t ordinal, const void **device) {
    const bsmm_cuda_device *record;
    BSMM_TRY(get(ordinal, &record));
    *device = record;
    return BSMM_OK;
}

static bsmm_status open_gpu(uint32_t ordinal, const void **device) {
    return open_with(bsmm_cuda_device_get, ordinal, device);
}

static bsmm_status open_simulator(uint32_t ordinal, const void **device) {
    return open_with(bsmm_cuda_simulated_get, ordinal, device);
}

static bsmm_status describe(const bsmm_cuda_device *d, bsmm_local_device *info) {
    info->cores = (uint32_t)d->multiprocessors;
    snprintf(info->name, sizeof info->name, "%s", d->device);
    snprintf(info->title, sizeof info->title, "%.95s", d->name);
    snprintf(info->features, sizeof info->features, "sm_%d%s memory:%.0fGiB l2:%.0fMiB cuda:%u.%u",
             d->capability, d->capability == 90 ? "a" : "", (double)d->memory_bytes / (1 << 30),
             (double)d->l2_bytes / (1 << 20), d->driver_version / 1000,
             d->driver_version % 1000 / 10);
    return BSMM_OK;
}

static bsmm_status describe_gpu(uint32_t ordinal, bsmm_local_device *info) {
    bsmm_cuda_device record;
    BSMM_TRY(bsmm_cuda_device_read(ordinal, &record));
    return describe(&record, info);
}

static bsmm_status describe_simulator(uint32_t ordinal, bsmm_local_device *info) {
    const bsmm_cuda_device *device;
    BSMM_TRY(bsmm_gpu_simulator_check_model(&bsmm_cuda_simulator, ordinal));
    BSMM_TRY(bsmm_cuda_simulated_get(ordinal, &device));
    return describe(device, info);
}

static bsmm_status check_pointer(const void *device, const void *pointer, const char *what) {
    const bsmm_cuda_device *d = device;
    int type = 0, ordinal = -1;
    int attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &ordinal};
    /* cuPointerGetAttributes succeeds for every address. If the driver does not know the address,
     * the type stays 0. */
    BSMM_CUDA_TRY(d->driver, cuPointerGetAttributes, 2, attributes, values, (uintptr_t)pointer);
    if (type != CU_MEMORYTYPE_DEVICE)
        return bsmm_fail(BSMM_E_INVALID, "%s: value is %p, host memory; must be memory of %s", what,
                         pointer, d->device);
    if (ordinal == d->ordinal) return BSMM_OK;
    char owner[32];
    snprintf(owner, sizeof owner, d->is_simulated ? "another simulator" : "cuda:%d", ordinal);
    return bsmm_fail(BSMM_E_INVALID, "%s: value is %p, memory of %s; must be of %s", what, pointer,
                     owner, d->device);
}

static bsmm_status allocate(const void *device, uint64_t bytes, void **memory) {
    const bsmm_cuda_device *d = device;
    CUdeviceptr pointer = 0;
    BSMM_TRY(bsmm_cuda_enter(d));
    CUresult result = d->driver->cuMemAlloc(&pointer, bytes);
    bsmm_cuda_leave(d);
    *memory = (void *)(uintptr_t)pointer;
    if (result == CUDA_SUCCESS) return BSMM_OK;
    char what[64];
    snprintf(what, sizeof what, "%llu bytes", (unsigned long long)bytes);
    return bsmm_fail_within(bsmm_cuda_fail(d->driver, result, "cuMemAlloc"), what);
}

static void release(const void *device, void *memory) {
    const bsmm_cuda_device *d = device;
    if (bsmm_cuda_enter(d) != BSMM_OK) return;
    d->driver->cuMemFree((uintptr_t)memory);
    bsmm_cuda_leave(d);
}

static bsmm_status store(const void *device, void *stream, void *to, const void *from,
                         size_t bytes) {
    static const bsmm_cuda_function store_words = {.module = "sm80/words", .name = "store_words"};
    bsmm_gpu_words words = {.count = (uint32_t)(bytes / sizeof words.words[0])};
    memcpy(words.words, from, bytes);
    return bsmm_cuda_launch(device, &(bsmm_cuda_launch_desc){
                                        .function = &store_words,
                                        .block = {BSMM_GPU_MOST_WORDS},
                                        .stream = stream,
                                        .arguments = BSMM_CUDA_ARGUMENTS(&to, &words),
                                    });
}

static bool is_host_memory(const bsmm_cuda_device *d, const void *pointer) {
    int type = 0;
    int attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    void *values[] = {&type};
    return d->driver->cuPointerGetAttributes(1, attributes, values, (uintptr_t)pointer) !=
               CUDA_SUCCESS ||
           type != CU_MEMORYTYPE_DEVICE;
}

static CUresult queue_copy(const bsmm_cuda_device *d, void *stream, void *to, const void *from,
                           uint64_t bytes) {
    CUdeviceptr target = (uintptr_t)to, source = (uintptr_t)from;
    if (is_host_memory(d, to)) return d->driver->cuMemcpyDtoHAsync(to, source, bytes, stream);
    if (is_host_memory(d, from)) return d->driver->cuMemcpyHtoDAsync(target, from, bytes, stream);
    return d->driver->cuMemcpyDtoDAsync(target, source, bytes, stream);
}

static bsmm_status copy(const void *device, void *stream, void *to, const void *from,
                        uint64_t bytes) {
    const bsmm_cuda_device *d = device;
    if (is_host_memory(d, to) && is_host_memory(d, from))
        return bsmm_fail(BSMM_E_INVALID,
                         "to: value is %p, host memory as `from` is; one must be of %s", to,
                         d->device);
    BSMM_TRY(bsmm_cuda_enter(d));
    CUresult result = queue_copy(d, stream, to, from, bytes);
    bsmm_cuda_leave(d);
    return result == CUDA_SUCCESS ? BSMM_OK : bsmm_cuda_fail(d->driver, result, "cuMemcpyAsync");
}

static bsmm_status fill(const void *device, void *stream, void *to, uint8_t value, uint64_t bytes) {
    const bsmm_cuda_device *d = device;
    BSMM_TRY(bsmm_cuda_enter(d));
    CUresult result = d->driver->cuMemsetD8Async((uintptr_t)to, value, bytes, stream);
    bsmm_cuda_leave(d);
    return result == CUDA_SUCCESS ? BSMM_OK : bsmm_cuda_fail(d->driver, result, "cuMemsetD8Async");
}

static bsmm_status finish(const void *device, void *stream) {
    const bsmm_cuda_device *d = device;
    BSMM_TRY(bsmm_cuda_enter(d));
    CUresult result = d->driver->cuStreamSynchronize(stream);
    bsmm_cuda_leave(d);
    return result == CUDA_SUCCESS ? BSMM_OK
                                  : bsmm_cuda_fail(d->driver, result, "cuStreamSynchronize");
}

/* The backend for NVIDIA GPUs and the backend for simulated NVIDIA GPUs share these functions. Only
 * the functions that open and describe a device are different. */
#define HOOKS                                                                                      \
    .check_pointer = check_pointer, .allocate = allocate, .release = release, .store = store,      \
    .copy = copy, .fill = fill, .finish = finish, .quantize = bsmm_cuda_quantize,                  \
    .make_quantizer = bsmm_cuda_make_quantizer, .run_quantizer = bsmm_cuda_run_quantizer,          \
    .dequantize = bsmm_cuda_dequantize, .relayout = bsmm_cuda_relayout, .amax = bsmm_cuda_amax,    \
    .move_codes = bsmm_cuda_move_codes

const bsmm_backend bsmm_backend_cuda = {
    HOOKS,
    .name = "cuda",
    .open = open_gpu,
    .describe = describe_gpu,
};

const bsmm_backend bsmm_backend_cuda_sim = {
    HOOKS,
    .name = "sim",
    .kernels = "cuda",
    .models = bsmm_cuda_models,
    .open = open_simulator,
    .describe = describe_simulator,
};
