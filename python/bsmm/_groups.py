"""Defines groups, by which one plan computes many products (docs/GROUPS.md)."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _bsmm
from ._arrays import view
from ._operands import Operand, check_array, scale_step

_KINDS = {"batch": _bsmm.GROUP_BATCH, "rows": _bsmm.GROUP_ROWS, "masked": _bsmm.GROUP_MASKED,
          "k": _bsmm.GROUP_K}
# Lists for each kind the operands that are stacks. The other operands are single matrices, which
# the groups divide.
_STACKS = {"batch": "abd", "rows": "b", "masked": "abd", "k": "d"}


@dataclass(frozen=True)
class Groups:
    """Describes the G groups of a product, by their kind:

    - "batch": a (G, M, K), b (G, N, K), result (G, M, N). A 2-dimensional a or b is shared.
    - "rows": a (T, K), b (G, N, K), result (T, N). sizes[g] is the end of the rows of group g.
    - "masked": as batch; group g uses the first sizes[g] rows.
    - "k": a (M, T), b (N, T), result (G, M, N). sizes[g] is the end of the columns of group g.

    `sizes` is int32 of shape (G,). `alpha` is float32 of shape (G,). `gather` (rows, masked) is
    int32: the row of a for each row of the result; -1 is a row of zeros.
    """

    kind: str
    sizes: Any = None
    alpha: Any = None
    gather: Any = None
    align: int = 0
    expected_rows: int = 0

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"kind: value is {self.kind!r}; must be one of {', '.join(_KINDS)}")
        if (self.sizes is None) != (self.kind == "batch"):
            raise ValueError(f"sizes: must be {'None' if self.kind == 'batch' else 'given'} for {self.kind}")

    @property
    def key(self) -> tuple[Any, ...]:
        """Returns everything on which a plan depends, as a key for a cache of plans."""
        gathered = None if self.gather is None else view(self.gather).shape
        return (self.kind, self.alpha is None, gathered, self.align, self.expected_rows)

    def count(self, a: Operand, b: Operand) -> int:
        if self.sizes is not None:
            return int(view(self.sizes).shape[0])
        counts = {x.count for x in (a, b) if x.count is not None}
        if len(counts) != 1:
            raise ValueError(f"groups: a has {a.count} and b has {b.count} matrices; must be equal")
        return int(counts.pop())

    def result_shape(self, a: Operand, b: Operand, cols: int) -> tuple[int, ...]:
        rows = a.rows
        if self.gather is not None:
            rows = view(self.gather).shape[-1]
        return (self.count(a, b), rows, cols) if "d" in _STACKS[self.kind] else (rows, cols)

    def check(self, a: Operand, b: Operand) -> None:
        """Refuses shapes that would make the library read past the end of an operand."""
        count = self.count(a, b)
        for name, x in (("a", a), ("b", b)):
            stacked = name in _STACKS[self.kind] and not (name == "a" and self.gather is not None)
            shared = self.kind in ("batch", "masked") or name == "b"
            wanted = (count, None) if stacked and shared else (count,) if stacked else (None,)
            if x.count not in wanted:
                raise ValueError(f"{name}: has {x.count or 'no'} matrices; must have "
                                 f"{' or '.join(str(w or 'no') for w in wanted)} for {self.kind}")

    def describe(self, a: Operand, b: Operand, flags: int) -> dict[str, Any]:
        """Returns the bsmm_group without its memory. `flags` says which other arrays have a value
        for each group."""
        self.check(a, b)
        flags |= _bsmm.GROUP_EACH_ALPHA * (self.alpha is not None)
        flags |= _bsmm.GROUP_GATHER_A * (self.gather is not None)
        flags |= _bsmm.GROUP_EACH_A_GLOBAL * (a.count is not None and a.level is not None)
        flags |= _bsmm.GROUP_EACH_B_GLOBAL * (b.count is not None and b.level is not None)
        described = {"kind": _KINDS[self.kind], "flags": flags, "count": self.count(a, b),
                     "align": self.align, "expected_rows": self.expected_rows}
        for name, x in (("a", a), ("b", b)):
            if name in _STACKS[self.kind] and not (name == "a" and self.gather is not None):
                described[f"{name}_step"] = _bsmm.GROUP_SHARED if x.count is None else x.step
                described[f"{name}_scale_step"] = scale_step(x)
        return described

    def buffers(self, count: int, shape: tuple[int, ...], device: str) -> dict[str, Any]:
        """Returns the arrays that a run with `count` groups and a result of this shape needs. Raises
        an error if the library would read past the end of one of them."""
        wanted = {"group_sizes": (self.sizes, "int32", (count,)), "group_alpha": (self.alpha, "f32", (count,)),
                  "gather": (self.gather, "int32", shape[:-1])}
        return {name: check_array(array, name, type, extents, device).address
                for name, (array, type, extents) in wanted.items() if array is not None}
