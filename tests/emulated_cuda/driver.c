/* This is a libcuda.so.1 with one emulated GPU, whose threads run on the host (machine.h). Device
 * memory is on the heap, and each allocation ends just before an unreadable page. Work in a stream
 * is done as soon as it is queued. EMULATED_CUDA_MULTIPROCESSORS sets the number of SMs. The
 * default of 6 is so small that even small GEMMs take several waves of tiles.
 * EMULATED_CUDA_L2_BYTES sets the size of L2 (default 50 MiB). bench uses copies of operands that
 * are together four times as large as L2. */
#define _GNU_SOURCE
#include "cuda/runtime/driver.h"
#include "map.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#pragma GCC visibility push(default)
#define ENTRY(name, symbol, parameters) CUresult symbol parameters;
#include "cuda/runtime/driver.def"
#undef ENTRY
#pragma GCC visibility pop

enum {
    PAGE = 4096,
    ALIGNMENT = 256,
    MOST_BLOCKS = 4096,
    /* MOST_SHARED is the largest shared memory of a thread block, in bytes. */
    MOST_SHARED = 227 << 10
};

static int number(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    int value = text ? atoi(text) : 0;
    return value > 0 ? value : otherwise;
}

static int multiprocessors(void) {
    return number("EMULATED_CUDA_MULTIPROCESSORS", 6);
}

CUresult cuInit(unsigned int flags) {
    (void)flags;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
    *version = 13000;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
    static _Thread_local char text[32];
    snprintf(text, sizeof text, "EMULATED_ERROR_%d", error);
    *name = text;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    (void)error;
    *text = "the emulated device says so";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    *count = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    (void)device;
    snprintf(name, (size_t)size, "Emulated GPU");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    const int values[][2] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, multiprocessors()},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, number("EMULATED_CUDA_L2_BYTES", 50 << 20)},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, MOST_SHARED},
    };
    (void)device;
    *value = 0;
    for (size_t i = 0; i < BSMM_COUNT(values); i++)
        if (values[i][0] == attribute) *value = values[i][1];
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    (void)device;
    *bytes = (size_t)1 << 32;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    static char only;
    (void)device;
    *context = (CUcontext)(void *)&only;
    return CUDA_SUCCESS;
}

