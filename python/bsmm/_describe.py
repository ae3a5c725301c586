"""Describes a product. The arrays and options of Python become the fields of bsmm_matmul_desc."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _bsmm
from ._arrays import view
from ._groups import Groups
from ._operands import operand
from ._tables import activations, format_of, layout_number, type_name
from ._threads import default_threads

_HALVES = {"split": _bsmm.HALVES_SPLIT, "interleaved": _bsmm.HALVES_INTERLEAVED}
_COMPUTE = {"exact": _bsmm.COMPUTE_EXACT, "fast": _bsmm.COMPUTE_FAST}
_FLOATS = ("f32", "f16", "bf16")


@dataclass(frozen=True)
class Options:
    """Holds the options of a product other than its arrays. The names are those of bsmm_matmul_desc
    and bsmm_epilogue."""

    out_dtype: str = "f32"
    out_layout: str = "row_major"
    recipe: str | None = None
    alpha: float = 1.0
    beta: float = 0.0
    activation: str | None = None
    halves: str = "split"
    limit: float = 0.0
    slope: float = 0.0
    up_offset: float = 0.0
    compute: str = "exact"
    kernel: str | None = None
    threads: int = 0
    batch_invariant: bool = False
    any_rows: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "out_dtype", type_name(self.out_dtype))
        for name, known in (("halves", _HALVES), ("compute", _COMPUTE)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}: value is {getattr(self, name)!r}; must be one of {', '.join(known)}")
        if self.activation is not None and self.activation not in activations():
            raise _bsmm.NotFoundError(f"activation: value is {self.activation!r}; must be one of "
                                      f"{', '.join(activations())}")

    @property
    def is_gated(self) -> bool:
        return self.activation is not None and bool(activations()[self.activation]["is_gated"])


# Maps each optional array of a product to the types that it may have.
_ARRAYS = {"bias": _FLOATS, "c": _FLOATS, "residual": _FLOATS, "row_scale": ("f32",), "col_scale": ("f32",)}


class Product:
    """Holds a product without its memory, i.e. its options, its operands, and the shape of the
    result."""

    def __init__(self, a: Any, b: Any, *, groups: Groups | None = None, bias: Any = None, c: Any = None,
                 residual: Any = None, row_scale: Any = None, col_scale: Any = None, **options: Any) -> None:
        self.options = Options(**options)
        self.a, self.b = operand(a, "a"), operand(b, "b")
        given = {"bias": bias, "c": c, "residual": residual, "row_scale": row_scale, "col_scale": col_scale}
        self.arrays = {name: view(x)._replace(owner=None) for name, x in given.items() if x is not None}
        for name, seen in self.arrays.items():
            if seen.type not in _ARRAYS[name]:
                raise TypeError(f"{name}: type is {seen.type}; must be {' or '.join(_ARRAYS[name])}")
        self.groups_key = groups and groups.key
        self.shape = self._result_shape(groups)
        self.desc = self._describe(groups)
        self.a, self.b = self.a.without_memory(), self.b.without_memory()

    def _result_shape(self, groups: Groups | None) -> tuple[int, ...]:
        cols = self.b.rows // 2 if self.options.is_gated else self.b.rows
        if groups:
            return groups.result_shape(self.a, self.b, cols)
        for name, x in (("a", self.a), ("b", self.b)):
            if x.count is not None:
                raise ValueError(f"{name}: is a stack of {x.count} matrices; give groups, or one matrix")
        return self.a.rows, cols

    def _result_matrix(self, type: str) -> dict[str, Any]:
        rows, cols = self.shape[-2:]
        return {"rows": rows, "cols": cols, "format": format_of(type)}

    def _sum_cols(self) -> int:
        return self.b.rows

    def array_shape(self, name: str) -> tuple[int, ...]:
        """Returns the shape that the array `name` must have."""
        own = {"bias": (self._sum_cols(),), "c": (*self.shape[:-1], self._sum_cols()), "residual": self.shape,
               "row_scale": self.shape[:-1], "col_scale": self.shape[-1:]}
        each = name in ("bias", "col_scale") and len(self.arrays[name].shape) == 2 and "group" in self.desc
        return (self.desc["group"]["count"], *own[name]) if each else own[name]

    def _flags_of_arrays(self) -> int:
        each = {"bias": _bsmm.GROUP_EACH_BIAS, "col_scale": _bsmm.GROUP_EACH_COL_SCALE}
        return sum(flag for name, flag in each.items()
                   if name in self.arrays and len(self.arrays[name].shape) == 2)

    def _epilogue(self) -> dict[str, Any] | None:
        """Returns None if the caller requests no epilogue, because kernels without epilogues refuse
        even an epilogue that does nothing."""
        o = self.options
        described: dict[str, Any] = {
            "activation": activations()[o.activation]["activation"] if o.activation else 0,
            "halves": _HALVES[o.halves], "limit": o.limit, "slope": o.slope, "up_offset": o.up_offset,
            "scale_by": _bsmm.SCALE_BY_ROW * ("row_scale" in self.arrays)
            | _bsmm.SCALE_BY_COL * ("col_scale" in self.arrays)}
        if "residual" in self.arrays:
            described["residual"] = self._result_matrix(self.arrays["residual"].type)
        return described if any(described.values()) else None

    def _describe(self, groups: Groups | None) -> dict[str, Any]:
        o, packed = self.options, self.b.packed
        d = self._result_matrix(o.out_dtype)
        if format_of(o.out_dtype).is_scaled:
            d["scale_layout"] = layout_number(o.out_layout)
            d["scale_bytes"] = _bsmm.sizes_of(d)[1]
        desc = {"compute": _COMPUTE[o.compute], "a": self.a.described, "b": self.b.described, "d": d,
                "alpha": o.alpha, "beta": o.beta, "threads": o.threads or default_threads() or self.a.space.threads(),
                "recipe": o.recipe, "kernel": o.kernel, "device": self.a.device,
                "epilogue": self._epilogue(), "b_packed": packed.form_number if packed else 0,
                "b_panels": packed.panels if packed else None,
                "flags": _bsmm.MATMUL_ANY_ROWS * o.any_rows | _bsmm.MATMUL_BATCH_INVARIANT * o.batch_invariant}
        if o.beta and "c" in self.arrays:
            rows, cols = self.array_shape("c")[-2:]
            desc["c"] = {"rows": rows, "cols": cols, "format": format_of(self.arrays["c"].type)}
        if "bias" in self.arrays:
            desc["bias_elem"] = format_of(self.arrays["bias"].type).elem
        if groups:
            flags = self._flags_of_arrays()
            if format_of(o.out_dtype).has_global and len(self.shape) == 3:
                flags |= _bsmm.GROUP_EACH_D_GLOBAL
            desc["group"] = groups.describe(self.a, self.b, flags)
        return desc
