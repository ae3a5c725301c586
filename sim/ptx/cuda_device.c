/* Implements the devices and contexts of the simulated CUDA driver. The environment variable
 * BSMM_SIM_ARCH names the device with which a process starts. bsmm_sim_device creates more
 * devices. */
#include "cuda.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const sim_device models[] = {
#define DEVICE(name, capability, count, l2, shared, clock, memory_clock, bus, memory, model)       \
    {name, capability, count, l2, shared, clock, memory_clock, bus, memory, model},
#include "devices.def"
#undef DEVICE
};
enum { VERSION = 13000, MOST_DEVICES = 64, MODELS = sizeof models / sizeof *models };

static pthread_once_t listed = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The lock guards the list of devices. A device in the list never changes. */
static const sim_device *devices[MOST_DEVICES];
static int device_count;

/* Returns the device model with this name. The function ignores a letter at the end of the name,
 * so "sm_90" and "sm_90a" name the same model. */
static const sim_device *find_model(const char *name) {
    for (size_t k = 0; name && k < MODELS; k++) {
        const size_t length = strlen(models[k].name);
        if (strncmp(name, models[k].name, length) == 0 &&
            strspn(name + length, "af") == strlen(name + length))
            return &models[k];
    }
    return NULL;
}

/* Creates the device that the environment variable BSMM_SIM_ARCH names. A name that begins with
 * "gfx" creates no device here, because the simulator of AMD GPUs reads the same variable. */
static void list_devices(void) {
    const char *wanted = getenv("BSMM_SIM_ARCH");
    const int others = wanted && strncmp(wanted, "gfx", 3) == 0;
    const sim_device *first = wanted && !others ? find_model(wanted) : &models[0];
    if (first) devices[device_count++] = first;
}

static int count(void) {
    pthread_once(&listed, list_devices);
    return __atomic_load_n(&device_count, __ATOMIC_ACQUIRE);
}

int bsmm_sim_device(const char *model, unsigned number) {
    const sim_device *wanted = find_model(model);
    if (!wanted) return -1;
    count();
    pthread_mutex_lock(&lock);
    int at = 0;
    for (unsigned seen = 0; at < MOST_DEVICES; at++) {
        if (at == device_count) {
            devices[at] = wanted;
            __atomic_store_n(&device_count, at + 1, __ATOMIC_RELEASE);
        }
        if (devices[at] == wanted && seen++ == number) break;
    }
    pthread_mutex_unlock(&lock);
    return at < MOST_DEVICES ? at : -1;
}

const sim_device *sim_device_of(CUdevice device) {
    return device >= 0 && device < count() ? devices[device] : NULL;
}

static CUresult check_device(CUdevice device) {
    const int n = count();
    if (device >= 0 && device < n) return CUDA_SUCCESS;
    if (n == 0)
        return sim_fail(CUDA_ERROR_INVALID_DEVICE,
                        "BSMM_SIM_ARCH: value is \"%s\"; must be sm_80, sm_90a, sm_100 or sm_120",
                        getenv("BSMM_SIM_ARCH"));
    return sim_fail(CUDA_ERROR_INVALID_DEVICE, "device is %d; there are %d", device, n);
}

static CUresult give(int *to, int value) {
    if (!to) return sim_fail(CUDA_ERROR_INVALID_VALUE, "a result's pointer is NULL");
    *to = value;
    return CUDA_SUCCESS;
}

CU CUresult cuInit(unsigned flags) {
    return flags ? sim_fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0") : check_device(0);
}
CU CUresult cuDriverGetVersion(int *version) {
    return give(version, VERSION);
}
CU CUresult cuDeviceGetCount(int *to) {
    return give(to, count());
}
CU CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    const CUresult status = check_device(ordinal);
    return status ? status : give(device, ordinal);
}
CU CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    const CUresult status = check_device(device);
    if (status) return status;
    if (!name || length < 1)
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "name is NULL or has no room");
    snprintf(name, (size_t)length, "bsmm simulator of %s (%s)", devices[device]->name,
             devices[device]->model);
    return CUDA_SUCCESS;
}
CU CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    const CUresult status = check_device(device);
    if (status) return status;
    if (!bytes) return sim_fail(CUDA_ERROR_INVALID_VALUE, "bytes is NULL");
    *bytes = (size_t)devices[device]->memory_gb << 30;
    return CUDA_SUCCESS;
}
CU CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
    size_t bytes;
    const CUresult status = cuDeviceTotalMem_v2(&bytes, sim_current_device());
    if (!status && available) *available = bytes;
    if (!status && total) *total = bytes;
    return status;
}

int sim_multiprocessors(CUdevice device) {
    const char *wanted = getenv("BSMM_SIM_MULTIPROCESSORS");
    const int n = wanted ? atoi(wanted) : 0;
    return n > 0 ? n : (int)devices[device]->multiprocessors;
}

/* Writes a device attribute. The table in this function has pairs of an attribute's number
 * (CUdevice_attribute) and its value. Attributes 1 to 7 limit the threads of a block and the blocks
 * of a grid. Attributes 8 to 12 are memory, warp size and registers of a block, 31 tells if kernels
 * run concurrently, and 39 counts the threads of an SM. Attributes 75 and 76 are the compute
 * capability, 115 tells if the device has memory pools, 120 tells if the device has clusters, and
 * 127 tells if it has tensor maps. Attributes that are missing in the table are 0. */
