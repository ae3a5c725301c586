/* Implements the library's backend for NVIDIA GPUs. */
#include "core/kernel.h"
#include "cuda/host/recode_calls.h"
#include "cuda/runtime/device.h"
#include "gpu/words.h"

#include <stdio.h>
#include <string.h>

static bsmm_status open_cuda(uint32_t ordinal, const void **device) {
    const bsmm_cuda_device *record;
    BSMM_TRY(bsmm_cuda_device_get(ordinal, &record));
    *device = record;
    return BSMM_OK;
}

static bsmm_status describe(uint32_t ordinal, bsmm_local_device *info) {
    bsmm_cuda_device record, *d = &record;
    BSMM_TRY(bsmm_cuda_device_read(ordinal, d));
    info->cores = (uint32_t)d->multiprocessors;
    snprintf(info->name, sizeof info->name, "cuda:%u", ordinal);
    snprintf(info->title, sizeof info->title, "%.95s", d->name);
    snprintf(info->features, sizeof info->features, "sm_%d%s memory:%.0fGiB l2:%.0fMiB cuda:%u.%u",
             d->capability, d->capability == 90 ? "a" : "", (double)d->memory_bytes / (1 << 30),
             (double)d->l2_bytes / (1 << 20), d->driver_version / 1000,
             d->driver_version % 1000 / 10);
    return BSMM_OK;
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
        return bsmm_fail(BSMM_E_INVALID, "%s: value is %p, host memory; must be memory of cuda:%d",
                         what, pointer, d->ordinal);
    if (ordinal != d->ordinal)
        return bsmm_fail(BSMM_E_INVALID, "%s: value is %p, memory of cuda:%d; must be of cuda:%d",
                         what, pointer, ordinal, d->ordinal);
    return BSMM_OK;
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
    return bsmm_fail_within(bsmm_cuda_fail(result, "cuMemAlloc"), what);
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
                         "to: value is %p, host memory as `from` is; one must be of cuda:%d", to,
                         d->ordinal);
    BSMM_TRY(bsmm_cuda_enter(d));
    CUresult result = queue_copy(d, stream, to, from, bytes);
    bsmm_cuda_leave(d);
    return result == CUDA_SUCCESS ? BSMM_OK : bsmm_cuda_fail(result, "cuMemcpyAsync");
}

static bsmm_status fill(const void *device, void *stream, void *to, uint8_t value, uint64_t bytes) {
    const bsmm_cuda_device *d = device;
    BSMM_TRY(bsmm_cuda_enter(d));
    CUresult result = d->driver->cuMemsetD8Async((uintptr_t)to, value, bytes, stream);
    bsmm_cuda_leave(d);
    return result == CUDA_SUCCESS ? BSMM_OK : bsmm_cuda_fail(result, "cuMemsetD8Async");
}

static bsmm_status finish(const void *device, void *stream) {
    const bsmm_cuda_device *d = device;
    BSMM_TRY(bsmm_cuda_enter(d));
    CUresult result = d->driver->cuStreamSynchronize(stream);
    bsmm_cuda_leave(d);
    return result == CUDA_SUCCESS ? BSMM_OK : bsmm_cuda_fail(result, "cuStreamSynchronize");
}

const bsmm_backend bsmm_backend_cuda = {
    .name = "cuda",
    .open = open_cuda,
    .describe = describe,
    .check_pointer = check_pointer,
    .allocate = allocate,
    .release = release,
    .store = store,
    .copy = copy,
    .fill = fill,
    .finish = finish,
    .quantize = bsmm_cuda_quantize,
    .dequantize = bsmm_cuda_dequantize,
    .relayout = bsmm_cuda_relayout,
    .amax = bsmm_cuda_amax,
    .move_codes = bsmm_cuda_move_codes,
};
