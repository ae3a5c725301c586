"""Returns the library's tables of formats, layouts, recipes and devices, and the names of types."""
from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from . import _bsmm


class Format(NamedTuple):
    """Describes a format like bsmm_format, by its element format, its scale format and the shape of
    a block."""

    elem: int
    scale: int
    block_rows: int
    block_cols: int

    @property
    def name(self) -> str:
        """Returns the name of the preset or element format, such as "mxfp4", or "custom" if there is
        none."""
        return _bsmm.format_name(self)

    @property
    def is_array(self) -> bool:
        """Tells whether matrices of this format are plain arrays, i.e. have no scales and elements
        of whole bytes."""
        return not self.is_scaled and elem_row(self.elem)["bits"] >= 8

    @property
    def is_scaled(self) -> bool:
        return self.scale != _bsmm.SCALE_NONE

    @property
    def has_global(self) -> bool:
        """Tells whether matrices of this format may have a second-level scale."""
        return self.scale == _bsmm.SCALE_E4M3


@lru_cache(maxsize=None)
def format_of(name: str) -> Format:
    return Format(**_bsmm.format_from_name(name))


@lru_cache(maxsize=None)
def layout_number(name: str) -> int:
    return _bsmm.layout_from_name(name)


@lru_cache(maxsize=None)
def layout_name(number: int) -> str:
    return str(next(row["name"] for row in _bsmm.table("layout") if row["layout"] == number))


@lru_cache(maxsize=None)
def elements() -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in _bsmm.table("elem")}


@lru_cache(maxsize=None)
def elem_row(number: int) -> dict[str, Any]:
    return next(row for row in elements().values() if row["elem"] == number)


def _named(table: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in _bsmm.table(table)}


def formats() -> dict[str, dict[str, Any]]:
    """Returns the presets by name: format, block, bits per weight, default recipe, users.

    >>> formats()["mxfp4"]["bits_per_weight"]
    4.25
    """
    return _named("preset")


def layouts() -> dict[str, dict[str, Any]]:
    """Returns the scale layouts by name.

    >>> layouts()["nv_128x4"]["tile_rows"]
    128
    """
    return _named("layout")


def recipes() -> list[dict[str, Any]]:
    """Returns the recipes. Rows for different formats may have the same name.

    >>> "modelopt" in {row["name"] for row in recipes()}
    True
    """
    return _bsmm.table("recipe")


def activations() -> dict[str, dict[str, Any]]:
    """Returns the activations by name.

    >>> activations()["silu"]["is_gated"]
    0
    """
    return _named("activation")


def known_devices() -> dict[str, dict[str, Any]]:
    """Returns the devices whose peak rates `sol` knows, by name."""
    return _named("device")


def devices() -> dict[str, dict[str, Any]]:
    """Returns the devices of this machine by name.

    >>> "cpu" in devices()
    True
    """
    return _named("local_device")


def families() -> dict[str, dict[str, Any]]:
    """Returns the checkpoint families that `open` recognizes, by name."""
    return _named("family")


# Maps the element formats of whole bytes to the names that NumPy (with ml_dtypes) and torch give
# them, and to DLPack's type codes (DLPack 1.1, DLDataTypeCode).
ARRAY_TYPES = {
    "f32": ("float32", 2), "f16": ("float16", 2), "bf16": ("bfloat16", 4),
    "e4m3": ("float8_e4m3fn", 10), "e4m3fnuz": ("float8_e4m3fnuz", 11),
    "e5m2": ("float8_e5m2", 12), "e5m2fnuz": ("float8_e5m2fnuz", 13),
    "e8m0": ("float8_e8m0fnu", 14),
}
ARRAY_NAME = {name: array for name, (array, _) in ARRAY_TYPES.items()}
FORMAT_NAME = {array: name for name, array in ARRAY_NAME.items()}
DLPACK_NAME = {(code, elements()[name]["bits"]): name for name, (_, code) in ARRAY_TYPES.items()}
SCALE_NAME = {_bsmm.SCALE_E8M0: "e8m0", _bsmm.SCALE_E4M3: "e4m3", _bsmm.SCALE_F32: "f32"}


def type_name(dtype: Any) -> str:
    """Returns the name of a format that the user gave as a text ("bf16", "mxfp8") or as a type of
    NumPy, ml_dtypes or torch.

    >>> import numpy as np
    >>> type_name(np.float32), type_name("bfloat16"), type_name("nvfp4")
    ('f32', 'bf16', 'nvfp4')
    """
    import numpy as np

    if not isinstance(dtype, str):
        text = str(dtype)
        dtype = text.removeprefix("torch.") if text.startswith("torch.") else np.dtype(dtype).name
    return FORMAT_NAME.get(str(dtype), str(dtype))


def type_bits(name: str) -> int:
    """Returns the number of bits of an item of an array type, which is an element format or a type
    of NumPy."""
    import numpy as np

    return int(elements()[name]["bits"]) if name in ARRAY_TYPES else int(np.dtype(name).itemsize) * 8