CU CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    const CUresult status = check_device(device);
    if (status) return status;
    const sim_device *d = devices[device];
    const struct {
        int attribute, value;
    } known[] = {
        {1, 1024},
        {2, 1024},
        {3, 1024},
        {4, 64},
        {5, INT32_MAX},
        {6, 65535},
        {7, 65535},
        {8, 48 << 10},
        {9, 64 << 10},
        {10, 32},
        {12, 65536},
        {13, (int)d->clock_khz},
        {16, sim_multiprocessors(device)},
        {31, 1},
        {36, (int)d->memory_khz},
        {37, (int)d->bus_bits},
        {38, (int)d->l2_bytes},
        {39, 2048},
        {41, 1},
        {75, (int)d->arch / 10},
        {76, (int)d->arch % 10},
        {81, (int)d->shared_bytes + 1024},
        {82, 65536},
        {83, 1},
        {97, (int)d->shared_bytes},
        {115, 1},
        {120, d->arch >= 90},
        {127, d->arch >= 90},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (known[k].attribute == attribute) return give(value, known[k].value);
    return give(value, 0);
}
CU CUresult cuDeviceGetUuid_v2(unsigned char *uuid, CUdevice device) {
    if (!uuid) return sim_fail(CUDA_ERROR_INVALID_VALUE, "uuid is NULL");
    static const unsigned char name[16] = "bsmm simulator";
    memcpy(uuid, name, sizeof name);
    uuid[15] = (unsigned char)device;
    return check_device(device);
}

static char contexts[MOST_DEVICES];
enum { CONTEXTS = 64 };
static _Thread_local CUcontext stack[CONTEXTS];
static _Thread_local unsigned depth;

CUcontext sim_context_of(CUdevice device) {
    return (CUcontext)(void *)&contexts[device];
}
int sim_device_of_context(CUcontext c) {
    const uintptr_t at = (uintptr_t)c - (uintptr_t)contexts;
    return at < (uintptr_t)count() ? (int)at : -1;
}
int sim_current_device(void) {
    return depth ? sim_device_of_context(stack[depth - 1]) : 0;
}

static CUresult check_context(CUcontext c) {
    return sim_device_of_context(c) >= 0
               ? CUDA_SUCCESS
               : sim_fail(CUDA_ERROR_INVALID_CONTEXT, "this is no context of a device");
}
static CUresult give_context(CUcontext *to, CUcontext value) {
    if (!to) return sim_fail(CUDA_ERROR_INVALID_VALUE, "context is NULL");
    *to = value;
    return CUDA_SUCCESS;
}
CU CUresult cuDevicePrimaryCtxRetain(CUcontext *to, CUdevice device) {
    const CUresult status = check_device(device);
    return status ? status : give_context(to, sim_context_of(device));
}
CU CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    return check_device(device);
}
CU CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    return check_device(device);
}
CU CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    if (flags) *flags = 0;
    if (active) *active = 1;
    return check_device(device);
}
CU CUresult cuCtxPushCurrent_v2(CUcontext c) {
    const CUresult status = check_context(c);
    if (status) return status;
    if (depth == CONTEXTS) return sim_fail(CUDA_ERROR_INVALID_CONTEXT, "64 contexts are pushed");
    stack[depth++] = c;
    return CUDA_SUCCESS;
}
CU CUresult cuCtxPopCurrent_v2(CUcontext *c) {
    if (depth == 0) return sim_fail(CUDA_ERROR_INVALID_CONTEXT, "no context is pushed");
    depth--;
    if (c) *c = stack[depth];
    return CUDA_SUCCESS;
}
CU CUresult cuCtxGetCurrent(CUcontext *c) {
    return give_context(c, depth ? stack[depth - 1] : NULL);
}
CU CUresult cuCtxSetCurrent(CUcontext c) {
    const CUresult status = c ? check_context(c) : CUDA_SUCCESS;
    if (status) return status;
    if (depth) depth--;
    return c ? cuCtxPushCurrent_v2(c) : CUDA_SUCCESS;
}
CU CUresult cuCtxCreate_v2(CUcontext *c, unsigned flags, CUdevice device) {
    (void)flags;
    const CUresult status = cuDevicePrimaryCtxRetain(c, device);
    return status ? status : cuCtxPushCurrent_v2(*c);
}
CU CUresult cuCtxDestroy_v2(CUcontext c) {
    if (depth && stack[depth - 1] == c) depth--;
    return check_context(c);
}
CU CUresult cuCtxGetDevice(CUdevice *device) {
    return give(device, sim_current_device());
}
CU CUresult cuCtxSynchronize(void) {
    return CUDA_SUCCESS;
}
/* `limits` is indexed by the number of a limit (CUlimit). The first three are the bytes of a
 * thread's stack, of printf's buffer and of the heap of device code. The simulator stores the
 * limits that a program sets, but ignores them, because simulated kernels reach none of them. */
static _Atomic size_t limits[8] = {1 << 10, 1 << 20, 8 << 20, 2, 2048, 128, 0, 128};
CU CUresult cuCtxSetLimit(int limit, size_t value) {
    if (limit < 0 || limit >= (int)(sizeof limits / sizeof *limits))
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "there is no limit %d", limit);
    limits[limit] = value;
    return CUDA_SUCCESS;
}
CU CUresult cuCtxGetLimit(size_t *value, int limit) {
    if (!value) return sim_fail(CUDA_ERROR_INVALID_VALUE, "value is NULL");
    if (limit < 0 || limit >= (int)(sizeof limits / sizeof *limits))
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "there is no limit %d", limit);
    *value = limits[limit];
    return CUDA_SUCCESS;
}
/* All streams have the same priority. */
CU CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = 0;
    return CUDA_SUCCESS;
}
