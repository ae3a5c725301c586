"""Calls the functions of libcuda.so.1 that the tests need, through ctypes. $SIM_LIBRARY names the
library: the simulator's or that of a driver."""
import ctypes
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import sim_device
from sim_device import Error


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("unused", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [("sizes", ctypes.c_uint * 7), ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(LaunchAttribute)),
                ("count", ctypes.c_uint)]


class Device(sim_device.Device):
    suffix, lanes, library, address = "ptx", 32, "build/sim/libcuda.so.1", ctypes.c_uint64
    allocates, writes, reads, frees = "cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemFree_v2"

    def __init__(self, arch):
        super().__init__(arch)
        self.call("cuInit", 0)
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self.call("cuCtxPushCurrent_v2", self.context)

    def load(self, text):
        module = ctypes.c_void_p()
        self.call("cuModuleLoadDataEx", ctypes.byref(module), text if isinstance(text, bytes) else text.encode(), 0, None, None)
        return module

    def unload(self, module):
        self.call("cuModuleUnload", module)

    def function(self, module, name, shared=0):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared:
            self.call("cuFuncSetAttribute", function, 8, shared)
        return function

    def launch(self, function, grid, block, shared, args, cluster=1):
        """Launches a kernel. `args` lists its arguments in order, as ctypes values. `cluster` is
        the number of blocks of a cluster along the first dimension of the grid."""
        grid, block = sim_device.three(grid), sim_device.three(block)
        attribute = LaunchAttribute(4, 0, (ctypes.c_uint * 16)(cluster, 1, 1))  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        config = LaunchConfig((ctypes.c_uint * 7)(*grid, *block, shared), None, ctypes.pointer(attribute), int(cluster > 1))
        self.call("cuLaunchKernelEx", ctypes.byref(config), function, sim_device.pointers_to(args), None)


class TritonDevice(Device):
    """Runs kernels of Triton. LLVM moves some reads of tcgen05.ld's results before tcgen05.wait::ld, which the PTX ISA forbids
    and the simulator reports. Such a kernel runs a second time without this check, and `early` counts it."""
    early = 0

    def launch(self, *args, **options):
        try:
            super().launch(*args, **options)
        except Error as error:
            if "is read before tcgen05.wait::ld" not in str(error):
                raise
            self.early += 1
            os.environ["BSMM_SIM_CHECKS"] = "7"
            try:
                super().launch(*args, **options)
            finally:
                del os.environ["BSMM_SIM_CHECKS"]


def tensor_map(device, number, at, extents, strides, box, swizzle):
    """Returns the CUtensorMap of a tensor. `number` is the element type (CUtensorMapDataType). The
    first extent is that of the contiguous dimension. `strides` has no entry for this dimension."""
    rank = len(extents)
    out = (ctypes.c_uint64 * 32)()
    start = (ctypes.addressof(out) + 127) // 128 * 128
    u64, u32 = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
    device.call("cuTensorMapEncodeTiled", ctypes.c_void_p(start), number, rank, at, u64(*extents), u64(*strides, 0), u32(*box),
                u32(*[1] * rank), 0, swizzle, 2, 0)
    map_ = (ctypes.c_uint8 * 128)()
    ctypes.memmove(map_, start, 128)
    return map_
