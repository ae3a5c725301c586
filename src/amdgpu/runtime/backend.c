/* Defines the two backends for AMD GPUs: "hip" for GPUs and "sim" for simulated ones. */
#include "amdgpu/host/recode.h"
#include "amdgpu/runtime/device.h"
#include "core/kernel.h"
#include "gpu/words.h"

#include <stdio.h>
#include <string.h>

typedef bsmm_status get_device(uint32_t ordinal, const bsmm_hip_device **device);

static bsmm_status open_with(get_device *get, uint32_t ordinal, const void **device) {
    const bsmm_hip_device *record;
    BSMM_TRY(get(ordinal, &record));
    *device = record;
    return BSMM_OK;
}

static bsmm_status open_gpu(uint32_t ordinal, const void **device) {
    return open_with(bsmm_hip_device_get, ordinal, device);
}

static bsmm_status open_simulator(uint32_t ordinal, const void **device) {
    return open_with(bsmm_hip_simulated_get, ordinal, device);
}

static bsmm_status describe_with(get_device *get, uint32_t ordinal, bsmm_local_device *info) {
    const bsmm_hip_device *d;
    BSMM_TRY(get(ordinal, &d));
    const int version = d->driver->version;
    info->cores = (uint32_t)d->compute_units;
    snprintf(info->name, sizeof info->name, "%s", d->device);
    snprintf(info->title, sizeof info->title, "%.95s", d->name);
    snprintf(info->features, sizeof info->features, "%s memory:%.0fGiB l2:%.0fMiB hip:%d.%d",
             d->arch, (double)d->memory_bytes / (1 << 30), (double)d->l2_bytes / (1 << 20),
             version / 10000000, version / 100000 % 100);
    return BSMM_OK;
}

static bsmm_status describe_gpu(uint32_t ordinal, bsmm_local_device *info) {
    return describe_with(bsmm_hip_device_get, ordinal, info);
}

static bsmm_status describe_simulator(uint32_t ordinal, bsmm_local_device *info) {
    BSMM_TRY(bsmm_gpu_simulator_check_model(&bsmm_hip_simulator, ordinal));
    return describe_with(bsmm_hip_simulated_get, ordinal, info);
}

/* Sets *is_device to true if `pointer` is memory of one of the driver's devices, and *owner to the
 * number of that device. */
static bsmm_status find_owner(const bsmm_hip_device *d, const void *pointer, bool *is_device,
                              int *owner) {
    int type = 0;
    int attributes[] = {HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, owner};
    union {
        const void *given;
        void *taken;
        /* HIP's function declares the pointer without const, but only reads the address. */
    } both = {.given = pointer};
    /* hipDrvPointerGetAttributes succeeds for every address. For memory that HIP did not allocate,
     * it gives the memory type 0. */
    BSMM_HIP_TRY(d->driver, hipDrvPointerGetAttributes, 2, attributes, values, both.taken);
    *is_device = type == d->driver->device_type;
    return BSMM_OK;
}

static bsmm_status check_pointer(const void *device, const void *pointer, const char *what) {
    const bsmm_hip_device *d = device;
    bool is_device = false;
    int owner = -1;
    BSMM_TRY(find_owner(d, pointer, &is_device, &owner));
    if (!is_device)
        return bsmm_fail(BSMM_E_INVALID, "%s: value is %p, host memory; must be memory of %s", what,
                         pointer, d->device);
    if (owner != d->ordinal)
        return bsmm_fail(BSMM_E_INVALID,
                         "%s: value is %p, memory of another device (HIP's number %d); must be of "
                         "%s",
                         what, pointer, owner, d->device);
    return BSMM_OK;
}

static bsmm_status allocate(const void *device, uint64_t bytes, void **memory) {
    const bsmm_hip_device *d = device;
    char what[64];
    int before;
    BSMM_TRY(bsmm_hip_enter(d, &before));
    const hipError_t error = d->driver->hipMalloc(memory, bytes);
    bsmm_hip_leave(d, before);
    if (error == hipSuccess) return BSMM_OK;
    *memory = NULL;
    snprintf(what, sizeof what, "%llu bytes", (unsigned long long)bytes);
    return bsmm_fail_within(bsmm_hip_fail(d->driver, error, "hipMalloc"), what);
}

