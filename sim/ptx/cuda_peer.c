/* Implements accesses between the devices of the simulated CUDA driver. Each device can access the
 * memory of every other device, because all share one address space. */
#include "cuda.h"
#include "cuda_entries.h"
#include <stdbool.h>

enum { DEVICES = 64 };
/* enabled[i][j] is true if the program has enabled accesses of device i to the memory of device
 * j. */
static bool enabled[DEVICES][DEVICES];

/* Returns an error unless both devices exist. */
static CUresult check_pair(CUdevice a, CUdevice b) {
    const CUdevice wrong = sim_device_of(a) ? b : a;
    if (sim_device_of(a) && sim_device_of(b)) return CUDA_SUCCESS;
    return sim_fail(CUDA_ERROR_INVALID_DEVICE, "device is %d; there is no such device", wrong);
}

/* A device and itself are no peers: *can is then false, as in NVIDIA's driver. */
CU CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    if (!can) return sim_fail(CUDA_ERROR_INVALID_VALUE, "can is NULL");
    const CUresult status = check_pair(device, peer);
    if (!status) *can = device != peer;
    return status;
}

/* Names the numbers of CUdevice_P2PAttribute. */
enum { RANK = 1, ACCESS = 2, ATOMICS = 3, ARRAYS = 4, PARTIAL_ATOMICS = 5 };
CU CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice from, CUdevice to) {
    if (!value) return sim_fail(CUDA_ERROR_INVALID_VALUE, "value is NULL");
    if (attribute < RANK || attribute > PARTIAL_ATOMICS)
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "there is no attribute %d", attribute);
    const CUresult status = check_pair(from, to);
    if (status) return status;
    if (from == to)
        return sim_fail(CUDA_ERROR_INVALID_DEVICE, "device %d is no peer of itself", from);
    *value = attribute == ACCESS || attribute == ATOMICS;
    return CUDA_SUCCESS;
}

static CUresult find_peer(CUcontext peer, CUdevice *device, CUdevice *other) {
    *device = sim_current_device(), *other = sim_device_of_context(peer);
    if (*other < 0) return sim_fail(CUDA_ERROR_INVALID_CONTEXT, "peer is no context of a device");
    if (*other == *device)
        return sim_fail(CUDA_ERROR_INVALID_DEVICE, "device %d is no peer of itself", *device);
    return CUDA_SUCCESS;
}
CU CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    CUdevice device, other;
    if (flags) return sim_fail(CUDA_ERROR_INVALID_VALUE, "flags is %u; must be 0", flags);
    const CUresult status = find_peer(peer, &device, &other);
    if (status) return status;
    if (__atomic_exchange_n(&enabled[device][other], true, __ATOMIC_SEQ_CST))
        return sim_fail(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
                        "device %d already accesses device %d", device, other);
    return CUDA_SUCCESS;
}
CU CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    CUdevice device, other;
    const CUresult status = find_peer(peer, &device, &other);
    if (status) return status;
    if (!__atomic_exchange_n(&enabled[device][other], false, __ATOMIC_SEQ_CST))
        return sim_fail(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "device %d does not access device %d",
                        device, other);
    return CUDA_SUCCESS;
}

/* NOLINTNEXTLINE(readability-function-size): CUDA's signature */
CU CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                              CUcontext from_context, size_t bytes, CUstream s) {
    if (sim_device_of_context(to_context) < 0 || sim_device_of_context(from_context) < 0)
        return sim_fail(CUDA_ERROR_INVALID_CONTEXT, "this is no context of a device");
    return cuMemcpyDtoDAsync_v2(to, from, bytes, s);
}
CU CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                         CUcontext from_context, size_t bytes) {
    return cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, NULL);
}
