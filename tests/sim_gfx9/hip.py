"""Calls the functions of libamdhip64.so that the tests need, through ctypes. $SIM_LIBRARY names the
library."""
import ctypes
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import sim_device
from sim_device import Error

POINTER, SIZE, END = 1, 2, 3


class Device(sim_device.Device):
    suffix, lanes, library, address = "hsaco", 64, "build/sim/libamdhip64.so", ctypes.c_void_p
    allocates, writes, reads, frees = "hipMalloc", "hipMemcpyHtoD", "hipMemcpyDtoH", "hipFree"

    def load(self, code):
        module = ctypes.c_void_p()
        self.call("hipModuleLoadData", ctypes.byref(module), code)
        return module

    def unload(self, module):
        self.call("hipModuleUnload", module)

    def function(self, module, name, shared=0):
        """Returns a kernel of a module. HIP needs no further call for kernels with much dynamic
        LDS, unlike CUDA."""
        function = ctypes.c_void_p()
        self.call("hipModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def launch(self, function, grid, block, shared, args):
        """Launches a kernel. args lists its arguments in order, as ctypes values."""
        grid, block = sim_device.three(grid), sim_device.three(block)
        self.call("hipModuleLaunchKernel", function, *map(ctypes.c_uint, grid + block), ctypes.c_uint(shared), None,
                  sim_device.pointers_to(args), None)

    def launch_buffer(self, function, grid, block, shared, packed):
        """Launches a kernel with its arguments in one buffer, which is HIP's second way to pass
        arguments. The buffer has the layout in which the kernel reads them."""
        size = ctypes.c_size_t(len(packed))
        buffer = ctypes.create_string_buffer(packed, len(packed))
        extra = (ctypes.c_void_p * 5)(POINTER, ctypes.addressof(buffer), SIZE, ctypes.addressof(size), END)
        self.call("hipModuleLaunchKernel", function, *map(ctypes.c_uint, tuple(grid) + tuple(block)), ctypes.c_uint(shared), None, None, extra)


def row_names():
    """Returns the name of every opcode in the simulator's tables."""
    lib = ctypes.CDLL(os.environ.get("SIM_LIBRARY", Device.library))
    lib.bsmm_sim_row.restype = ctypes.c_char_p
    names = []
    while (name := lib.bsmm_sim_row(len(names))) is not None:
        names.append(name.decode())
    return names


def executed():
    """Returns how often this process has executed each opcode, if BSMM_SIM_FIDELITY is set."""
    lib = ctypes.CDLL(os.environ.get("SIM_LIBRARY", Device.library))
    opcode, count, out = ctypes.c_char_p(), ctypes.c_uint64(), {}
    while lib.bsmm_sim_fidelity(len(out), ctypes.byref(opcode), ctypes.byref(count)) >= 0:
        out[opcode.value.decode()] = count.value
    return out


def vouch(opcodes):
    """Writes a list of opcodes for test_vouched.py. Of the opcodes that this test executes, only
    these count as compared with other projects' results."""
    path = os.environ.get("BSMM_SIM_FIDELITY")
    if path:
        pathlib.Path(path).with_suffix(".agreed").write_text("".join(f"{opcode}\n" for opcode in sorted(opcodes)))
