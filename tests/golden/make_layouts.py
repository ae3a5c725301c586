# SPDX-License-Identifier: Apache-2.0
"""Writes the golden files of the scale layouts.

torchao, or torch's pad, view and permute, put a matrix of scales into each layout. The matrix's
entries are all different, so that the file shows which scale lies at each offset.

    VENV/bin/python make_layouts.py        (VENV as for make_elements.py)

Element `offset` of a file is 1 + r * cols + c if the scale of row r and column c lies at that
offset, and 0 if padding lies there.
"""
import torch
from torch.nn.functional import pad
from torchao.prototype.mx_formats.utils import from_blocked, to_blocked

from store import Manifest

# The shapes cover whole tiles, incomplete last tiles in each direction and in both, a single scale,
# and several tiles in each direction.
SHAPES = [(1, 1), (7, 3), (8, 4), (32, 8), (33, 9), (5, 20), (128, 4), (128, 16), (129, 5),
          (200, 12), (256, 8), (300, 17)]


def padded(x, rows, cols):
    """Pads a matrix with zeros below and to the right, up to multiples of rows and cols."""
    return pad(x, (0, -x.shape[1] % cols, 0, -x.shape[0] % rows))


def nv_128x4(x):
    """Returns torchao's layout. Checks that it equals the 5-D form (M/128, C/4, 32, 4, 4) of
    Triton's tutorials, and that torchao's own inverse restores the matrix."""
    blocked = to_blocked(x)
    wide = padded(x, 128, 4)
    five = wide.reshape(wide.shape[0] // 128, 4, 32, wide.shape[1] // 4, 4).permute(0, 3, 2, 1, 4)
    assert torch.equal(five.reshape(-1), blocked)
    assert torch.equal(from_blocked(blocked, *x.shape), x)
    back = five.permute(0, 3, 2, 1, 4).reshape(wide.shape)
    assert torch.equal(back, wide)
    return blocked


def nv_8x4(x):
    wide = padded(x, 8, 4)
    return wide.reshape(wide.shape[0] // 8, 8, wide.shape[1] // 4, 4).permute(0, 2, 1, 3)


def cdna4_mfma16(x):
    """Applies the rule of Triton's tutorial on block-scaled GEMM. Checks that the inverse in the
    tutorial's kernel restores the matrix."""
    wide = padded(x, 32, 8)
    m, n = wide.shape
    out = wide.view(m // 32, 2, 16, n // 8, 2, 4, 1).permute(0, 3, 5, 2, 4, 1, 6).contiguous()
    back = out.view(m // 32, n // 8, 4, 16, 2, 2, 1).permute(0, 5, 3, 1, 4, 2, 6).reshape(m, n)
    assert torch.equal(back, wide)
    return out


def cdna4_mfma32(x):
    wide = padded(x, 32, 8)
    m, n = wide.shape
    out = wide.view(m // 32, 32, n // 8, 4, 2, 1).permute(0, 2, 4, 1, 3, 5).contiguous()
    back = out.view(m // 32, n // 8, 2, 32, 4, 1).permute(0, 3, 1, 4, 2, 5).reshape(m, n)
    assert torch.equal(back, wide)
    return out


def tile_contiguous(x, tile_rows, tile_cols):
    wide = padded(x, tile_rows, tile_cols)
    m, n = wide.shape
    return wide.reshape(m // tile_rows, tile_rows, n // tile_cols, tile_cols).permute(0, 2, 1, 3)


def cublas_vec128(x):
    return padded(x, 4, 1).T


def cublas_blk128(x):
    return padded(x, 1, 4)


def row_major(x, ld):
    return pad(x, (0, ld - x.shape[1]))


def col_major(x, ld):
    return pad(x.T, (0, ld - x.shape[0]))


FIXED = {f.__name__: f for f in (nv_128x4, nv_8x4, cdna4_mfma16, cdna4_mfma32, cublas_vec128,
                                 cublas_blk128)}
TILES = [(8, 4), (128, 8), (3, 5)]


def variants(rows, cols):
    """Yields for each layout its name, its parameters, and the function that makes it with these
    parameters."""
    for name, rule in FIXED.items():
        yield name, {}, rule
    for tile in TILES:
        bound = {"tile_rows": tile[0], "tile_cols": tile[1]}
        yield "tile_contiguous", bound, lambda x: tile_contiguous(x, **bound)
    for name, rule, extent in (("row_major", row_major, cols), ("col_major", col_major, rows)):
        for ld in sorted({extent, -(-extent // 4) * 4}):
            yield name, {"ld": ld}, lambda x: rule(x, ld)


def main():
    manifest = Manifest("layouts")
    for rows, cols in SHAPES:
        x = torch.arange(1, rows * cols + 1, dtype=torch.int32).reshape(rows, cols)
        for name, bound, rule in variants(rows, cols):
            stored = rule(x).contiguous().reshape(-1)
            assert torch.equal(stored[stored > 0].sort().values, x.reshape(-1)), name
            extra = [f"{key}={value}" for key, value in bound.items()]
            case = "/".join(["layout", name, f"{rows}x{cols}", *(str(v) for v in bound.values())])
            manifest.add(case, "layout", name, ",".join([f"rows={rows}", f"cols={cols}", *extra]),
                         "torchao+torch" if name == "nv_128x4" else "torch", "-",
                         stored.numpy().astype("uint32"))
    manifest.save()


if __name__ == "__main__":
    main()
