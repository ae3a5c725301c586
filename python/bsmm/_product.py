"""Defines Plan and matmul, which compute products."""
from __future__ import annotations

import os
from collections import OrderedDict
from typing import Any

import numpy as np

from . import _bsmm
from ._arrays import Space, View, check_writable, names_stream, view
from ._blockscaled import BlockScaled, empty_scaled
from ._describe import Product
from ._device import copy_array
from ._groups import Groups
from ._operands import Operand, check_array, operand
from ._tables import format_of
from ._threads import default_threads


class Plan:
    """Holds a validated product and the chosen kernel. `a`, `b` and the arrays only describe the
    product: each run takes arrays of the same shapes, types and device. Several threads may run one
    plan.

    >>> import numpy as np, bsmm
    >>> w = bsmm.quantize(np.ones((32, 64), np.float32), "mxfp4")
    >>> plan = bsmm.Plan(np.ones((4, 64), np.float32), w)
    >>> float(plan.run(np.full((4, 64), 2, np.float32), w)[0, 0])
    128.0
    """

    def __init__(self, a: Any, b: Any, **described: Any) -> None:
        """Makes a plan. The arguments after b are those of `matmul` without out and stream."""
        self._product = Product(a, b, **described)
        self.shape = self._product.shape
        self._plan = _bsmm.plan_create(self._product.desc)
        self.kernel, self.workspace_bytes, self.packed_b_bytes = _bsmm.plan_info(self._plan)
        self._result = format_of(self._product.options.out_dtype)
        self._result_is_array = self._result.is_array

    def __repr__(self) -> str:
        a, b = self._product.a, self._product.b
        return (f"Plan({a.rows} x {b.rows} x {a.cols}, {self._name(a)} x {self._name(b)} -> "
                f"{self._product.options.out_dtype}, kernel {self.kernel}, {a.device})")

    @staticmethod
    def _name(x: Operand) -> str:
        return _bsmm.format_name(x.described["format"])

    @names_stream
    def run(self, a: Any, b: Any, *, out: Any = None, out_global_scale: float = 1.0,
            groups: Groups | None = None, stream: int | None = None, rows: int = 0, **arrays: Any) -> Any:
        """Runs the product and returns its result, of `self.shape`. `out` receives the result if it is
        given. With any_rows, `rows` says how many rows this run has. On a GPU the work is queued in
        `stream`, or in torch's current stream."""
        a, b = operand(a, "a"), operand(b, "b")
        self._check_same(a, b, groups)
        return self._run(a, b, out, out_global_scale, groups, stream, rows, arrays)

    def _run(self, a: Operand, b: Operand, out: Any, out_global_scale: float, groups: Groups | None,
             stream: int | None, rows: int, arrays: dict[str, Any]) -> Any:
        """Runs the product with operands that match the plan, without checking them."""
        if stream is None:
            return self._queue(a, b, out, out_global_scale, groups, a.space.stream(), rows, arrays)
        with a.space.using(stream):
            return self._queue(a, b, out, out_global_scale, groups, stream, rows, arrays)

    def _queue(self, a: Operand, b: Operand, out: Any, out_global_scale: float, groups: Groups | None,
               stream: int, rows: int, arrays: dict[str, Any]) -> Any:
        if out is None:
            out = self._new_result(a.space, out_global_scale)
            buffers = _addresses(out)
        else:
            buffers = self._check_result(out, a.device)
        buffers.update({"a": a.data, "a_scales": a.scales, "a_global": a.level, "rows": rows, "stream": stream or None})
        buffers.update({"packed_b": b.data, "packed_b_bytes": b.packed.nbytes} if b.packed
                       else {"b": b.data, "b_scales": b.scales, "b_global": b.level})
        if arrays or self._product.arrays:
            buffers.update(self._array_buffers(arrays, a.device))
        if groups:
            buffers.update(groups.buffers(self._product.desc["group"]["count"], self.shape, a.device))
        is_host, workspace = a.device == "cpu", None
        if not is_host:
            workspace = a.space.empty((self.workspace_bytes,), "uint8")
            buffers.update(workspace=view(workspace).address, workspace_bytes=self.workspace_bytes)
        _bsmm.plan_run(self._plan, buffers, is_host)
        a.space.finish(stream)
        return out

    def _check_same(self, a: Operand, b: Operand, groups: Groups | None) -> None:
        for name, x, planned in (("a", a, self._product.a), ("b", b, self._product.b)):
            if x.type != planned.type:
                raise ValueError(f"{name}: is {x.type}; must be as planned, {planned.type}")
        if (groups and groups.key) != self._product.groups_key:
            raise ValueError(f"groups: are {groups and groups.key}; must be as planned, {self._product.groups_key}")
        if groups and groups.count(a, b) != self._product.desc["group"]["count"]:
            raise ValueError(f"groups: there are {groups.count(a, b)}; must be {self._product.desc['group']['count']}")

    def _new_result(self, space: Space, global_scale: float) -> Any:
        wanted = self._result
        if self._result_is_array:
            return space.empty(self.shape, self._product.options.out_dtype)
        level = None
        if wanted.has_global:
            count = self.shape[0] if len(self.shape) == 3 else 1
            level = copy_array(np.full(count, global_scale, np.float32), space)
        return empty_scaled(space, self.shape, wanted, layout=self._product.options.out_layout, global_scale=level)

    def _check_result(self, out: Any, device: str) -> dict[str, Any]:
        """Returns the buffers of the caller's result, or raises an error if the result does not
        match the plan."""
        wanted = self._product.options.out_dtype
        if not isinstance(out, BlockScaled):
            seen = check_array(out, "out", wanted, self.shape, device)
            check_writable(seen, "out")
            return {"d": seen.address}
        found = (out.format.name, out.shape, out.layout, out.device, out.order, out.global_kind)
        expected = (wanted, self.shape, self._product.options.out_layout, device, "row", "multiplier")
        if found != expected:
            raise ValueError(f"out: is {found}; must be {expected}")
        for part in (out.elements, out.scales):
            if part is not None:
                check_writable(view(part), "out")
        return _addresses(out)

    def _array_buffers(self, arrays: dict[str, Any], device: str) -> dict[str, int]:
        given = {name: x for name, x in arrays.items() if x is not None}
        if given.keys() != self._product.arrays.keys():
            raise ValueError(f"arrays: given are {sorted(given)}; must be as planned, {sorted(self._product.arrays)}")
        result = {}
        for name, x in given.items():
            planned, shape = self._product.arrays[name], self._product.array_shape(name)
            result[name] = check_array(x, name, planned.type, shape, device).address
        return result


