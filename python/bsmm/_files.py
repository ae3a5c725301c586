"""Opens model files, i.e. safetensors (one file, or a model of several files), GGUF and .npy."""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from . import _bsmm
from ._arrays import NumPySpace, numpy_type
from ._blockscaled import GLOBAL_KINDS, BlockScaled, empty_scaled, plain_matrix
from ._tables import SCALE_NAME, Format, elem_row, layout_name, type_bits


class _Mapped:
    """Gives the bytes of an open file by the array interface, and keeps the file open."""

    def __init__(self, file: Any, address: int, count: int) -> None:
        self._file = file
        self.__array_interface__ = {"data": (address, True), "shape": (count,), "typestr": "|u1", "version": 3}


def _mapped(file: Any, address: int, count: int, type: str, shape: tuple[int, ...]) -> np.ndarray:
    """Returns a read-only array in the file's mapping, without a copy."""
    if count == 0:
        return np.empty(shape, numpy_type(type, may_be_codes=True))
    return np.asarray(_Mapped(file, address, count)).view(numpy_type(type, may_be_codes=True)).reshape(shape)


class File(Mapping[str, Any]):
    """Maps names to the weights of an open file. If the format of a weight has no scales and has
    elements of whole bytes, the weight is an array of shape (..., rows, cols). Otherwise it is a
    BlockScaled. An array lies in the file's mapping if the file stores it as the library does
    (`weight` says mapped: 1). Otherwise it is a copy.

    - `kind`: "safetensors", "gguf" or "npy".
    - `metadata`: the values of the file's metadata by key.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = _bsmm.file_open(path)
        self.kind, self._tensors, self._count = _bsmm.file_info(self._file)
        self.path = os.fspath(path)

    def __repr__(self) -> str:
        return f"File({self.path!r}, {self.kind}, {self._count} weights)"

    def __iter__(self) -> Iterator[str]:
        return iter(_bsmm.file_names(self._file))

    def __len__(self) -> int:
        return int(self._count)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and _bsmm.file_find(self._file, name) >= 0
        except _bsmm.NotFoundError:
            return False

    def __getitem__(self, name: str) -> Any:
        """Returns the weight with this name, in which ".weight" at the end may be left out. Raises
        NotFoundError (also a LookupError) if there is none, and FormatError if the weight cannot be
        read safely."""
        index = _bsmm.file_find(self._file, name)
        weight = _bsmm.file_weight(self._file, index)
        matrix = _bsmm.weight_matrix(self._file, index, 0)
        is_mapped = weight["mapped"] and weight["batch"] == 1 and matrix["order"] == _bsmm.ORDER_ROW
        return self._map(matrix) if is_mapped else self._unpack(index, weight, matrix)

    def weight(self, name: str) -> dict[str, Any]:
        """Returns the properties of a weight, i.e. family, dtype, format, batch, rows, cols and
        mapped."""
        return _bsmm.file_weight(self._file, _bsmm.file_find(self._file, name))

    @property
    def tensors(self) -> list[dict[str, Any]]:
        """Lists the name, dtype, shape and bytes of each stored tensor, in the file's order."""
        found = [_bsmm.file_tensor(self._file, index) for index in range(self._tensors)]
        return [{"name": t["name"], "dtype": t["dtype"], "shape": tuple(t["shape"][: t["ndim"]]),
                 "bytes": t["bytes"]} for t in found]

    @property
    def metadata(self) -> dict[str, Any]:
        return {key: _bsmm.file_value(self._file, key) for key in _bsmm.file_keys(self._file)}

    def _map(self, matrix: dict[str, Any]) -> Any:
        format, (rows, cols) = Format(**matrix["format"]), (matrix["rows"], matrix["cols"])
        data, scales = _bsmm.sizes_of(_description(matrix))
        row = elem_row(format.elem)
        shape = (rows, cols) if row["bits"] >= 8 else (rows, data // rows if rows else 0)
        elements = _mapped(self._file, matrix["data"], data, row["name"] if row["bits"] >= 8 else "uint8", shape)
        if format.is_array:
            return elements
        if not format.is_scaled:
            return BlockScaled(elements, None, format, shape=(rows, cols))
        name, layout = SCALE_NAME[format.scale], layout_name(matrix["scale_layout"])
        blocks = (-(-rows // format.block_rows), -(-cols // format.block_cols))
        scale_shape = blocks if layout == "row_major" else (scales * 8 // type_bits(name),)
        level = matrix["global_scale"]
        return BlockScaled(elements, _mapped(self._file, matrix["scales"], scales, name, scale_shape), format,
                           shape=(rows, cols), layout=layout, global_kind=_kind_of(matrix),
                           global_scale=None if level is None else _mapped(self._file, level, 4, "f32", (1,)))

    def _unpack(self, index: int, weight: dict[str, Any], matrix: dict[str, Any]) -> Any:
        format, batch = Format(**matrix["format"]), weight["batch"]
        order = "row" if matrix["order"] == _bsmm.ORDER_ROW else "col"
        shape = (matrix["rows"], matrix["cols"]) if batch == 1 else (batch, matrix["rows"], matrix["cols"])
        if format.is_array:
            return self._unpack_plain(index, shape, format, order)
        new = empty_scaled(NumPySpace(), shape, format, layout=layout_name(matrix["scale_layout"]),
                           global_kind=_kind_of(matrix), order=order)
        for item in range(batch):
            _bsmm.weight_unpack(self._file, index, item, new.matrix(item))
            if new.global_scale is not None:
                new.global_scale[item] = _level_of(_bsmm.weight_matrix(self._file, index, item))
        return new

    def _unpack_plain(self, index: int, shape: tuple[int, ...], format: Format, order: str) -> np.ndarray:
        stored = shape if order == "row" else (*shape[:-2], shape[-1], shape[-2])
        new = NumPySpace().empty(stored, format.name)
        new = new if order == "row" else new.swapaxes(-1, -2)
        for item in range(shape[0] if len(shape) == 3 else 1):
            _bsmm.weight_unpack(self._file, index, item, plain_matrix(new, "weight", item))
        return new


def _description(matrix: dict[str, Any]) -> dict[str, Any]:
    memory = ("data", "scales", "global_scale")
    return {name: value for name, value in matrix.items() if name not in memory}


def _kind_of(matrix: dict[str, Any]) -> str:
    return next(name for name, kind in GLOBAL_KINDS.items() if kind == matrix["global_kind"])


def _level_of(matrix: dict[str, Any]) -> float:
    """Returns the global scale of a matrix, or 1 if the file stores none."""
    if matrix["global_scale"] is None:
        return 1.0
    return float(np.asarray(_Mapped(None, matrix["global_scale"], 4)).view(np.float32)[0])


def open(path: str | os.PathLike[str]) -> File:
    """Opens FILE.safetensors, model.safetensors.index.json, FILE.gguf, a folder with one of them, or
    FILE.npy. If a GGUF model has several files, FILE.gguf is the first of them. No process may truncate
    the file while arrays of it are in use.

    >>> import numpy as np, tempfile
    >>> path = tempfile.mkdtemp() + "/x.npy"
    >>> np.save(path, np.eye(3, dtype=np.float32))
    >>> import bsmm
    >>> file = bsmm.open(path)
    >>> file.kind, [file[name].shape for name in file]
    ('npy', [(3, 3)])
    """
    return File(path)
