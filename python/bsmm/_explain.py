"""Defines `explain`, which tells which kernels accept a product, and `sol`, which tells a product's
speed of light."""
from __future__ import annotations

from typing import Any

from . import _bsmm
from ._describe import Product
from ._operands import operand


class Explanation(list[dict[str, Any]]):
    """Lists the kernels of a device in the order in which the library tries them. Each entry has
    the fields kernel, accepts, reason, bound, packed_b_bytes and k_parts (bsmm_explanation in
    bsmm.h). The list prints as a table."""

    def __str__(self) -> str:
        taken = next((row["kernel"] for row in self if row["accepts"]), None)
        cells = [("kernel", "accepts", "bound", "reason")]
        for row in self:
            accepts = "taken" if row["kernel"] == taken else "yes" if row["accepts"] else "no"
            bound = f"{row['bound']:.2g}" if row["accepts"] else "-"
            cells.append((row["kernel"], accepts, bound, row["reason"] or "-"))
        widths = [max(len(row[i]) for row in cells) for i in range(3)]
        return "\n".join("  ".join((*(cell.ljust(w) for cell, w in zip(row, widths)), row[3])) for row in cells)

    __repr__ = __str__


def explain(a: Any, b: Any, **described: Any) -> Explanation:
    """Returns a list of kernels that says which of them accept a product, and why the others
    refuse. The arguments are those of `Plan`. The function does not read the memory of the arrays.

    >>> import numpy as np, bsmm
    >>> table = bsmm.explain(np.ones((4, 64), np.float32), np.ones((32, 64), np.float32), kernel="ref")
    >>> print(str(table).splitlines()[0].split())
    ['kernel', 'accepts', 'bound', 'reason']
    """
    kind = operand(a, "a").device.partition(":")[0]
    # A simulator runs the kernels of the GPU that it simulates.
    kinds = {"cuda", "hip"} if kind == "sim" else {kind}
    rows = _bsmm.explain(Product(a, b, **described).desc)
    return Explanation([row for row in rows if row["device"] in kinds])


def sol(device: str, a: Any, b: Any, **described: Any) -> dict[str, Any]:
    """Returns the least time that a product can take on a known device: seconds, compute_seconds,
    memory_seconds, operations, bytes, unit and limit. The arguments after `device` are those of
    `Plan`.

    >>> import numpy as np, bsmm
    >>> w = bsmm.quantize(np.ones((64, 64), np.float32), "mxfp8")
    >>> bsmm.sol("h200", w, w)["limit"]
    'memory'
    """
    return _bsmm.estimate_sol(device, Product(a, b, **described).desc)
