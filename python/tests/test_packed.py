"""Tests packed weights, explain and sol (speed of light)."""
import bsmm
import numpy as np
import pytest


@pytest.mark.parametrize("form", sorted(bsmm.forms()))
@pytest.mark.parametrize("preset", ["mxfp4", "nvfp4", "mxfp8"])
def test_packed_weights_give_the_same_bits(form, preset, rng, tmp_path):
    x = rng.standard_normal((200, 256), np.float32)
    w = bsmm.quantize(rng.standard_normal((96, 256), np.float32), preset)
    packed = bsmm.pack(w, form, a=x)
    plan = bsmm.Plan(x, packed)
    assert np.array_equal(plan.run(x, packed), bsmm.matmul(x, w, kernel=plan.kernel))
    np.save(tmp_path / "w.npy", packed.data)
    again = np.load(tmp_path / "w.npy")
    aligned = np.empty(again.size + 64, np.uint8)
    start = -aligned.ctypes.data % 64
    aligned[start : start + again.size] = again
    read = bsmm.Packed(aligned[start : start + again.size])
    assert (read.form, read.format, read.shape) == (form, w.format, w.shape)
    assert np.array_equal(read.unpack("nv_128x4").dequantize(), w.dequantize())


def test_packed_errors(rng):
    w = bsmm.quantize(np.ones((32, 64), np.float32), "mxfp4")
    with pytest.raises(bsmm.NotFoundError, match="form: value is 'flat'"):
        bsmm.pack(w, "flat")
    with pytest.raises(bsmm.InvalidError):
        bsmm.Packed(np.zeros(256, np.uint8))


@pytest.mark.parametrize("form", sorted(bsmm.forms()))
def test_packed_experts(form, rng):
    x, w = rng.standard_normal((40, 64), np.float32), bsmm.quantize(rng.standard_normal((3, 32, 64), np.float32), "nvfp4")
    packed, groups = bsmm.pack(w, form, a=x), bsmm.Groups("rows", np.array([7, 20, 40], np.int32))
    assert packed.shape == (3, 32, 64)
    assert np.array_equal(packed.unpack().dequantize(), w.dequantize())
    expected = np.concatenate([x[i:j] @ w.dequantize()[g].T for g, (i, j) in enumerate([(0, 7), (7, 20), (20, 40)])])
    assert np.allclose(bsmm.matmul(x, packed, groups=groups), expected, rtol=1e-4, atol=1e-4)


def test_explain_lists_kernels_and_prints_a_table():
    x, w = np.ones((4, 64), np.float32), bsmm.quantize(np.ones((32, 64), np.float32), "mxfp4")
    table = bsmm.explain(x, w, out_dtype="bf16")
    assert table[-1]["kernel"] == "ref" and table[-1]["accepts"]
    taken = next(row["kernel"] for row in table if row["accepts"])
    assert bsmm.Plan(x, w, out_dtype="bf16").kernel == taken
    lines = str(table).splitlines()
    assert len(lines) == len(table) + 1
    assert next(line for line in lines if " taken " in line).split()[0] == taken
    assert all(row["reason"] for row in table if not row["accepts"])


def test_a_plain_product_has_no_epilogue():
    """Tests that a product without options has no epilogue. GPU kernels refuse a product with an
    epilogue, even if the epilogue does nothing."""
    x = np.ones((4, 64), np.float32)
    assert bsmm.Plan(x, x)._product.desc["epilogue"] is None
    assert bsmm.Plan(x, x, activation="silu")._product.desc["epilogue"]["activation"] == 1


def test_sol_counts_bytes_and_operations():
    x = np.ones((128, 256), np.float32)
    a, b = bsmm.quantize(x, "mxfp8"), bsmm.quantize(x, "mxfp4")
    found = bsmm.sol("h200", a, b, out_dtype="bf16")
    assert found["operations"] == 2 * 128 * 128 * 256
    assert found["bytes"] == a.nbytes + b.nbytes + 128 * 128 * 2
    with pytest.raises(bsmm.NotFoundError):
        bsmm.sol("h9000", a, b)
