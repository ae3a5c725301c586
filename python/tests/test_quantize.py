"""Compares quantize, dequantize, relayout and convert with ml_dtypes and NumPy."""
import bsmm
import ml_dtypes
import numpy as np
import pytest

PRESETS = sorted(bsmm.formats())
SUB_BYTE = {"e2m1": ml_dtypes.float4_e2m1fn, "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn}


def unpack(q):
    """Returns the values of the elements by ml_dtypes and NumPy alone. The first of two 4-bit codes
    is in the low nibble. Four 6-bit codes have three bytes, least significant bit first."""
    codes = np.asarray(q.elements)
    if q.bits == 8:
        return codes.astype(np.float64)
    rows, cols = q.shape
    bits = np.unpackbits(codes.view(np.uint8), axis=1, bitorder="little")[:, : cols * q.bits]
    whole = np.zeros((rows, cols, 8), np.uint8)
    whole[:, :, : q.bits] = bits.reshape(rows, cols, q.bits)
    name = bsmm.formats()[q.format.name]["format"]["elem"]
    elem = {8: "e3m2", 9: "e2m3", 10: "e2m1"}[name]
    return np.packbits(whole, axis=2, bitorder="little")[:, :, 0].view(SUB_BYTE[elem]).astype(np.float64)


def expand_scales(q):
    scales = np.asarray(q.scales).astype(np.float64)
    scales = scales.repeat(q.format.block_rows, axis=0).repeat(q.format.block_cols, axis=1)
    level = 1.0 if q.global_scale is None else float(q.global_scale[0])
    return scales[: q.shape[0], : q.shape[1]] * level


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("shape", [(1, 32), (130, 260), (7, 129)])
def test_dequantize_is_elements_times_scales(preset, shape, rng):
    x = rng.standard_normal(shape, np.float32)
    q = bsmm.quantize(x, preset)
    if q.bits < 8 and shape[1] % (2 if q.bits == 4 else 4):
        packed_cols = q.elements.shape[1] * 8 // q.bits
        assert packed_cols > shape[1]  # The last byte of each row is padded.
    expected = (unpack(q) * expand_scales(q)).astype(np.float32)
    assert np.array_equal(q.dequantize(), expected)
    assert bsmm.compare(x, q)["sqnr_db"] > 12


def test_cast_rounds_like_ml_dtypes(rng):
    x = rng.standard_normal((33, 65), np.float32) * 20
    for name, dtype in (("bf16", ml_dtypes.bfloat16), ("e4m3", ml_dtypes.float8_e4m3fn), ("e5m2", ml_dtypes.float8_e5m2)):
        q = bsmm.quantize(x, name)
        assert q.elements.dtype == dtype
        assert np.array_equal(q.elements, x.astype(dtype))


def test_sources_of_all_float_types(rng):
    x = rng.standard_normal((64, 64), np.float32).astype(ml_dtypes.bfloat16)
    wide = bsmm.quantize(x.astype(np.float32), "mxfp8")
    assert np.array_equal(bsmm.quantize(x, "mxfp8").elements, wide.elements)
    assert bsmm.quantize(x, "mxfp8").dequantize("bf16").dtype == ml_dtypes.bfloat16


def test_column_order_and_strides_are_read_in_place(rng):
    x = rng.standard_normal((64, 96), np.float32)
    expected = bsmm.quantize(x, "mxfp4").elements
    assert np.array_equal(bsmm.quantize(np.asfortranarray(x), "mxfp4").elements, expected)
    wide = np.zeros((64, 200), np.float32)
    wide[:, :96] = x
    assert np.array_equal(bsmm.quantize(wide[:, :96], "mxfp4").elements, expected)
    with pytest.raises(ValueError, match="rows or columns must be contiguous"):
        bsmm.quantize(wide[:, ::2], "mxfp4")


@pytest.mark.parametrize("layout", [name for name, row in bsmm.layouts().items()
                                    if row["tile_rows"] or name in ("row_major", "col_major")])
def test_relayout_and_back_keeps_values(layout, rng):
    q = bsmm.quantize(rng.standard_normal((130, 320), np.float32), "mxfp4")
    there = q.relayout(layout)
    assert there.layout == layout and there.elements is q.elements
    assert np.array_equal(there.dequantize(), q.dequantize())
    assert np.array_equal(there.relayout("row_major").scales.view(np.uint8), q.scales.view(np.uint8))


def test_global_scales(rng):
    x = rng.standard_normal((3, 32, 64), np.float32) * np.array([1, 10, 100], np.float32)[:, None, None]
    q = bsmm.quantize(x, "nvfp4", recipe="modelopt")
    assert q.shape == x.shape and q.global_scale.shape == (3,)
    assert np.array_equal(q.global_scale, np.abs(x).max(axis=(1, 2)) / np.float32(2688))
    one = bsmm.quantize(x[1], "nvfp4", recipe="modelopt")
    assert np.array_equal(q.dequantize()[1], one.dequantize())
    assert bsmm.quantize(x[0], "nvfp4", recipe="compressed-tensors").global_kind == "divisor"


def test_options_and_lossless_conversion(rng):
    x = rng.standard_normal((128, 256), np.float32)
    scales = bsmm.quantize(x, "fp8_block128", pow2=True).scales
    assert np.array_equal(np.log2(scales) % 1, np.zeros_like(scales))
    parts = [bsmm.quantize(half, "nvfp4", amax=bsmm.amax(x)) for half in (x[:64], x[64:])]
    whole = bsmm.quantize(x, "nvfp4")
    assert np.array_equal(np.concatenate([p.elements for p in parts]), whole.elements)
    q = bsmm.quantize(x, "mxfp4")
    assert np.array_equal(q.convert("nvfp4").dequantize(), q.dequantize())
    assert bsmm.amax(x) == np.abs(x).max()


def test_repr_tells_and_wrong_buffers_are_refused():
    q = bsmm.quantize(np.ones((4, 64), np.float32), "mxfp4")
    assert repr(q) == "BlockScaled(mxfp4, shape (4, 64), layout row_major, cpu, 136 bytes)"
    with pytest.raises(ValueError, match="elements: size is 64 bytes; must be 128"):
        bsmm.BlockScaled(q.elements[:2], q.scales, "mxfp4", shape=(4, 64))
    with pytest.raises(ValueError, match="scales: value is None; must have 8 bytes"):
        bsmm.BlockScaled(q.elements, None, "mxfp4")
    with pytest.raises(ValueError, match="global_scale: type f32, shape \\(2,\\)"):
        bsmm.BlockScaled(q.elements, q.scales, "mxfp4", global_scale=np.ones(2, np.float32))
    with pytest.raises(TypeError):
        bsmm.quantize([[1.0, 2.0]], "mxfp4")
