"""Calls the entries of the simulator's driver for memory pools, peers and queries through cuda-python, and checks
that wrong arguments are refused. If cuda.core is installed, it also allocates from a pool and launches a kernel as
a client. usage: test_pools.py ARCH FOLDER"""
import ctypes
import os
import sys

import numpy as np
from cuda_python import call, cuda

PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry multiply(.param .u64 a, .param .u32 plus) {
 .reg .b64 %rd<4>; .reg .b32 %r<5>;
 ld.param.u64 %rd1, [a]; ld.param.u32 %r2, [plus]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
 ld.global.u32 %r3, [%rd1]; mad.lo.u32 %r3, %r3, 5, %r2; st.global.u32 [%rd1], %r3; ret;
}
.visible .entry nothing() { ret; }
\0"""
checks, messages = {}, ctypes.CDLL(os.environ["SIM_LIBRARY"])
messages.bsmm_sim_message.restype = ctypes.c_char_p
Attribute, Status = cuda.CUmemPool_attribute, cuda.CUresult


def refuses(status, message, name, *args):
    """Checks that a call returns this status, and that the simulator's error message contains
    `message`."""
    got = getattr(cuda, name)(*args)[0]
    text = messages.bsmm_sim_message().decode()
    checks[f"{name} refuses: {message}; got {got}, {text}"] = got == getattr(Status, f"CUDA_ERROR_{status}") and message in text


def used(pool):
    return [int(call("cuMemPoolGetAttribute", pool, a)) for a in
            (Attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT, Attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH,
             Attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, Attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)]


def props(device=0, most=0, kind=cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED, place=cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE):
    p = cuda.CUmemPoolProps()
    p.allocType, p.maxSize, p.location.type, p.location.id = kind, most, place, device
    return p


def test_pools(device, other, stream):
    supported = cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
    checks["pools are supported"] = call("cuDeviceGetAttribute", supported, device) == 1
    default = call("cuDeviceGetDefaultMemPool", device)
    checks["the default pool is current"] = int(call("cuDeviceGetMemPool", device)) == int(default)
    a, b = call("cuMemAllocAsync", 1000, stream), call("cuMemAllocAsync", 500, stream)
    checks["allocations count"] = used(default) == [1500] * 4
    call("cuMemFreeAsync", a, stream)
    checks["a free counts"] = used(default) == [500, 1500, 500, 1500]
    call("cuMemPoolSetAttribute", default, Attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH, cuda.cuuint64_t(0))
    checks["the highest use is reset"] = used(default)[1] == 500
    call("cuMemFree", b)
    checks["cuMemFree frees memory of a pool"] = used(default)[0] == 0
    refuses("INVALID_VALUE", "is no allocation", "cuMemFreeAsync", b, stream)
    threshold, reuse = Attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, Attribute.CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC
    checks["defaults"] = (int(call("cuMemPoolGetAttribute", default, threshold)), int(call("cuMemPoolGetAttribute", default, reuse))) == (0, 1)
    call("cuMemPoolSetAttribute", default, threshold, cuda.cuuint64_t(1 << 20))
    call("cuMemPoolSetAttribute", default, reuse, 0)
    checks["attributes are kept"] = (int(call("cuMemPoolGetAttribute", default, threshold)), int(call("cuMemPoolGetAttribute", default, reuse))) == (1 << 20, 0)
    refuses("INVALID_VALUE", "attribute 7 cannot be set", "cuMemPoolSetAttribute", default, Attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT, cuda.cuuint64_t(0))
    call("cuMemPoolTrimTo", default, 0)
    refuses("INVALID_VALUE", "a default pool cannot be destroyed", "cuMemPoolDestroy", default)

    pool = call("cuMemPoolCreate", props(most=4096))
    c = call("cuMemAllocFromPoolAsync", 4000, pool, stream)
    checks["a pool of its own"] = (used(pool)[0], used(default)[0]) == (4000, 0)
    refuses("OUT_OF_MEMORY", "the pool has at most 4096", "cuMemAllocFromPoolAsync", 97, pool, stream)
    refuses("INVALID_VALUE", "its device is 0", "cuDeviceSetMemPool", other, pool)
    call("cuDeviceSetMemPool", device, pool)
    d = call("cuMemAllocAsync", 96, stream)
    checks["cuMemAllocAsync uses the current pool"] = used(pool)[0] == 4096
    access, place = cuda.CUmemAccessDesc(), cuda.CUmemLocation()
    access.location.type = place.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = place.id = int(other)
    access.flags = cuda.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    call("cuMemPoolSetAccess", pool, [access], 1)
    checks["the other device has access"] = int(call("cuMemPoolGetAccess", pool, place)) == 3
    access.location.id, access.flags = 0, cuda.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE
    refuses("INVALID_VALUE", "own device reads and writes", "cuMemPoolSetAccess", pool, [access], 1)
    access.location.id = 9
    refuses("INVALID_DEVICE", "device is 9", "cuMemPoolSetAccess", pool, [access], 1)
    call("cuMemPoolDestroy", pool)
    checks["the default pool is current again"] = int(call("cuDeviceGetMemPool", device)) == int(default)
    refuses("INVALID_VALUE", "is no memory pool", "cuMemPoolTrimTo", pool, 0)
    call("cuMemsetD8", c, 1, 4000)  # The allocations of the destroyed pool remain.
    call("cuMemFreeAsync", c, stream), call("cuMemFreeAsync", d, stream)
    refuses("INVALID_DEVICE", "device is 9", "cuMemPoolCreate", props(9))
    refuses("INVALID_VALUE", "allocType is 0", "cuMemPoolCreate", props(kind=cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_INVALID))
    refuses("NOT_SUPPORTED", "location.type is 2", "cuMemPoolCreate", props(place=cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST))
    pools = [call("cuMemPoolCreate", props()) for _ in range(192)]
    refuses("OUT_OF_MEMORY", "there are 192 memory pools", "cuMemPoolCreate", props())
    for p in pools:
        call("cuMemPoolDestroy", p)


def test_peers(device, other, context):
    checks["peers"] = [call("cuDeviceCanAccessPeer", device, d) for d in (device, other)] == [0, 1]
    refuses("INVALID_DEVICE", "device is 7", "cuDeviceCanAccessPeer", device, cuda.CUdevice(7))
    peer = call("cuDevicePrimaryCtxRetain", other)
    call("cuCtxEnablePeerAccess", peer, 0)
    refuses("PEER_ACCESS_ALREADY_ENABLED", "device 0 already accesses device 1", "cuCtxEnablePeerAccess", peer, 0)
    refuses("INVALID_VALUE", "flags is 1", "cuCtxEnablePeerAccess", peer, 1)
    refuses("INVALID_DEVICE", "device 0 is no peer of itself", "cuCtxEnablePeerAccess", context, 0)
    call("cuCtxDisablePeerAccess", peer)
    refuses("PEER_ACCESS_NOT_ENABLED", "device 0 does not access device 1", "cuCtxDisablePeerAccess", peer)
    p2p = cuda.CUdevice_P2PAttribute.CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED
    checks["accesses between devices"] = call("cuDeviceGetP2PAttribute", p2p, device, other) == 1
    a, b = call("cuMemAlloc", 64), call("cuMemAlloc", 64)
    host, words = np.arange(16, dtype=np.uint32), np.zeros(16, np.uint32)
    call("cuMemcpyHtoD", a, host.ctypes.data, 64)
    call("cuMemcpyPeer", b, peer, a, context, 64)
    call("cuMemcpyDtoH", words.ctypes.data, b, 64)
    checks["a copy between devices"] = (words == host).all()
    refuses("INVALID_VALUE", "lie in no allocation", "cuMemcpyPeerAsync", b, peer, a, context, 5000, 0)
    call("cuMemFree", a), call("cuMemFree", b)


def test_queries(device, other, context, stream):
    library = call("cuLibraryLoadData", PTX, [], [], 0, [], [], 0)
    kernel, module = call("cuLibraryGetKernel", library, b"multiply"), call("cuLibraryGetModule", library)
    function = call("cuKernelGetFunction", kernel)
    checks["parameters"] = [tuple(call("cuKernelGetParamInfo", kernel, n)) for n in (0, 1)] == [(0, 8), (8, 4)]
    refuses("INVALID_VALUE", "multiply: parameter is 2; there are 2", "cuFuncGetParamInfo", function, 2)
    checks["kernels of a library"] = call("cuLibraryGetKernelCount", library) == call("cuModuleGetFunctionCount", module) == 2
    checks["the module of a function"] = int(call("cuFuncGetModule", function)) == int(module)
    blocks = call("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", function, 128, 0, 0)
    checks["blocks of an SM"] = blocks == call("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, 128, 0)
    checks["contexts"] = (call("cuCtxGetFlags"), call("cuCtxGetApiVersion", context), call("cuCtxGetId", context)) == (0, 13000, 1)
    call("cuDevicePrimaryCtxSetFlags", device, 0)
    ids = [call("cuDeviceGetPCIBusId", 16, d).split(b"\0")[0] for d in (device, other)]
    checks["the PCI bus"] = ids == [b"0000:01:00.0", b"0000:02:00.0"] and [int(call("cuDeviceGetByPCIBusId", i)) for i in ids] == [0, 1]
    refuses("INVALID_DEVICE", "no device has it", "cuDeviceGetByPCIBusId", b"0000:09:00.0")
    refuses("INVALID_VALUE", "fewer than 13 bytes", "cuDeviceGetPCIBusId", 12, device)
    checks["the compute capability"] = tuple(call("cuDeviceComputeCapability", device)) == (8, 0)
    checks["a stream"] = (int(call("cuStreamGetCtx", stream)), int(call("cuStreamGetDevice", stream)), call("cuStreamGetFlags", stream),
                          call("cuStreamGetPriority", stream)) == (int(context), 0, 1, 0)
    second = call("cuStreamCreate", 0)
    checks["streams have different ids"] = call("cuStreamGetId", stream) != call("cuStreamGetId", second)
    event = call("cuEventCreate", 0)
    call("cuEventRecordWithFlags", event, stream, 0), call("cuEventSynchronize", event)
    call("cuEventDestroy", event), call("cuStreamDestroy", second)

    lib, called = messages, []
    back = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda user: called.append(user))
    checks["a function of the program"] = lib.cuLaunchHostFunc(ctypes.c_void_p(int(stream)), back, ctypes.c_void_p(5)) == 0 and called == [5]
    count, threads = ctypes.c_int(), ctypes.c_int()
    handle = ctypes.c_void_p(int(function))
    lib.cuOccupancyMaxPotentialBlockSize(ctypes.byref(count), ctypes.byref(threads), handle, None, ctypes.c_size_t(0), 0)
    checks["the best block"] = (count.value, threads.value) == (2 * 108, 1024)
    checks["no block"] = lib.cuOccupancyMaxPotentialBlockSize(ctypes.byref(count), ctypes.byref(threads), handle, None, ctypes.c_size_t(0), 31) == 1
    call("cuLibraryUnload", library)


def test_core():
    """Runs a kernel through cuda.core, which allocates its memory from memory pools."""
    try:
        from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch
    except ImportError:
        print("cuda.core is not installed")
        return
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    a, b = (device.allocate(128, stream=stream) for _ in range(2))
    kernel = ObjectCode.from_ptx(PTX.rstrip(b"\0")).get_kernel("multiply")
    checks["cuda.core: parameters"] = kernel.num_arguments == 2
    a.fill(7, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=32), kernel, a, np.uint32(11))
    a.copy_to(b, stream=stream)
    host = LegacyPinnedMemoryResource().allocate(128)
    b.copy_to(host, stream=stream)
    stream.sync()
    got = np.frombuffer((ctypes.c_uint8 * 128).from_address(int(host.handle)), np.uint32)
    checks["cuda.core: results"] = (got == 0x07070707 * 5 + 11).all()
    for buffer in a, b, host:
        buffer.close(stream)


def main():
    call("cuInit", 0)
    messages.bsmm_sim_device(sys.argv[1].encode(), 1)  # Makes a second device.
    device, other = call("cuDeviceGet", 0), call("cuDeviceGet", 1)
    context = call("cuDevicePrimaryCtxRetain", device)
    call("cuCtxSetCurrent", context)
    stream = call("cuStreamCreate", 1)
    test_pools(device, other, stream)
    test_peers(device, other, context)
    test_queries(device, other, context, stream)
    test_core()
    failed = [name for name, good in checks.items() if not good]
    print(*failed, sep="\n")
    print(f"{len(checks)} checks, {len(failed)} failed")
    sys.exit(bool(failed))


main()
