"""Runs a kernel on the simulator through cuda-python, NVIDIA's bindings of the driver, which find its functions by
cuGetProcAddress. The loads, copies and queries are those of a launcher. usage: test_client.py ARCH FOLDER"""
import ctypes
import sys

import numpy as np
from cuda_python import call, cuda

PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .global .u32 factor = 3;
.shared .b32 outer[512];
.visible .entry use_outer() {
 .reg .b32 %r<2>; mov.u32 %r1, 0; st.shared.u32 [outer], %r1; ret;
}
.func store() {
 .reg .b32 %r<2>; mov.u32 %r1, 0; st.shared.u32 [outer], %r1; ret;
}
.visible .entry call_store() {
 call store; ret;
}
.visible .entry multiply(.param .u64 a, .param .u32 plus) {
 .reg .b64 %rd<4>; .reg .b32 %r<5>; .shared .b32 own[1024];
 ld.param.u64 %rd1, [a]; ld.param.u32 %r2, [plus]; ld.global.u32 %r4, [factor];
 mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
 ld.global.u32 %r3, [%rd1]; mad.lo.u32 %r3, %r3, %r4, %r2; st.global.u32 [%rd1], %r3; ret;
}
\0"""
checks = {}


def fails(name, *args):
    return getattr(cuda, name)(*args)[0] != cuda.CUresult.CUDA_SUCCESS


def main():
    call("cuInit", 0)
    device = call("cuDeviceGet", 0)
    checks["the simulator is the driver"] = b"simulator" in call("cuDeviceGetName", 64, device)
    context = call("cuDevicePrimaryCtxRetain", device)
    call("cuCtxSetCurrent", context)
    limit = cuda.CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE
    checks["the buffer of printf has CUDA's size"] = call("cuCtxGetLimit", limit) == 1 << 20
    call("cuCtxSetLimit", limit, 4096)
    checks["a limit is kept"] = call("cuCtxGetLimit", limit) == 4096
    checks["priorities"] = tuple(call("cuCtxGetStreamPriorityRange")) == (0, 0)
    checks["modules are loaded eagerly"] = int(call("cuModuleGetLoadingMode")) == 1

    library = call("cuLibraryLoadData", PTX, [], [], 0, [], [], 0)
    kernel = call("cuLibraryGetKernel", library, b"multiply")
    function = call("cuKernelGetFunction", kernel)
    checks["the kernel's name"] = call("cuKernelGetName", kernel) == call("cuFuncGetName", function) == b"multiply"
    checks["no such kernel"] = fails("cuLibraryGetKernel", library, b"divide")
    checks["damaged PTX"] = fails("cuLibraryLoadData", b"wrong\0", [], [], 0, [], [], 0)
    shared = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    call("cuKernelSetAttribute", shared, 60000, kernel, device)
    checks["an attribute of a kernel"] = call("cuKernelGetAttribute", shared, kernel, device) == 60000
    checks["too much shared memory"] = fails("cuKernelSetAttribute", shared, 1 << 20, kernel, device)
    # The limit is for dynamic and static shared memory together, and the kernel has 4096 bytes of static shared memory.
    most = call("cuDeviceGetAttribute", cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device)
    call("cuKernelSetAttribute", shared, most - 4096, kernel, device)
    checks["static shared memory counts"] = fails("cuKernelSetAttribute", shared, most - 4095, kernel, device)
    # A variable outside the kernels counts for the kernels that use it.
    static = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
    others = [call("cuLibraryGetKernel", library, name) for name in (b"use_outer", b"call_store")]
    checks["a variable of the module counts where it is used"] = [
        call("cuKernelGetAttribute", static, k, device) for k in (kernel, *others)] == [4096, 2048, 2048]
    call("cuFuncLoad", function)
    at, size = call("cuLibraryGetGlobal", library, b"factor")
    call("cuMemcpyHtoD", at, np.array([5], np.uint32).ctypes.data, 4)
    checks["the size of a variable"] = size == 4

    host = call("cuMemAllocHost", 128)
    stream = call("cuStreamCreate", 0)
    memory = call("cuMemAlloc", 128)
    call("cuMemsetD16", memory, 7, 64)
    same = int(call("cuMemHostGetDevicePointer", host, 0)) == int(host)
    checks["host memory has one address"] = same and fails("cuMemHostGetDevicePointer", 4096, 0)
    for what in function, cuda.CUfunction(int(kernel)):  # Clients pass a CUkernel in place of a CUfunction.
        call("cuLaunchKernel", what, 1, 1, 1, 32, 1, 1, 0, stream, ((int(memory), 11), (ctypes.c_void_p, ctypes.c_uint32)), 0)
    call("cuMemcpyDtoHAsync", host, memory, 128, stream)
    call("cuStreamSynchronize", stream)
    got = np.frombuffer((ctypes.c_uint8 * 128).from_address(int(host)), np.uint32)
    checks["the results of two launches"] = (got == ((7 << 16 | 7) * 5 + 11) * 5 + 11).all()
    call("cuMemFreeHost", host)
    call("cuMemFree", memory)
    call("cuStreamDestroy", stream)
    call("cuLibraryUnload", library)
    failed = [name for name, good in checks.items() if not good]
    print(*failed, sep="\n")
    print(f"{len(checks)} checks, {len(failed)} failed")
    sys.exit(bool(failed))


main()
