/* Implements functions by which programs ask the simulated CUDA driver for parameters of kernels,
 * contexts, addresses on the PCI bus, and occupancy. Launchers and allocators of other projects
 * call these functions. */
#include "cuda.h"
#include "cuda_entries.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { VERSION = 13000, MOST_THREADS = 1024, WARP = 32 };

static CUresult check_device(CUdevice device) {
    if (sim_device_of(device)) return CUDA_SUCCESS;
    return sim_fail(CUDA_ERROR_INVALID_DEVICE, "device is %d; there is no such device", device);
}
static CUresult check_context(CUcontext c) {
    if (sim_device_of_context(c) >= 0) return CUDA_SUCCESS;
    return sim_fail(CUDA_ERROR_INVALID_CONTEXT, "this is no context of a device");
}

/* The flags of a context say how the program waits for the GPU. The simulator does not store them.
 * Its calls do all work before they return, so a program never waits. */
CU CUresult cuCtxGetFlags(unsigned *flags) {
    if (!flags) return sim_fail(CUDA_ERROR_INVALID_VALUE, "flags is NULL");
    *flags = 0;
    return CUDA_SUCCESS;
}
CU CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
    return (void)flags, check_device(device);
}
CU CUresult cuCtxGetApiVersion(CUcontext c, unsigned *version) {
    if (!version) return sim_fail(CUDA_ERROR_INVALID_VALUE, "version is NULL");
    *version = VERSION;
    return c ? check_context(c) : CUDA_SUCCESS;
}
CU CUresult cuCtxGetId(CUcontext c, unsigned long long *id) {
    if (!id) return sim_fail(CUDA_ERROR_INVALID_VALUE, "id is NULL");
    const CUresult status = c ? check_context(c) : CUDA_SUCCESS;
    if (!status) *id = (unsigned)(c ? sim_device_of_context(c) : sim_current_device()) + 1ull;
    return status;
}

/* Each simulated device has a PCI bus of its own. */
CU CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
    const CUresult status = check_device(device);
    if (status) return status;
    if (!id || length < (int)sizeof "0000:00:00.0")
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "id is NULL or has fewer than 13 bytes");
    snprintf(id, (size_t)length, "0000:%02X:00.0", (unsigned)device + 1);
    return CUDA_SUCCESS;
}
CU CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id) {
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    if (!device || !id) return sim_fail(CUDA_ERROR_INVALID_VALUE, "device or id is NULL");
    const int parts = sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function);
    if (parts < 3 || domain || slot || function || !bus || !sim_device_of((CUdevice)bus - 1))
        return sim_fail(CUDA_ERROR_INVALID_DEVICE, "id is \"%s\"; no device has it", id);
    *device = (CUdevice)bus - 1;
    return CUDA_SUCCESS;
}
CU CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    const CUresult status = check_device(device);
    if (status) return status;
    if (!major || !minor) return sim_fail(CUDA_ERROR_INVALID_VALUE, "major or minor is NULL");
    *major = (int)sim_device_of(device)->arch / 10, *minor = (int)sim_device_of(device)->arch % 10;
    return CUDA_SUCCESS;
}

CU CUresult cuKernelGetParamInfo(CUfunction kernel, size_t index, size_t *offset, size_t *size) {
    return cuFuncGetParamInfo(kernel, index, offset, size);
}
CU CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, CUfunction f,
                                                                 int threads, size_t shared,
                                                                 unsigned flags) {
    return (void)flags, cuOccupancyMaxActiveBlocksPerMultiprocessor(count, f, threads, shared);
}
/* Finds the size of a thread block with which the most threads run on an SM at once. If several
 * sizes are equally good, it returns the largest of them. */
/* NOLINTNEXTLINE(readability-function-size): CUDA's signature */
CU CUresult cuOccupancyMaxPotentialBlockSize(int *blocks, int *threads, CUfunction f,
                                             size_t (*shared_of)(int), size_t shared, int limit) {
    int best = 0, count;
    if (!blocks || !threads)
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "a result's pointer is NULL");
    const int most = limit > 0 && limit < MOST_THREADS ? limit : MOST_THREADS;
    for (int n = most / WARP * WARP; n > 0; n -= WARP) {
        const CUresult status = cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &count, f, n, shared_of ? shared_of(n) : shared);
        if (status) return status;
        if (count * n > best)
            best = count * n, *threads = n,
            *blocks = count * sim_multiprocessors(sim_current_device());
    }
    return best ? CUDA_SUCCESS
                : sim_fail(CUDA_ERROR_INVALID_VALUE, "limit is %d; must be at least 32", limit);
}

/* Calls a function of the program in the order of the stream. The simulator does this at once,
 * because it has already done all earlier work of the stream. */
CU CUresult cuLaunchHostFunc(CUstream s, void (*call)(void *), void *user) {
    int capturing;
    const CUresult status = cuStreamIsCapturing(s, &capturing);
    if (status) return status;
    if (!call) return sim_fail(CUDA_ERROR_INVALID_VALUE, "function is NULL");
    if (capturing)
        return sim_fail(CUDA_ERROR_NOT_SUPPORTED, "a graph cannot hold functions of the program");
    call(user);
    return CUDA_SUCCESS;
}
