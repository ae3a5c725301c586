"""Packs weights, i.e. stores B in the order in which kernels read it (docs/PACKING.md)."""
from __future__ import annotations

import math
from typing import Any


from . import _bsmm
from ._arrays import names_stream, space_of, view
from ._blockscaled import empty_scaled, plain_matrix
from ._describe import Product
from ._groups import Groups
from ._operands import Operand, operand
from ._tables import Format


def forms() -> dict[str, dict[str, Any]]:
    """Returns the forms of packed weights, by name.

    >>> sorted(forms())
    ['compact', 'wide']
    """
    return {row["name"]: row for row in _bsmm.table("packed_form")}


class Packed:
    """Holds packed weights B of shape (N, K), or a stack (G, N, K). `data` is one array of bytes, aligned
    to 64 bytes, which the caller may write to a file. `matmul` and `Plan` take a Packed for b.

    `Packed(data)` makes a Packed from such bytes in host memory.
    """

    def __init__(self, data: Any, info: dict[str, Any] | None = None) -> None:
        self.data, self._data = data, view(data)
        self.nbytes = math.prod(self._data.shape)
        if self._data.type != "uint8" or self._data.strides != (1,):
            raise TypeError(f"data: type is {self._data.type}, strides {self._data.strides}; "
                            "must be uint8 in one dimension without gaps")
        self._info = info or _bsmm.packed_describe(self._data.address, self.nbytes)
        self.form_number: int = self._info["form"]
        self.form = next(name for name, row in forms().items() if row["form"] == self.form_number)
        self.panels: str | None = self._info["panels"] or None
        self.format = Format(**self._info["format"])
        groups, rows, cols = (self._info[name] for name in ("groups", "rows", "cols"))
        self.shape: tuple[int, ...] = (groups, rows, cols) if groups else (rows, cols)

    def __repr__(self) -> str:
        return f"Packed({self.form}, {self.format.name}, shape {self.shape}, {self._data.device}, {self.nbytes} bytes)"

    def _as_operand(self) -> Operand:
        count = self.shape[0] if len(self.shape) == 3 else None
        rows, cols = self.shape[-2:]
        described = {"rows": rows, "cols": cols, "format": self.format,
                     "global_kind": self._info["global_kind"]}
        return Operand(described, rows, cols, count, 0, self._data.address, None, None, self._data.device,
                       space_of(self.data, self._data), self, self)

    def unpack(self, layout: str = "row_major") -> Any:
        """Returns the weights as a BlockScaled, or as an array of floats. The packed weights
        must be in host memory."""
        space = space_of(self.data, self._data)
        scaled = not self.format.is_array
        new = (empty_scaled(space, self.shape, self.format, layout=layout, global_kind=_kind_name(self._info))
               if scaled else space.empty(self.shape, self.format.name))
        for index in range(self.shape[0] if len(self.shape) == 3 else 1):
            matrix = new.matrix(index) if scaled else plain_matrix(new, "b", index)
            _bsmm.unpack_b(self._data.address, self.nbytes, index, matrix)
        return new


def _kind_name(info: dict[str, Any]) -> str:
    return "divisor" if info["global_kind"] == _bsmm.GLOBAL_DIVISOR else "multiplier"


@names_stream
def pack(b: Any, form: str = "compact", *, a: Any = None, stream: int | None = None, threads: int = 0) -> Packed:
    """Packs weights of shape (N, K) or a stack (G, N, K): an array or a BlockScaled. The panels of
    the form "wide" also depend on the activations' format; `a` is an example of them; None means
    f32 of shape (1, K).

    >>> import numpy as np
    >>> from bsmm import matmul, pack, quantize
    >>> w = quantize(np.ones((64, 128), np.float32), "mxfp4")
    >>> packed = pack(w)
    >>> packed.form, packed.shape
    ('compact', (64, 128))
    >>> float(matmul(np.ones((1, 128), np.float32), packed)[0, 0])
    128.0
    """
    known = forms()
    if form not in known:
        raise _bsmm.NotFoundError(f"form: value is {form!r}; must be one of {', '.join(known)}")
    whole = operand(b, "b")
    if whole.step == _bsmm.GROUP_SHARED:
        raise ValueError("b: all matrices of the stack are the same memory; pack one of them")
    rows = whole.space.empty((1, whole.cols), "f32") if a is None else a
    groups = None if whole.count is None else Groups("batch")
    product = Product(rows, whole, groups=groups, threads=threads)
    plan = _bsmm.plan_create({**product.desc, "b_packed": known[form]["form"]})
    info = _bsmm.plan_packed_info(plan)
    with whole.space.using(stream):
        data = whole.space.empty((info["bytes"],), "uint8")
    stream = whole.space.stream() if stream is None else stream
    buffers = {"b": whole.data, "b_scales": whole.scales, "b_global": whole.level, "stream": stream or None}
    _bsmm.plan_pack(plan, buffers, view(data).address, info["bytes"])
    whole.space.finish(stream)
    return Packed(data, info)
