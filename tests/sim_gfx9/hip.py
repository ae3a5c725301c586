"""Calls the functions of libamdhip64.so that the tests need, through ctypes. $SIM_LIBRARY names the
library."""
import ctypes
import os
import pathlib

import numpy as np

POINTER, SIZE, END = 1, 2, 3


class Error(Exception):
    pass


class Device:
    Error, suffix, lanes = Error, "hsaco", 64

    def __init__(self, arch):
        os.environ["BSMM_SIM_ARCH"] = arch
        self.arch = arch
        self.lib = ctypes.CDLL(os.environ.get("SIM_LIBRARY", "build/sim/libamdhip64.so"))
        self.lib.bsmm_sim_message.restype = ctypes.c_char_p
        self.lib.bsmm_sim_steps.restype = ctypes.c_uint64

    def call(self, name, *args):
        if getattr(self.lib, name)(*args):
            raise Error(self.lib.bsmm_sim_message().decode())

    def load(self, code):
        module = ctypes.c_void_p()
        self.call("hipModuleLoadData", ctypes.byref(module), code)
        return module

    def unload(self, module):
        self.call("hipModuleUnload", module)

    def function(self, module, name, shared=0):
        """Returns a kernel of a module. Unlike CUDA, HIP needs no call that sets the largest
        dynamic LDS of the kernel's launches."""
        function = ctypes.c_void_p()
        self.call("hipModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def upload(self, array):
        array = np.ascontiguousarray(array)
        at = ctypes.c_void_p()
        self.call("hipMalloc", ctypes.byref(at), ctypes.c_size_t(max(array.nbytes, 1)))
        self.call("hipMemcpyHtoD", at, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return at

    def download(self, at, array):
        self.call("hipMemcpyDtoH", array.ctypes.data_as(ctypes.c_void_p), at, ctypes.c_size_t(array.nbytes))
        return array

    def free(self, at):
        self.call("hipFree", at)

    def launch(self, function, grid, block, shared, args):
        """Launches a kernel. args lists its arguments in order, as ctypes values."""
        pointers = (ctypes.c_void_p * len(args))(*[ctypes.addressof(a) for a in args])
        grid, block = tuple(grid) + (1,) * (3 - len(grid)), tuple(block) + (1,) * (3 - len(block))
        self.call("hipModuleLaunchKernel", function, *map(ctypes.c_uint, grid + block), ctypes.c_uint(shared), None, pointers, None)

    def launch_buffer(self, function, grid, block, shared, packed):
        """Launches a kernel with its arguments in one buffer, laid out as the kernel reads them.
        This is HIP's second way to pass arguments."""
        size = ctypes.c_size_t(len(packed))
        buffer = ctypes.create_string_buffer(packed, len(packed))
        extra = (ctypes.c_void_p * 5)(POINTER, ctypes.addressof(buffer), SIZE, ctypes.addressof(size), END)
        self.call("hipModuleLaunchKernel", function, *map(ctypes.c_uint, tuple(grid) + tuple(block)), ctypes.c_uint(shared), None, None, extra)

    def steps(self):
        return self.lib.bsmm_sim_steps()


def row_names():
    """Returns the name of every opcode in the simulator's tables."""
    lib = ctypes.CDLL(os.environ.get("SIM_LIBRARY", "build/sim/libamdhip64.so"))
    lib.bsmm_sim_row.restype = ctypes.c_char_p
    names = []
    while (name := lib.bsmm_sim_row(len(names))) is not None:
        names.append(name.decode())
    return names


def executed():
    """Returns how often this process has executed each opcode, if BSMM_SIM_FIDELITY is set."""
    lib = ctypes.CDLL(os.environ.get("SIM_LIBRARY", "build/sim/libamdhip64.so"))
    opcode, count, out = ctypes.c_char_p(), ctypes.c_uint64(), {}
    while lib.bsmm_sim_fidelity(len(out), ctypes.byref(opcode), ctypes.byref(count)) >= 0:
        out[opcode.value.decode()] = count.value
    return out


def vouch(opcodes):
    """Tells test_vouched.py that, among the opcodes that the test executes, it vouches for these only."""
    path = os.environ.get("BSMM_SIM_FIDELITY")
    if path:
        pathlib.Path(path).with_suffix(".agreed").write_text("".join(f"{opcode}\n" for opcode in sorted(opcodes)))
