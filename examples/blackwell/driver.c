#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct launch_attribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        struct {
            unsigned x, y, z;
        } cluster;
    } value;
} launch_attribute;

typedef struct launch_config {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    launch_attribute *attributes;
    unsigned attribute_count;
} launch_config;

enum {
    DEVICE_MULTIPROCESSORS = 16,
    FUNCTION_SHARED_BYTES = 8,
    LAUNCH_CLUSTER = 4,
    TYPE_UINT8 = 0,
    TYPE_FLOAT16 = 6,
    TYPE_16U4_ALIGN16B = 14,
    SWIZZLE_128B = 3
};

static struct {
    int (*cuInit)(unsigned);
    int (*cuGetErrorString)(int, const char **);
    int (*cuDeviceGet)(int *, int);
    int (*cuDeviceGetAttribute)(int *, int, int);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxSetCurrent)(void *);
    int (*cuCtxSynchronize)(void);
    int (*cuModuleLoad)(void **, const char *);
    int (*cuModuleGetFunction)(void **, void *, const char *);
    int (*cuFuncSetAttribute)(void *, int, int);
    int (*cuMemAlloc_v2)(uint64_t *, size_t);
    int (*cuMemFree_v2)(uint64_t);
    int (*cuMemcpyHtoD_v2)(uint64_t, const void *, size_t);
    int (*cuMemcpyDtoH_v2)(void *, uint64_t, size_t);
    int (*cuTensorMapEncodeTiled)(CUtensorMap *, int, uint32_t, void *, const uint64_t *,
                                  const uint64_t *, const uint32_t *, const uint32_t *, int, int,
                                  int, int);
    int (*cuLaunchKernelEx)(const launch_config *, void *, void **, void **);
} cuda;

static void need(int status, const char *what) {
    const char *text = NULL;
    if (!status) return;
    if (cuda.cuGetErrorString) cuda.cuGetErrorString(status, &text);
    fprintf(stderr, "%s: %s\n", what, text ? text : "an unknown error");
    exit(1);
}
#define NEED(entry, ...) need(cuda.entry(__VA_ARGS__), #entry)

static void open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) fprintf(stderr, "%s\n", dlerror()), exit(1);
#define ENTRY(name)                                                                                \
    if (!(*(void **)&cuda.name = dlsym(library, #name))) fprintf(stderr, "%s\n", dlerror()), exit(1)
    ENTRY(cuInit);
    ENTRY(cuGetErrorString);
    ENTRY(cuDeviceGet);
    ENTRY(cuDeviceGetAttribute);
    ENTRY(cuDevicePrimaryCtxRetain);
    ENTRY(cuCtxSetCurrent);
    ENTRY(cuCtxSynchronize);
    ENTRY(cuModuleLoad);
    ENTRY(cuModuleGetFunction);
    ENTRY(cuFuncSetAttribute);
    ENTRY(cuMemAlloc_v2);
    ENTRY(cuMemFree_v2);
    ENTRY(cuMemcpyHtoD_v2);
    ENTRY(cuMemcpyDtoH_v2);
    ENTRY(cuTensorMapEncodeTiled);
    ENTRY(cuLaunchKernelEx);
#undef ENTRY
}

device_kernel device_open(const char *ptx, const char *name, uint32_t shared_bytes) {
    device_kernel made = {0};
    int device, count;
    void *context, *module;
    open_driver();
    NEED(cuInit, 0);
    NEED(cuDeviceGet, &device, 0);
    NEED(cuDeviceGetAttribute, &count, DEVICE_MULTIPROCESSORS, device);
    NEED(cuDevicePrimaryCtxRetain, &context, device);
    NEED(cuCtxSetCurrent, context);
    NEED(cuModuleLoad, &module, ptx);
    NEED(cuModuleGetFunction, &made.function, module, name);
    NEED(cuFuncSetAttribute, made.function, FUNCTION_SHARED_BYTES, (int)shared_bytes);
    made.multiprocessors = (uint32_t)count;
    return made;
}

/* These pointers are functions of the simulator of PTX (sim/ptx/cuda.h), or NULL on a real GPU. */
static void (*set_time_mode)(int mode);
static int (*get_times)(unsigned back, char *name, size_t name_bytes, double *times, size_t count);

void device_use_model(bool complete) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&set_time_mode = dlsym(library, "bsmm_sim_time");
    *(void **)&get_times = dlsym(library, "bsmm_sim_times");
    if (set_time_mode) set_time_mode(complete ? 1 : 2);
}

bool device_read_model(device_model *to) {
    /* The function bsmm_sim_times writes an array of numbers. SECONDS, BUSY and LOOP are the
     * indices of the three numbers that this program uses. TIMES is the number of array items that
     * the program asks for. */
    enum { SECONDS = 0, BUSY = 9, LOOP = 21, TIMES };
    double times[TIMES] = {0};
    if (!get_times || !get_times(0, NULL, 0, times, TIMES) || times[LOOP] <= 0) return false;
    *to = (device_model){times[SECONDS], times[BUSY] / times[LOOP]};
    return true;
}

void *device_new(const void *from, size_t bytes) {
    uint64_t memory;
    NEED(cuMemAlloc_v2, &memory, bytes);
    if (from) NEED(cuMemcpyHtoD_v2, memory, from, bytes);
    return (void *)(uintptr_t)memory;
}

void device_read(void *to, const void *from, size_t bytes) {
    NEED(cuMemcpyDtoH_v2, to, (uintptr_t)from, bytes);
}

void device_free(void *memory) {
    NEED(cuMemFree_v2, (uintptr_t)memory);
}

CUtensorMap device_map(device_map_kind kind, const void *data, uint64_t rows, uint64_t cols,
                       uint32_t box_rows, uint32_t box_cols) {
    static const struct {
        int type, swizzle;
        uint32_t bits;
    } kinds[] = {[MAP_BYTES] = {TYPE_UINT8, 0, 8},
                 [MAP_SWIZZLED_BYTES] = {TYPE_UINT8, SWIZZLE_128B, 8},
                 [MAP_SPREAD_4_BITS] = {TYPE_16U4_ALIGN16B, SWIZZLE_128B, 4},
                 [MAP_F16] = {TYPE_FLOAT16, SWIZZLE_128B, 16}};
    const uint64_t extents[] = {cols, rows}, strides[] = {cols * kinds[kind].bits / 8};
    const uint32_t box[] = {box_cols, box_rows}, ones[] = {1, 1};
    CUtensorMap map;
    NEED(cuTensorMapEncodeTiled, &map, kinds[kind].type, 2, (void *)(uintptr_t)data, extents,
         strides, box, ones, 0, kinds[kind].swizzle, 0, 0);
    return map;
}

void device_launch(const device_kernel *kernel, uint32_t blocks, uint32_t threads, uint32_t cluster,
                   uint32_t shared_bytes, void *parameter) {
    launch_attribute attribute = {.id = LAUNCH_CLUSTER, .value.cluster = {cluster, 1, 1}};
    const launch_config config = {.grid = {blocks, 1, 1},
                                  .block = {threads, 1, 1},
                                  .shared_bytes = shared_bytes,
                                  .attributes = &attribute,
                                  .attribute_count = 1};
    NEED(cuLaunchKernelEx, &config, kernel->function, &parameter, NULL);
    need(cuda.cuCtxSynchronize(), "cuCtxSynchronize");
}
