"""Defines a device whose driver is called through ctypes. The tests of both simulators use it."""
import ctypes
import os

import numpy as np


class Error(Exception):
    pass


class Device:
    """Represents a device of a driver. A subclass gives the path of the driver's library, the type of an address,
    and the names of the functions that allocate memory, copy to and from it, and free it. $SIM_LIBRARY replaces
    the path."""
    Error = Error

    def __init__(self, arch):
        os.environ["BSMM_SIM_ARCH"] = arch
        self.arch = arch
        self.lib = ctypes.CDLL(os.environ.get("SIM_LIBRARY", self.library))
        self.simulated = hasattr(self.lib, "bsmm_sim_message")
        if self.simulated:
            self.lib.bsmm_sim_message.restype = ctypes.c_char_p
            self.lib.bsmm_sim_steps.restype = ctypes.c_uint64

    def call(self, name, *args):
        status = getattr(self.lib, name)(*args)
        if status:
            raise Error(self.lib.bsmm_sim_message().decode(errors="replace") if self.simulated else f"{name}: error {status}")

    def upload(self, array):
        array = np.ascontiguousarray(array)
        at = self.address()
        self.call(self.allocates, ctypes.byref(at), ctypes.c_size_t(max(array.nbytes, 1)))
        self.call(self.writes, at, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return at

    def download(self, at, array):
        self.call(self.reads, array.ctypes.data_as(ctypes.c_void_p), at, ctypes.c_size_t(array.nbytes))
        return array

    def free(self, at):
        self.call(self.frees, at)

    def steps(self):
        return self.lib.bsmm_sim_steps()


def pointers_to(args):
    """Returns an array of the addresses of ctypes values."""
    return (ctypes.c_void_p * max(len(args), 1))(*[ctypes.addressof(a) for a in args])


def three(sizes):
    """Returns a grid or block size of up to three numbers as three numbers. The missing ones are
    1."""
    return tuple(sizes) + (1,) * (3 - len(sizes))
