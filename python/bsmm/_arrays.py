"""Reads arrays of other libraries without copies, and makes new arrays in the same memory.

A `View` holds the address, shape and type of an array. A `Space` makes new arrays, i.e. NumPy
arrays, torch tensors, or arrays in a device's memory."""
from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from . import _bsmm
from ._tables import ARRAY_NAME, DLPACK_NAME, FORMAT_NAME

_P = ParamSpec("_P")
_R = TypeVar("_R")

# `_call_stream` is the argument `stream` of the call that is running, or None.
_call_stream: ContextVar[Any] = ContextVar("_call_stream", default=None)


def names_stream(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Makes a function's keyword argument `stream` known to `view`, which does not wait for it: the
    work of the call is queued in this stream after the work that is already there."""
    @wraps(function)
    def call(*args: _P.args, **options: _P.kwargs) -> _R:
        token = _call_stream.set(options.get("stream"))
        try:
            return function(*args, **options)
        finally:
            _call_stream.reset(token)
    return call


_DLPACK_DEVICES = {1: "cpu", 2: "cuda", 3: "cpu", 10: "hip"}


class View(NamedTuple):
    """Describes an array. `strides` counts items, and `type` is a format's name or the array type's
    name."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    type: str
    device: str
    owner: Any


class Space(Protocol):
    """Makes new arrays in one place, i.e. as NumPy arrays, torch tensors or arrays of a device."""

    device: str

    def empty(self, shape: tuple[int, ...], type: str) -> Any: ...

    def stream(self) -> int: ...

    def threads(self) -> int:
        """Returns the number of threads for calls that name none. 0 means all processors."""
        ...

    def finish(self, stream: int | None) -> None:
        """Waits for the work that a call has queued, unless something else keeps the memory of the
        arrays alive. Functions of this package call it after they have queued work."""
        ...

    def using(self, stream: int | None) -> AbstractContextManager[Any]:
        """Returns a context in which `empty` makes arrays for work in the stream. None stands for the
        current stream."""
        ...


@lru_cache(maxsize=None)
def numpy_type(name: str, may_be_codes: bool = False) -> np.dtype[Any]:
    """Returns the NumPy type of an element format. Types of ml_dtypes need that package. With
    `may_be_codes`, types of 8 bits become uint8 without it."""
    array = ARRAY_NAME.get(name, name)
    try:
        return np.dtype(array)
    except TypeError:
        pass
    try:
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, array))
        return found
    except (ImportError, AttributeError):
        if may_be_codes:
            return np.dtype(np.uint8)
        raise TypeError(f"type {name}: NumPy has none; install ml_dtypes") from None


def aligned_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Returns a NumPy array that is aligned to 64 bytes."""
    whole = np.empty(math.prod(shape) * dtype.itemsize + 63, np.uint8)
    return np.ndarray(shape, dtype, whole, -_bsmm.buffer_read(whole)[0] % 64)


class NumPySpace:
    device = "cpu"

    def empty(self, shape: tuple[int, ...], type: str) -> np.ndarray:
        return aligned_array(shape, numpy_type(type, type.startswith("e")))

    def stream(self) -> int:
        return 0

    def threads(self) -> int:
        return 0

    def finish(self, stream: int | None) -> None:
        pass

    def using(self, stream: int | None) -> AbstractContextManager[Any]:
        return nullcontext()


_NUMPY = NumPySpace()


class TorchSpace:
    def __init__(self, device: Any) -> None:
        self._device = device
        self.device = _name_of_torch_device(device)

    def empty(self, shape: tuple[int, ...], type: str) -> Any:
        torch = sys.modules["torch"]
        # Older versions of torch lack some types of 8 bits.
        dtype = getattr(torch, ARRAY_NAME.get(type, type), torch.uint8)
        return torch.empty(shape, dtype=dtype, device=self._device)

    def threads(self) -> int:
        """Returns torch's number of threads, which is one in the workers of a DataLoader."""
        return int(sys.modules["torch"].get_num_threads())

    def stream(self) -> int:
        if self.device == "cpu":
            return 0
        return int(sys.modules["torch"].cuda.current_stream(self._device).cuda_stream)

    def finish(self, stream: int | None) -> None:
        pass  # torch frees memory in the order of its stream.

    def using(self, stream: int | None) -> AbstractContextManager[Any]:
        """Makes the stream torch's current one. torch reuses memory in the order of the stream in
        which it was allocated. If an array of another stream were used, its memory could still be, or
        be again, that of a tensor on which another kernel works."""
        if self.device == "cpu" or stream is None or stream == self.stream():
            return nullcontext()
        cuda = sys.modules["torch"].cuda
        context: AbstractContextManager[Any] = cuda.stream(
            cuda.ExternalStream(stream, self._device) if stream else cuda.default_stream(self._device))
        return context


def _name_of_torch_device(device: Any) -> str:
    if device.type == "cpu":
        return "cpu"
    kind = "hip" if getattr(sys.modules["torch"].version, "hip", None) else device.type
    index = device.index
    return f"{kind}:{sys.modules['torch'].cuda.current_device() if index is None else index}"


