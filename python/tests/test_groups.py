"""Compares products with groups with one product for each group."""
import bsmm
import numpy as np
import pytest


@pytest.fixture
def experts(rng):
    return bsmm.quantize(rng.standard_normal((3, 32, 64), np.float32), "nvfp4")


def one(experts, index):
    whole = experts.dequantize()
    return whole[index]


def test_batch_with_a_shared_operand(rng, experts):
    a = rng.standard_normal((5, 64), np.float32)
    y = bsmm.matmul(a, experts, groups=bsmm.Groups("batch"))
    assert y.shape == (3, 5, 32)
    assert np.allclose(y, np.stack([a @ one(experts, g).T for g in range(3)]), rtol=1e-4, atol=1e-4)


def test_rows_with_alpha_bias_and_gather(rng, experts):
    x, sizes = rng.standard_normal((7, 64), np.float32), np.array([4, 4, 9], np.int32)
    gather = np.array([0, 6, 2, -1, 1, 3, 3, 5, 4], np.int32)
    alpha, bias = np.array([1, 2, -1], np.float32), rng.standard_normal((3, 32), np.float32)
    y = bsmm.matmul(x, experts, groups=bsmm.Groups("rows", sizes, alpha=alpha, gather=gather), bias=bias)
    rows = np.vstack([x, np.zeros((1, 64), np.float32)])[gather]
    expected = [alpha[g] * rows[r] @ one(experts, g).T + bias[g] for r in range(9) for g in [0 if r < 4 else 2]]
    assert np.allclose(y, np.array(expected), rtol=1e-4, atol=1e-4)


def test_masked_leaves_other_rows(rng, experts):
    x, sizes = rng.standard_normal((3, 6, 64), np.float32), np.array([6, 0, 2], np.int32)
    out = np.full((3, 6, 32), -7, np.float32)
    bsmm.matmul(x, experts, groups=bsmm.Groups("masked", sizes), out=out)
    assert np.allclose(out[2, :2], x[2, :2] @ one(experts, 2).T, rtol=1e-4, atol=1e-4)
    assert np.all(out[1] == -7) and np.all(out[2, 2:] == -7)


def test_k(rng):
    a, b = rng.standard_normal((5, 96), np.float32), rng.standard_normal((8, 96), np.float32)
    y = bsmm.matmul(a, b, groups=bsmm.Groups("k", np.array([32, 96], np.int32)))
    assert np.allclose(y, np.stack([a[:, :32] @ b[:, :32].T, a[:, 32:] @ b[:, 32:].T]), rtol=1e-4, atol=1e-4)


def test_wrong_groups_are_refused(rng, experts):
    x = np.ones((4, 64), np.float32)
    with pytest.raises(ValueError, match="stack of 3"):
        bsmm.matmul(x, experts)
    with pytest.raises(ValueError, match="kind: value is 'row'"):
        bsmm.Groups("row", np.array([4], np.int32))
    with pytest.raises(ValueError, match="must have 2"):
        bsmm.matmul(x, experts, groups=bsmm.Groups("rows", np.array([2, 4], np.int32)))
    with pytest.raises(TypeError, match="group_sizes: type is int64"):
        bsmm.matmul(x, experts, groups=bsmm.Groups("rows", np.array([2, 3, 4])))
