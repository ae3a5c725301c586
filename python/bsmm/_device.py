"""Defines arrays in the memory of a device. They are for processes that use the device without
torch or another library of GPU arrays."""
from __future__ import annotations

import math
import sys
import weakref
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from . import _bsmm
from ._arrays import NumPySpace, Space, TorchSpace, View, numpy_type, view
from ._tables import ARRAY_TYPES, type_bits

# These are DLPack's device types and its code of an unsigned integer.
_DLPACK_DEVICES = {"cpu": 1, "cuda": 2, "hip": 10}
_DLPACK_UINT = 1


def _free(device: str, address: int) -> None:
    try:
        _bsmm.synchronize({"device": device})
        _bsmm.free(device, address)
    except _bsmm.DeviceError:
        pass  # The driver may already be gone when the interpreter ends.


class DeviceArray:
    """Holds an array without gaps in the memory of a device. It has the interfaces of GPU arrays
    (`__cuda_array_interface__` on CUDA devices, DLPack), and `to_numpy`."""

    def __init__(self, shape: tuple[int, ...], type: str, device: str) -> None:
        self.shape, self.type, self.device = tuple(shape), type, device
        self.dtype = numpy_type(type, may_be_codes=True)
        self.nbytes = math.prod(shape) * self.dtype.itemsize
        self.address = _bsmm.allocate(device, self.nbytes) or 0
        self._end = weakref.finalize(self, _free, device, self.address)

    def __repr__(self) -> str:
        return f"DeviceArray({self.type}, shape {self.shape}, {self.device})"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Returns the dict of Numba's CUDA Array Interface, version 3. Types that NumPy lacks appear
        as bytes."""
        if not self.device.startswith("cuda"):
            raise AttributeError("__cuda_array_interface__: only arrays of CUDA devices have it")
        kind = self.dtype.str if self.dtype.kind in "fiu" else f"|u{self.dtype.itemsize}"
        return {"shape": self.shape, "typestr": kind, "data": (self.address, False), "strides": None,
                "version": 3}

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, _, number = self.device.partition(":")
        if kind not in _DLPACK_DEVICES:
            raise BufferError(f"device: value is {self.device}; DLPack has no simulated devices")
        return _DLPACK_DEVICES[kind], int(number) if number.isdigit() else 0

    def __dlpack__(self, **_: Any) -> Any:
        """Returns a DLPack capsule. The method ignores the stream, because the array is complete
        when the call that makes it returns."""
        code = ARRAY_TYPES[self.type][1] if self.type in ARRAY_TYPES else _DLPACK_UINT
        return _bsmm.dlpack_make(self, self.address, (*self.__dlpack_device__(), code, self.dtype.itemsize * 8),
                                 self.shape)

    def as_view(self) -> View:
        """Returns the View of the array. The package calls this method instead of DLPack, because
        DLPack has no number for a simulated device."""
        strides, step = [], 1
        for extent in reversed(self.shape):
            strides.append(step)
            step *= extent
        return View(self.address, self.shape, tuple(reversed(strides)), self.type, self.device, self)

    def to_numpy(self) -> np.ndarray:
        """Returns a copy in host memory."""
        result: np.ndarray = copy_array(self, NumPySpace())
        return result


class DeviceSpace:
    """Makes DeviceArrays on a device of this machine. The work of calls is in the default stream."""

    def __init__(self, device: str) -> None:
        self.device = device

    def empty(self, shape: tuple[int, ...], type: str) -> DeviceArray:
        return DeviceArray(shape, type, self.device)

    def stream(self) -> int:
        return 0

    def threads(self) -> int:
        return 0

    def finish(self, stream: int | None) -> None:
        """Waits for the queued work, because freeing an array does not wait for it."""
        _bsmm.synchronize({"device": self.device, "stream": stream or None})

    def using(self, stream: int | None) -> AbstractContextManager[Any]:
        return nullcontext()


def copy_array(array: Any, space: Space) -> Any:
    """Returns a copy of an array without gaps in another space. The copy is complete when the call
    returns."""
    if isinstance(space, TorchSpace):
        return sys.modules["torch"].from_numpy(array).to(space.device)
    seen = view(array)
    name = seen.type
    made = space.empty(seen.shape, name)
    exec = {"device": space.device if space.device != "cpu" else seen.device, "stream": None}
    to = view(made)
    size = math.prod(seen.shape) * type_bits(name) // 8
    _bsmm.copy(exec, to.address, seen.address, size)
    _bsmm.synchronize(exec)
    return made
