"""Defines BlockScaled, which is a matrix or a stack of matrices of block-scaled elements."""
from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from . import _bsmm
from ._arrays import NumPySpace, Space, View, as_matrix, check_gaps, check_writable, names_stream, space_of, view
from ._tables import ARRAY_NAME, SCALE_NAME, Format, elem_row, format_of, layout_number, type_bits, type_name
from ._threads import default_threads

GLOBAL_KINDS = {"multiplier": _bsmm.GLOBAL_MULTIPLIER, "divisor": _bsmm.GLOBAL_DIVISOR}
ORDERS = {"row": _bsmm.ORDER_ROW, "col": _bsmm.ORDER_COL}


def run_on(device: str, space: Space | None, threads: int, stream: int | None) -> dict[str, Any]:
    """Returns a bsmm_exec with the device, its stream and the number of threads."""
    if stream is None:
        stream = space.stream() if space else 0
    return {"device": device, "threads": threads or default_threads() or (space.threads() if space else 0), "stream": stream or None}


class BlockScaled:
    """Holds a matrix of shape (rows, cols), or a stack of shape (count, rows, cols), in a
    block-scaled format. The memory belongs to NumPy, torch or a device, and is not copied.

    - `elements`: the codes. Formats of 8 bits have an array of the matrix's shape. Formats of 4 and
      6 bits have uint8 of shape (..., rows, bytes of a row): two codes in a byte, low nibble first,
      or four codes in three bytes.
    - `scales`: for the layouts row_major and col_major an array of shape (..., block rows, block
      columns) or its transpose; for other layouts the flat bytes in the order of the layout.
    - `global_scale`: one float32 for each matrix, or None.

    >>> import numpy as np
    >>> q = BlockScaled(np.full((2, 16), 0x22, np.uint8), np.full((2, 1), 127, np.uint8), "mxfp4")
    >>> q
    BlockScaled(mxfp4, shape (2, 32), layout row_major, cpu, 34 bytes)
    >>> q.dequantize()[0, :3]
    array([1., 1., 1.], dtype=float32)
    """

    def __init__(self, elements: Any, scales: Any, format: str | Format, *,
                 shape: tuple[int, ...] | None = None, layout: str = "row_major",
                 global_scale: Any = None, global_kind: str = "multiplier", order: str = "row") -> None:
        self.format = format_of(format) if isinstance(format, str) else format
        self.elements, self.scales, self.layout = elements, scales, layout
        self.global_kind, self.order = global_kind, order
        self._elements, self._scales = view(elements), None if scales is None else view(scales)
        self.device = self._elements.device
        self.space = space_of(elements, self._elements)
        self.shape = tuple(shape) if shape else self._logical_shape()
        self.global_scale = self._take_global(global_scale)
        self.operand: Any = None  # `operand` is made at the first product with this matrix.
        self._check()

    @property
    def bits(self) -> int:
        """Returns the number of bits of one element."""
        return int(elem_row(self.format.elem)["bits"])

    @property
    def count(self) -> int:
        """Returns the number of matrices of a stack, or 1 for a matrix."""
        return self.shape[0] if len(self.shape) == 3 else 1

    @property
    def nbytes(self) -> int:
        """Returns the number of bytes of elements, scales and global scales."""
        data, scales = _bsmm.sizes_of(self.describe())
        return self.count * (data + scales + (0 if self.global_scale is None else 4))

    def _logical_shape(self) -> tuple[int, ...]:
        shape = self._elements.shape
        return (*shape[:-1], shape[-1] * 8 // self.bits) if self.bits < 8 else shape

    def describe(self) -> dict[str, Any]:
        """Returns the fields of bsmm_matrix for one matrix of the stack, without its memory."""
        rows, cols = self.shape[-2:]
        return {"order": ORDERS[self.order], "rows": rows, "cols": cols, "format": self.format,
                "scale_layout": layout_number(self.layout), "global_kind": GLOBAL_KINDS[self.global_kind]}

    def matrix(self, index: int = 0) -> dict[str, Any]:
        """Returns the bsmm_matrix of matrix number `index` of the stack, with its memory."""
        described = self.describe()
        data, scales = _bsmm.sizes_of(described)
        described.update(data=self._elements.address + index * data, data_bytes=data)
        if self._scales is not None:
            described.update(scales=self._scales.address + index * scales, scale_bytes=scales)
        if self.global_scale is not None:
            described["global_scale"] = view(self.global_scale).address + 4 * index
        return described

    def _take_global(self, value: Any) -> Any:
        if value is None:
            return None
        array = value if is_array(value) else np.full(self.count, value, np.float32)
        seen = check_floats(array, "global_scale", self.count)
        # The library itself refuses host memory for a matrix on a GPU.
        if seen.device not in ("cpu", self.device):
            raise ValueError(f"global_scale: device is {seen.device}; must be that of the elements ({self.device})")
        return array

    def _check(self) -> None:
        if len(self.shape) not in (2, 3):
            raise ValueError(f"shape: value is {self.shape}; must have 2 dimensions, or 3 for a stack")
        data, scales = _bsmm.sizes_of(self.describe())
        for what, seen, wanted in (("elements", self._elements, data), ("scales", self._scales, scales)):
            _check_buffer(what, seen, wanted * self.count, self.device)

    def __repr__(self) -> str:
        level = "" if self.global_scale is None else ", global scale"
        return (f"BlockScaled({self.format.name}, shape {self.shape}, layout {self.layout}{level}, "
                f"{self.device}, {self.nbytes} bytes)")

    @names_stream
    def dequantize(self, dtype: Any = "f32", *, out: Any = None, threads: int = 0,
                   stream: int | None = None) -> Any:
        """Returns the values as an array of `self.shape` in f32, f16 or bf16. Each exact value is
        rounded once, to nearest even."""
        if out is None:
            with self.space.using(stream):
                out = self.space.empty(self.shape, type_name(dtype))
        _check_result(view(out), self.shape, self.device)
        exec = run_on(self.device, self.space, threads, stream)
        for index in range(self.count):
            _bsmm.dequantize(exec, self.matrix(index), plain_matrix(out, "out", index))
        self.space.finish(stream)
        return out

    @names_stream
    def relayout(self, layout: str, *, threads: int = 0, stream: int | None = None) -> BlockScaled:
        """Returns the same matrix with its scales in another layout. The two matrices share the
        elements.

        >>> import numpy as np
        >>> q = quantize(np.ones((128, 128), np.float32), "mxfp4")
        >>> q.relayout("nv_128x4")
        BlockScaled(mxfp4, shape (128, 128), layout nv_128x4, cpu, 8704 bytes)
        """
        with self.space.using(stream):
            empty = empty_like(self, layout, self.elements)
        exec = run_on(self.device, self.space, threads, stream)
        for index in range(self.count):
            _bsmm.relayout(exec, self.matrix(index), empty.matrix(index))
        self.space.finish(stream)
        return empty

    def convert(self, format: str, *, layout: str = "row_major", threads: int = 0) -> BlockScaled:
        """Returns the same values in another format. Raises RangeError if a value would be lost."""
        new = empty_scaled(self.space, self.shape, format_of(format), layout=layout,
                           global_kind=self.global_kind)
        exec = run_on(self.device, self.space, threads, None)
        for index in range(self.count):
            _bsmm.convert(exec, self.matrix(index), new.matrix(index))
        return new

    def to(self, device: str) -> BlockScaled:
        """Returns a copy on another device of this machine, such as "cpu", "cuda:0", "hip:0" or
        "sim:gfx950"."""
        if device == self.device:
            return self
        from ._device import DeviceSpace, copy_array

        space: Space = NumPySpace() if device == "cpu" else DeviceSpace(device)
        parts = [None if part is None else copy_array(part, space)
                 for part in (self.elements, self.scales, self.global_scale)]
        return BlockScaled(parts[0], parts[1], self.format, shape=self.shape, layout=self.layout,
                           global_scale=parts[2], global_kind=self.global_kind, order=self.order)


def _check_buffer(what: str, seen: Any, wanted: int, device: str) -> None:
    if seen is None:
        if wanted:
            raise ValueError(f"{what}: value is None; must have {wanted} bytes")
        return
    found = math.prod(seen.shape) * type_bits(seen.type) // 8
    if found != wanted:
        raise ValueError(f"{what}: size is {found} bytes; must be {wanted}")
    check_gaps(seen, what)
    if seen.device != device:
        raise ValueError(f"{what}: device is {seen.device}; must be that of the elements ({device})")


def _check_result(out: View, shape: tuple[int, ...], device: str) -> None:
    if out.shape != shape:
        raise ValueError(f"out: shape is {out.shape}; must be {shape}")
    if out.device != device:
        raise ValueError(f"out: device is {out.device}; must be {device}")
    check_writable(out, "out")


def is_array(value: Any) -> bool:
    """Tells whether a value is an array and not a number. NumPy's numbers have the interfaces of
    arrays."""
    interfaces = ("__array_interface__", "__dlpack__", "__cuda_array_interface__")
    return not isinstance(value, np.generic) and any(hasattr(value, name) for name in interfaces)


def check_floats(array: Any, what: str, count: int) -> View:
    """Returns the View of an array of `count` fp32 numbers without gaps."""
    seen = view(array)
    if seen.type != "f32" or math.prod(seen.shape) != count:
        raise ValueError(f"{what}: type {seen.type}, shape {seen.shape}; must be f32 with {count} value(s)")
    check_gaps(seen, what)
    return seen


def plain_matrix(array: Any, what: str, index: int = 0) -> dict[str, Any]:
    """Returns the bsmm_matrix of an array of floats. `index` chooses a matrix of a stack."""
    seen = view(array)
    offset = index * seen.strides[0] * type_bits(seen.type) // 8 if len(seen.shape) == 3 else 0
    return {**described_floats(seen, what), "data": seen.address + offset}


def described_floats(seen: View, what: str) -> dict[str, Any]:
    """Returns the bsmm_matrix of an array of floats without its memory."""
    if seen.type not in ARRAY_NAME or seen.type == "e8m0":
        raise TypeError(f"{what}: type is {seen.type}; must be one of {', '.join(n for n in ARRAY_NAME if n != 'e8m0')}")
    return {**as_matrix(seen, what), "format": format_of(seen.type)}


def _scale_shape(format: Format, shape: tuple[int, ...], layout: str, count: int) -> tuple[int, ...]:
    rows, cols = -(-shape[-2] // format.block_rows), -(-shape[-1] // format.block_cols)
    shapes = {"row_major": (rows, cols), "col_major": (cols, rows)}
    return (*shape[:-2], *shapes.get(layout, (count,)))


def empty_like(like: BlockScaled, layout: str, elements: Any) -> BlockScaled:
    """Returns a matrix like `like` with the same elements and global scale, and new scales in
    `layout`."""
    return empty_scaled(like.space, like.shape, like.format, layout=layout, elements=elements,
                        global_scale=like.global_scale, global_kind=like.global_kind, order=like.order)


def empty_scaled(space: Space, shape: tuple[int, ...], format: Format, *, layout: str = "row_major",
                 elements: Any = None, global_scale: Any = None, global_kind: str = "multiplier",
                 order: str = "row") -> BlockScaled:
    """Returns a matrix with new memory. A format that may have a global scale gets one."""
    rows, cols = shape[-2:]
    data, scales = _bsmm.sizes_of({"order": ORDERS[order], "rows": rows, "cols": cols,
                                   "format": format, "scale_layout": layout_number(layout)})
    row = elem_row(format.elem)
    outer, inner = (rows, cols) if order == "row" else (cols, rows)
    if elements is None and row["bits"] < 8:
        elements = space.empty((*shape[:-2], outer, data // outer if outer else 0), "uint8")
    elif elements is None:
        elements = space.empty((*shape[:-2], outer, inner), row["name"])
    scale_array = None
    if format.is_scaled:
        name = SCALE_NAME[format.scale]
        scale_array = space.empty(_scale_shape(format, shape, layout, scales // (4 if name == "f32" else 1)), name)
    if global_scale is None and format.has_global:
        global_scale = space.empty((shape[0] if len(shape) == 3 else 1,), "f32")
    return BlockScaled(elements, scale_array, format, shape=shape, layout=layout,
                       global_scale=global_scale, global_kind=global_kind, order=order)


@lru_cache(maxsize=None)
def global_kind_of(recipe: str | None, format: Format) -> str:
    """Returns the kind of second-level scale (multiplier or divisor) that a recipe writes. It is
    the first kind with which the recipe quantizes one block. If the recipe writes neither kind,
    the function returns a kind with which the caller's later call raises the error."""
    if not format.has_global:
        return "multiplier"
    block = np.ones((1, format.block_cols), np.float32)
    for kind in GLOBAL_KINDS:
        trial = empty_scaled(NumPySpace(), block.shape, format, global_kind=kind)
        try:
            _bsmm.quantize({"src": plain_matrix(block, "x"), "dst": trial.matrix(), "recipe": recipe}, False)
            return kind
        except _bsmm.InvalidError:
            continue
        except _bsmm.Error:
            break
    return "multiplier"


@names_stream
def quantize(x: Any, format: str = "mxfp4", *, recipe: str | None = None, layout: str = "row_major",
             global_kind: str | None = None, amax: Any = None, pow2: bool = False,
             one_level: bool = False, threads: int = 0, stream: int | None = None) -> BlockScaled:
    """Quantizes an array of shape (rows, cols), or a stack (count, rows, cols), by a named recipe.

    `x` is f32, f16 or bf16. Blocks lie along the columns, and `recipe` chooses their scales; None
    means the format's default recipe. If x is a part of a larger tensor, `amax` is the largest
    magnitude of that tensor, as one float32. Each matrix of a stack has a global scale of its own.

    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
    >>> quantize(x, "nvfp4", recipe="modelopt")
    BlockScaled(nvfp4, shape (2, 32), layout row_major, global scale, cpu, 40 bytes)
    """
    wanted = format_of(format)
    seen = view(x)
    as_matrix(seen, "x")
    space = space_of(x, seen)
    kind = global_kind or global_kind_of(recipe, wanted)
    with space.using(stream):
        new = empty_scaled(space, seen.shape, wanted, layout=layout, global_kind=kind)
    desc = {**run_on(seen.device, space, threads, stream), "recipe": recipe,
            "flags": _bsmm.QUANTIZE_POW2 * pow2 | _bsmm.QUANTIZE_ONE_LEVEL * one_level}
    if amax is not None:
        largest = check_floats(amax if is_array(amax) else np.array([amax], np.float32), "amax", 1)
        if largest.device not in ("cpu", seen.device):
            raise ValueError(f"amax: device is {largest.device}; must be that of x ({seen.device})")
        desc["amax"] = largest.address
    for index in range(new.count):
        _bsmm.quantize({**desc, "src": plain_matrix(x, "x", index), "dst": new.matrix(index)}, False)
    space.finish(stream)
    return new


def compare(x: Any, quantized: BlockScaled, *, threads: int = 0) -> dict[str, float]:
    """Compares a quantized matrix with the values x of the same shape (rows, cols). Returns
    sqnr_db, max_error, and the fractions `clipped` and `underflowed` of the elements.

    >>> import numpy as np
    >>> x = np.ones((1, 32), np.float32)
    >>> compare(x, quantize(x, "mxfp8"))["max_error"]
    0.0
    """
    seen = _matrix_view(x, "x")
    if seen.shape != quantized.shape or seen.device != quantized.device:
        raise ValueError(f"x: is {(seen.shape, seen.device)}; must be {(quantized.shape, quantized.device)}, as quantized is")
    exec = run_on(quantized.device, None, threads, None)
    return _bsmm.compare(exec, plain_matrix(x, "x"), quantized.matrix())


def _matrix_view(x: Any, what: str) -> View:
    seen = view(x)
    if len(seen.shape) != 2:
        raise ValueError(f"{what}: shape is {seen.shape}; must have 2 dimensions")
    return seen


def amax(x: Any, *, threads: int = 0) -> float:
    """Returns the largest magnitude of an f32, f16 or bf16 matrix of shape (rows, cols).

    >>> import numpy as np
    >>> amax(np.array([[1.0, -3.0]], np.float32))
    3.0
    """
    seen = _matrix_view(x, "x")
    space = space_of(x, seen)
    result = space.empty((1,), "f32")
    _bsmm.amax(run_on(seen.device, space, threads, None), plain_matrix(x, "x"), view(result).address)
    return float((result.to_numpy() if hasattr(result, "to_numpy") else result)[0])