def _addresses(out: Any) -> dict[str, Any]:
    """Returns the addresses of the memory of a result: elements, scales and second-level scale."""
    if not isinstance(out, BlockScaled):
        return {"d": view(out).address}
    made = operand(out, "out")
    return {"d": made.data, "d_scales": made.scales, "d_global": made.level}


# `_plans` holds the plans of the latest calls of matmul that differ in their description. Making
# the plan of a small product takes longer than the product itself. A plan has no memory for arrays.
_plans: OrderedDict[Any, Plan] = OrderedDict()
_MOST_PLANS = 64
os.register_at_fork(after_in_child=_plans.clear)


def _type_of(x: Any) -> Any:
    seen: View | None = None if x is None else view(x)
    return seen and (seen.type, seen.shape, seen.strides, seen.device)


def _plan_of(a: Operand, b: Operand, groups: Groups | None, arrays: dict[str, Any],
             options: dict[str, Any]) -> Plan:
    """Returns a plan of an earlier call with the same description, or a new plan."""
    threads = options.get("threads") or default_threads() or a.space.threads()
    key = (a.type, b.type, groups and (groups.key, groups.count(a, b)), threads,
           # The function repr tells -0.0 from 0.0.
           *((name, repr(value)) for name, value in options.items()),
           *((name, _type_of(x)) for name, x in arrays.items()))
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = Plan(a, b, groups=groups, **arrays, **options)
        if len(_plans) > _MOST_PLANS:
            _plans.popitem(last=False)
    return plan


@names_stream
def matmul(a: Any, b: Any, *, out: Any = None, out_global_scale: float = 1.0, stream: int | None = None,
           groups: Groups | None = None, bias: Any = None, c: Any = None, residual: Any = None,
           row_scale: Any = None, col_scale: Any = None, **options: Any) -> Any:
    """Returns row_scale * col_scale * (activation(alpha * a b^T + beta * c + bias) + residual).

    `a` has shape (M, K), `b` (N, K), and the result (M, N), or (M, N / 2) if the activation is gated.
    Each operand is an array of floats or a BlockScaled; b may be Packed. `bias` has shape (N,), `c`
    has (M, N), and `residual` has that of the result. `row_scale` has a factor for each row and
    `col_scale` one for each column of the result. `options` are the fields of `Options`: out_dtype,
    activation, alpha and so on. A scaled out_dtype gives a BlockScaled.

    >>> import numpy as np, bsmm
    >>> a = bsmm.quantize(np.ones((2, 32), np.float32), "mxfp8")
    >>> b = bsmm.quantize(np.ones((3, 32), np.float32), "mxfp4")
    >>> bsmm.matmul(a, b, bias=np.array([0, 1, -40], np.float32), activation="relu")[0]
    array([32., 33.,  0.], dtype=float32)
    """
    given = (("bias", bias), ("c", c), ("residual", residual), ("row_scale", row_scale), ("col_scale", col_scale))
    arrays = {name: x for name, x in given if x is not None}
    a, b = operand(a, "a"), operand(b, "b")
    plan = _plan_of(a, b, groups, arrays, options)
    return plan._run(a, b, out, out_global_scale, groups, stream, 0, arrays)