static void release(const void *device, void *memory) {
    const bsmm_hip_device *d = device;
    int before;
    if (bsmm_hip_enter(d, &before) != BSMM_OK) return;
    d->driver->hipFree(memory);
    bsmm_hip_leave(d, before);
}

static bsmm_status store(const void *device, void *stream, void *to, const void *from,
                         size_t bytes) {
    static const bsmm_hip_function store_words = {.module = "cdna/words", .name = "store_words"};
    bsmm_gpu_words words = {.count = (uint32_t)(bytes / sizeof words.words[0])};
    memcpy(words.words, from, bytes);
    return bsmm_hip_launch(device, &(bsmm_hip_launch_desc){
                                       .function = &store_words,
                                       .block = {BSMM_HIP_WAVE},
                                       .stream = stream,
                                       .arguments = BSMM_HIP_ARGUMENTS(&to, &words),
                                   });
}

/* Returns HIP's kind of the copy from `from` to `to` (hipMemcpyKind), or 0 if neither address is
 * device memory. */
static int kind_of(const bsmm_hip_device *d, const void *to, const void *from) {
    bool to_device = false, from_device = false;
    int owner;
    if (find_owner(d, to, &to_device, &owner) != BSMM_OK) to_device = false;
    if (find_owner(d, from, &from_device, &owner) != BSMM_OK) from_device = false;
    if (to_device && from_device) return hipMemcpyDeviceToDevice;
    return to_device ? hipMemcpyHostToDevice : from_device ? hipMemcpyDeviceToHost : 0;
}

static bsmm_status copy(const void *device, void *stream, void *to, const void *from,
                        uint64_t bytes) {
    const bsmm_hip_device *d = device;
    const int kind = kind_of(d, to, from);
    int before;
    if (!kind)
        return bsmm_fail(BSMM_E_INVALID,
                         "to: value is %p, host memory as `from` is; one must be of %s", to,
                         d->device);
    BSMM_TRY(bsmm_hip_enter(d, &before));
    const hipError_t error = d->driver->hipMemcpyAsync(to, from, bytes, kind, stream);
    bsmm_hip_leave(d, before);
    return error == hipSuccess ? BSMM_OK : bsmm_hip_fail(d->driver, error, "hipMemcpyAsync");
}

static bsmm_status fill(const void *device, void *stream, void *to, uint8_t value, uint64_t bytes) {
    const bsmm_hip_device *d = device;
    int before;
    BSMM_TRY(bsmm_hip_enter(d, &before));
    const hipError_t error = d->driver->hipMemsetAsync(to, value, bytes, stream);
    bsmm_hip_leave(d, before);
    return error == hipSuccess ? BSMM_OK : bsmm_hip_fail(d->driver, error, "hipMemsetAsync");
}

static bsmm_status finish(const void *device, void *stream) {
    const bsmm_hip_device *d = device;
    int before;
    BSMM_TRY(bsmm_hip_enter(d, &before));
    const hipError_t error = d->driver->hipStreamSynchronize(stream);
    bsmm_hip_leave(d, before);
    return error == hipSuccess ? BSMM_OK : bsmm_hip_fail(d->driver, error, "hipStreamSynchronize");
}

/* HOOKS lists the functions that the backends of real and of simulated AMD GPUs share. The two
 * backends differ only in how they open and describe a device. */
#define HOOKS                                                                                      \
    .check_pointer = check_pointer, .allocate = allocate, .release = release, .store = store,      \
    .copy = copy, .fill = fill, .finish = finish, .quantize = bsmm_hip_quantize,                   \
    .make_quantizer = bsmm_hip_make_quantizer, .run_quantizer = bsmm_hip_run_quantizer,            \
    .dequantize = bsmm_hip_dequantize, .relayout = bsmm_hip_relayout, .amax = bsmm_hip_amax,       \
    .move_codes = bsmm_hip_move_codes

const bsmm_backend bsmm_backend_hip = {
    HOOKS,
    .name = "hip",
    .open = open_gpu,
    .describe = describe_gpu,
};

const bsmm_backend bsmm_backend_hip_sim = {
    HOOKS,
    .name = "sim",
    .kernels = "hip",
    .models = bsmm_hip_models,
    .open = open_simulator,
    .describe = describe_simulator,
};