#define DOES_NOTHING(name, parameters)                                                             \
    CUresult name parameters {                                                                     \
        return CUDA_SUCCESS;                                                                       \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
DOES_NOTHING(cuCtxPushCurrent_v2, (CUcontext context))
DOES_NOTHING(cuThreadExchangeStreamCaptureMode, (int *mode))
DOES_NOTHING(cuFuncSetAttribute, (CUfunction function, int attribute, int value))
DOES_NOTHING(cuStreamSynchronize, (CUstream stream))
DOES_NOTHING(cuStreamDestroy_v2, (CUstream stream))

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    *context = NULL;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags) {
    static char some;
    (void)flags;
    *stream = (CUstream)(void *)&some;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, int *status) {
    (void)stream;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

static struct {
    uint8_t *begin, *map;
    size_t bytes, mapped;
} blocks[MOST_BLOCKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t round_up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

static CUresult allocate(size_t i, size_t bytes) {
    size_t rounded = round_up(bytes, ALIGNMENT), mapped = round_up(rounded, PAGE) + PAGE;
    uint8_t *map = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    mprotect(map + mapped - PAGE, PAGE, PROT_NONE);
    blocks[i].map = map;
    blocks[i].mapped = mapped;
    blocks[i].bytes = bytes;
    blocks[i].begin = map + mapped - PAGE - rounded;
    memset(blocks[i].begin, 0xC7, rounded);
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MOST_BLOCKS && bytes < (size_t)1 << 32; i++) {
        if (blocks[i].map) continue;
        result = allocate(i, bytes);
        *pointer = (uintptr_t)blocks[i].begin;
        break;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        if (!blocks[i].map || (uintptr_t)blocks[i].begin != pointer) continue;
        munmap(blocks[i].map, blocks[i].mapped);
        blocks[i].map = NULL;
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static bool is_mine(CUdeviceptr pointer) {
    for (size_t i = 0; i < MOST_BLOCKS; i++)
        if (blocks[i].map && pointer >= (uintptr_t)blocks[i].begin &&
            pointer < (uintptr_t)blocks[i].begin + blocks[i].bytes)
            return true;
    return false;
}

CUresult cuPointerGetAttributes(unsigned int count, int *attributes, void **values,
                                CUdeviceptr pointer) {
    for (unsigned int k = 0; k < count && is_mine(pointer); k++)
        *(int *)values[k] =
            attributes[k] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ? CU_MEMORYTYPE_DEVICE : 0;
    return CUDA_SUCCESS;
}

static void *address(CUdeviceptr pointer) {
    return (void *)(uintptr_t)pointer;
}

static CUresult copy(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    return copy(address(to), from, bytes);
}
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    return copy(to, address(from), bytes);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    return copy(address(to), from, bytes);
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy(to, address(from), bytes);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy(address(to), address(from), bytes);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
    memset(address(to), value, bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t words, CUstream stream) {
    for (size_t i = 0; i < words; i++)
        memcpy((char *)address(to) + 4 * i, &value, 4);
    return CUDA_SUCCESS;
}

static uint32_t bytes_of(int type) {
    static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
    return type >= 0 && type < (int)sizeof bytes ? bytes[type] : 0;
}

/* Makes a tensor map. Checks those rules of cuTensorMapEncodeTiled that a GEMM could break. */
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, uint32_t rank, void *at,
                                const uint64_t *extents, const uint64_t *strides,
                                const uint32_t *box, const uint32_t *element_strides,
                                int interleave, int swizzle, int l2_promotion, int fill) {
    emulated_map m = {.address = at,
                      .extents = {extents[0], extents[1]},
                      .stride = strides[0],
                      .box = {box[0], box[1]},
                      .elem_bytes = bytes_of(type),
                      .swizzle_bytes = swizzle ? 16u << swizzle : 0};
    uint32_t row = m.box[0] * m.elem_bytes;
    bool fits = rank == 2 && (uintptr_t)at % 16 == 0 && strides[0] % 16 == 0 &&
                strides[0] < (uint64_t)1 << 40 && row % 16 == 0 && box[0] <= 256 && box[1] <= 256 &&
                box[0] && box[1] && extents[0] && extents[1] && extents[0] <= UINT32_MAX &&
                extents[1] <= UINT32_MAX && m.elem_bytes &&
                (!m.swizzle_bytes || row <= m.swizzle_bytes);
    if (!fits) return CUDA_ERROR_INVALID_VALUE;
    memset(map, 0, sizeof *map);
    memcpy(map, &m, sizeof m);
    return CUDA_SUCCESS;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *at) {
    emulated_map m;
    if ((uintptr_t)at % 16 != 0) return CUDA_ERROR_INVALID_VALUE;
    memcpy(&m, map, sizeof m);
    m.address = at;
    memcpy(map, &m, sizeof m);
    return CUDA_SUCCESS;
}
_Static_assert(sizeof(emulated_map) <= sizeof(CUtensorMap), "a map's own bytes hold it");

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    static char any;
    (void)image;
    *module = (CUmodule)(void *)&any;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    *function = emulated_find(name);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function) {
    *value = 0;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction function, int threads,
                                                     size_t shared_bytes) {
    *count = 1;
    return CUDA_SUCCESS;
}

static uint32_t cluster_of(const CUlaunchConfig *config) {
    uint32_t size = 1;
    for (unsigned int i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            size = config->attrs[i].value.clusterDim.x * config->attrs[i].value.clusterDim.y *
                   config->attrs[i].value.clusterDim.z;
    return size;
}

CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction function,
                                      const CUlaunchConfig *config) {
    *count = multiprocessors() / (int)cluster_of(config);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments,
                          void **extra) {
    const uint32_t grid[] = {config->gridDimX, config->gridDimY, config->gridDimZ};
    const uint32_t block[] = {config->blockDimX, config->blockDimY, config->blockDimZ};
    uint32_t cluster = cluster_of(config);
    if (!grid[0] || !grid[1] || !grid[2] || grid[0] % cluster || grid[1] > 65535 ||
        grid[2] > 65535 || block[0] * block[1] * block[2] > 1024 ||
        config->sharedMemBytes > MOST_SHARED)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    bool done = emulated_launch(function, arguments, grid, block, cluster, config->sharedMemBytes);
    pthread_mutex_unlock(&lock);
    return done ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}
