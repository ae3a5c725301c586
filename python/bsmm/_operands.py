"""Converts the operands of a product (arrays, BlockScaled matrices and packed weights) to one form."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _bsmm
from ._arrays import Space, View, check_gaps, space_of, view
from ._blockscaled import BlockScaled, described_floats


@dataclass(slots=True)
class Operand:
    """Holds a matrix or a stack of matrices. `described` has the fields of bsmm_matrix without the
    memory. `data`, `scales` and `level` are the addresses of the elements, the block scales and
    the global scales. `step` is the distance between the matrices of a stack in elements, or
    GROUP_SHARED if all groups share one matrix. `count` is None for a single matrix."""

    described: dict[str, Any]
    rows: int
    cols: int
    count: int | None
    step: int
    data: int | None
    scales: int | None
    level: int | None
    device: str
    space: Space
    owner: Any  # `owner` keeps the memory alive.
    packed: Any = None
    # `key` caches the value of the property `type`. It is None until the property is read.
    key: tuple[Any, ...] | None = None

    def without_memory(self) -> Operand:
        """Returns the operand without its memory, so that a plan keeps no array alive."""
        return replace(self, owner=None, packed=None, key=self.type)

    @property
    def type(self) -> tuple[Any, ...]:
        """Returns everything about the operand on which a plan depends."""
        if self.key is None:
            self.key = (*self.described.items(), self.count, self.step, self.level is not None, self.device,
                        self.packed and (self.packed.form, self.packed.panels))
        return self.key


def _of_scaled(x: BlockScaled) -> Operand:
    matrix, stack = x.matrix(), len(x.shape) == 3
    level = matrix.pop("global_scale", None)
    data, scales = matrix.pop("data"), matrix.pop("scales", None)
    data_bytes = matrix.pop("data_bytes")
    return Operand(matrix, x.shape[-2], x.shape[-1], x.count if stack else None, data_bytes * 8 // x.bits, data,
                   scales, level, x.device, x.space,
                   (x.elements, x.scales, x.global_scale))


def _stack_step(seen: View, what: str) -> int:
    """Returns the distance of a stack's matrices in elements. In a stack that NumPy's broadcast_to
    or torch's expand has made of one matrix, the distance is 0. The library would read a 0 as
    "without gaps", so the function returns GROUP_SHARED instead."""
    if len(seen.shape) != 3 or seen.shape[0] <= 1:
        return 0
    step = seen.strides[0]
    if step < 0:
        raise ValueError(f"{what}: strides are {seen.strides}; the matrices of a stack must follow in ascending order")
    return step or _bsmm.GROUP_SHARED


def _of_array(x: Any, what: str) -> Operand:
    seen = view(x)
    matrix = described_floats(seen, what)
    stack = len(seen.shape) == 3
    return Operand(matrix, matrix["rows"], matrix["cols"], seen.shape[0] if stack else None,
                   _stack_step(seen, what), seen.address, None, None, seen.device, space_of(x, seen), seen)


def operand(x: Any, what: str) -> Operand:
    """Returns the Operand of an array, a BlockScaled matrix or packed weights."""
    if isinstance(x, Operand):
        return x
    if isinstance(x, np.ndarray):
        return _of_array(x, what)
    if isinstance(x, BlockScaled):
        x.operand = x.operand or _of_scaled(x)
        kept: Operand = x.operand
        return kept
    if hasattr(x, "_as_operand"):
        found: Operand = x._as_operand()
        return found
    return _of_array(x, what)


def check_array(x: Any, what: str, type: str, shape: tuple[int, ...], device: str) -> View:
    """Returns the View of an array. Raises an error unless the array has the given type, shape and
    device, and no gaps."""
    seen = view(x)
    if seen.type != type:
        raise TypeError(f"{what}: type is {seen.type}; must be {type}")
    if seen.shape != shape:
        raise ValueError(f"{what}: shape is {seen.shape}; must be {shape}")
    if seen.device != device:
        raise ValueError(f"{what}: device is {seen.device}; must be {device}")
    check_gaps(seen, what)
    return seen


def scale_step(x: Operand) -> int:
    """Returns the distance between the scales of two matrices of a stack, counted in scales. 0
    means that there are no gaps. For a single matrix the result is GROUP_SHARED, because all
    groups use the same scales."""
    return _bsmm.GROUP_SHARED if x.count is None else 0