def is_torch(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _items(strides: tuple[int, ...] | None, shape: tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    """Converts strides in bytes to strides in items. None stands for rows without gaps."""
    if strides is not None:
        if any(stride % item_bytes for stride in strides):
            raise ValueError(f"array: strides are {strides} bytes; must be multiples of {item_bytes}")
        return tuple(stride // item_bytes for stride in strides)
    result, step = [], 1
    for extent in reversed(shape):
        result.append(step)
        step *= extent
    return tuple(reversed(result))


def _view_torch(array: Any) -> View:
    name = str(array.dtype).removeprefix("torch.")
    return View(array.data_ptr(), tuple(array.shape), tuple(array.stride()),
                FORMAT_NAME.get(name, name), _name_of_torch_device(array.device), array)


def _view_cuda(array: Any) -> View:
    """Makes a View by Numba's CUDA Array Interface, version 3. The interface has no device
    number, so the function reads the number from the attribute `device` if the array has this
    attribute. If the interface names a stream, the array is complete only when the work in that stream
    is done, so the function waits for it. It does not wait for the stream in which the call itself is
    queued: the stream that the call names, else the default stream, whose number is 1."""
    facts = array.__cuda_array_interface__
    dtype = np.dtype(facts["typestr"])
    name = getattr(getattr(array, "dtype", dtype), "name", dtype.name)
    shape = tuple(facts["shape"])
    device = getattr(array, "device", 0)
    if not isinstance(device, str):
        device = f"cuda:{getattr(device, 'id', device)}"
    _check_byte_order(dtype)
    if facts.get("stream") not in (None, _call_stream.get() or 1):
        _bsmm.synchronize({"device": device, "stream": facts["stream"]})
    return View(facts["data"][0], shape, _items(facts.get("strides"), shape, dtype.itemsize),
                FORMAT_NAME.get(name, name), device, array)


def _check_byte_order(dtype: np.dtype[Any]) -> None:
    """Refuses elements in the byte order of another processor. The name of their type does not
    tell the byte order."""
    if not dtype.isnative:
        raise TypeError(f"array: type is {dtype}; must have the byte order of this processor")


def _view_dlpack(array: Any) -> View:
    capsule = array.__dlpack__()
    address, kind, number, code, bits, lanes, shape, strides = _bsmm.dlpack_read(capsule)
    device = _DLPACK_DEVICES.get(kind)
    if device is None or lanes != 1:
        raise TypeError(f"array: DLPack device is {kind} with {lanes} lanes; must be the CPU or a GPU with 1")
    name = DLPACK_NAME.get((code, bits), f"uint{bits}" if code == 1 else f"dlpack type {code}.{bits}")
    return View(address, shape, strides or _items(None, shape, 1), name,
                device if device == "cpu" else f"{device}:{number}", (array, capsule))


@lru_cache(maxsize=None)
def _name_of(dtype: np.dtype[Any]) -> str:
    """Returns the format's name of a NumPy type. The function caches the name, because NumPy
    takes a microsecond to make it."""
    _check_byte_order(dtype)
    return FORMAT_NAME.get(dtype.name, dtype.name)


def _view_host(array: Any) -> View:
    """Makes a View of host memory. An object without an array interface must have the buffer
    protocol, because NumPy would copy a list, and nothing would keep the copy alive."""
    if isinstance(array, np.ndarray):
        address, shape, strides = _bsmm.buffer_read(array)
        if strides is None:
            strides = _items(array.strides, shape, array.itemsize)
        return View(address, shape, strides, _name_of(array.dtype), "cpu", array)
    whole = np.asarray(array if hasattr(array, "__array_interface__") else memoryview(array))
    return View(whole.__array_interface__["data"][0], whole.shape, _items(whole.strides, whole.shape, whole.itemsize),
                _name_of(whole.dtype), "cpu", whole)


def view(array: Any) -> View:
    """Returns the View of an array of torch, of a GPU library, of NumPy, or of any object with
    DLPack, the array interface or the buffer protocol. The function copies no element."""
    if isinstance(array, np.ndarray):
        return _view_host(array)
    if is_torch(array):
        return _view_torch(array)
    if hasattr(array, "as_view"):
        seen: View = array.as_view()
        return seen
    if hasattr(array, "__cuda_array_interface__"):
        return _view_cuda(array)
    if hasattr(array, "__dlpack__"):
        return _view_dlpack(array)
    return _view_host(array)


def check_writable(seen: View, what: str) -> None:
    """Refuses a read-only array as the result of a call. Arrays of an open file and arrays over
    bytes objects are read-only."""
    if isinstance(seen.owner, np.ndarray) and not seen.owner.flags.writeable:
        raise ValueError(f"{what}: the array is read-only; must be writable")


def check_gaps(seen: View, what: str) -> None:
    """Refuses an array with gaps between its items."""
    step = 1
    for extent, stride in zip(reversed(seen.shape), reversed(seen.strides)):
        if extent > 1 and stride != step:
            raise ValueError(f"{what}: strides are {seen.strides}; the array must have no gaps")
        step *= extent


def space_of(array: Any, seen: View) -> Space:
    """Returns the Space that makes the results of calls with this array."""
    if is_torch(array):
        return TorchSpace(array.device)
    if seen.device == "cpu":
        return _NUMPY
    from ._device import DeviceSpace

    return DeviceSpace(seen.device)


def as_matrix(seen: View, what: str) -> dict[str, Any]:
    """Returns the order, rows, columns and leading dimension of the last two dimensions of an array."""
    if len(seen.shape) not in (2, 3):
        raise ValueError(f"{what}: shape is {seen.shape}; must have 2 dimensions, or 3 for a stack")
    (rows, cols), (row_step, col_step) = seen.shape[-2:], seen.strides[-2:]
    if col_step == 1 or cols <= 1:
        if row_step >= cols or rows <= 1:
            return {"order": _bsmm.ORDER_ROW, "rows": rows, "cols": cols,
                    "ld": row_step if rows > 1 else max(cols, 1)}
    if (row_step == 1 or rows <= 1) and col_step >= rows:
        return {"order": _bsmm.ORDER_COL, "rows": rows, "cols": cols, "ld": col_step}
    raise ValueError(f"{what}: strides are {seen.strides}; rows or columns must be contiguous")
