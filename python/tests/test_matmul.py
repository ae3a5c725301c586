"""Compares matmul and Plan with NumPy in float64. The tolerance is the bound that `explain` states
for the chosen kernel, times sum |a||b|, plus half a unit of the last place for the rounding of the
result."""
import gc
import threading

import bsmm
import ml_dtypes
import numpy as np
import pytest


def bound_of(a, b, values_a, values_b, **options):
    kernel = bsmm.Plan(a, b, **options).kernel
    bound = next(row["bound"] for row in bsmm.explain(a, b, **options) if row["kernel"] == kernel)
    return bound * (np.abs(values_a) @ np.abs(values_b).T)


def check(result, exact, bound, eps=2.0**-24):
    error = np.abs(result.astype(np.float64) - exact)
    assert np.all(error <= bound + eps * (np.abs(exact) + bound)), error.max()


@pytest.mark.parametrize("formats", [("mxfp8", "mxfp4"), ("nvfp4", "nvfp4"), ("mxfp6_e2m3", "mxfp8_e5m2"),
                                     ("fp8_group128", "fp8_block128"), ("mxfp4", "nvfp4")])
@pytest.mark.parametrize("shape", [(1, 48, 256), (70, 130, 384)])
def test_all_presets(formats, shape, rng):
    m, n, k = shape
    a, b = (bsmm.quantize(rng.standard_normal((rows, k), np.float32), name) for rows, name in zip((m, n), formats))
    values = [x.dequantize().astype(np.float64) for x in (a, b)]
    check(bsmm.matmul(a, b), values[0] @ values[1].T, bound_of(a, b, *values))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_arrays_as_activations(dtype, rng):
    x = rng.standard_normal((5, 128), np.float32).astype(dtype)
    w = bsmm.quantize(rng.standard_normal((32, 128), np.float32), "mxfp4", layout="nv_128x4")
    values = x.astype(np.float64), w.dequantize().astype(np.float64)
    check(bsmm.matmul(x, w), values[0] @ values[1].T, bound_of(x, w, *values))


@pytest.mark.parametrize("out, eps", [("bf16", 2.0**-8), (np.float16, 2.0**-11), (ml_dtypes.bfloat16, 2.0**-8)])
def test_types_of_results(out, eps, rng):
    x, w = (rng.standard_normal((r, 64), np.float32) for r in (3, 16))
    y = bsmm.matmul(x, w, out_dtype=out)
    assert y.dtype == (ml_dtypes.bfloat16 if out == "bf16" else out)
    check(y, x.astype(np.float64) @ w.T.astype(np.float64), bound_of(x, w, x, w, out_dtype=out), eps)


def test_quantized_result(rng):
    x, w = (rng.standard_normal((r, 64), np.float32) for r in (4, 64))
    y = bsmm.matmul(x, w, out_dtype="mxfp8", out_layout="nv_128x4")
    plain = bsmm.matmul(x, w)
    assert y.shape == (4, 64) and y.layout == "nv_128x4"
    assert np.array_equal(y.dequantize(), bsmm.quantize(plain, "mxfp8").dequantize())


def test_temporaries_live_until_the_run_ends(rng):
    """Tests that a plan keeps no operand alive, and that a run keeps its operands alive. The
    test overwrites freed memory."""
    w = bsmm.quantize(np.ones((512, 1024), np.float32), "mxfp4")
    plan = bsmm.Plan(np.ones((256, 1024), np.float32), w)
    gc.collect()
    for _ in range(4):
        result = plan.run(np.full((256, 1024), 2, np.float32), bsmm.quantize(np.ones((512, 1024), np.float32), "mxfp4"))
        assert np.all(result == 2048)


def test_epilogue(rng):
    x, w = (rng.standard_normal((r, 64), np.float32) for r in (6, 32))
    bias, residual = rng.standard_normal(32, np.float32), rng.standard_normal((6, 32), np.float32)
    rows, cols = rng.standard_normal(6, np.float32), rng.standard_normal(32, np.float32)
    y = bsmm.matmul(x, w, bias=bias, residual=residual, row_scale=rows, col_scale=cols, activation="relu", alpha=0.5)
    exact = x.astype(np.float64) @ w.T.astype(np.float64) * 0.5 + bias
    expected = (np.maximum(exact, 0) + residual) * rows[:, None] * cols
    assert np.allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_gated_activation_halves_the_columns(rng):
    x, w = (rng.standard_normal((r, 64), np.float32) for r in (6, 32))
    y = bsmm.matmul(x, w, activation="swiglu")
    both = x @ w.T
    gate, up = both[:, :16], both[:, 16:]
    assert y.shape == (6, 16)
    assert np.allclose(y, gate / (1 + np.exp(-gate)) * up, rtol=1e-4, atol=1e-4)


def test_c_and_out(rng):
    x, w = (rng.standard_normal((r, 64), np.float32) for r in (6, 32))
    c, out = rng.standard_normal((6, 32), np.float32), np.empty((6, 32), np.float32)
    assert bsmm.matmul(x, w, c=c, beta=2, out=out) is out
    assert np.allclose(out, x @ w.T + 2 * c, rtol=1e-4, atol=1e-4)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        bsmm.matmul(x, w, out=out)


def test_any_rows_and_batch_invariant(rng):
    x, w = rng.standard_normal((8, 64), np.float32), bsmm.quantize(rng.standard_normal((32, 64), np.float32), "mxfp4")
    plan = bsmm.Plan(x, w, any_rows=True, batch_invariant=True)
    out = np.full((8, 32), -1, np.float32)
    plan.run(x, w, out=out, rows=3)
    assert np.array_equal(out[:3], bsmm.matmul(x, w, batch_invariant=True)[:3])
    assert np.all(out[3:] == -1)


def test_errors_name_the_field(rng):
    x = np.ones((4, 64), np.float32)
    with pytest.raises(bsmm.InvalidError, match=r"b.cols: value is 32; must equal a.cols \(64\)") as caught:
        bsmm.matmul(x, np.ones((4, 32), np.float32))
    assert isinstance(caught.value, ValueError) and caught.value.status == "BSMM_E_INVALID"
    with pytest.raises(bsmm.NotFoundError, match="activation"):
        bsmm.matmul(x, x, activation="tanhh")
    with pytest.raises(bsmm.Error, match="kernel"):
        bsmm.matmul(x, x, kernel="cpu_fast")
    with pytest.raises(ValueError, match="bias: shape is"):
        bsmm.matmul(x, x, bias=np.ones(5, np.float32))
    with pytest.raises(TypeError):
        bsmm.matmul(x, x, out_type="f32")
    plan = bsmm.Plan(x, x)
    with pytest.raises(ValueError, match="a: is .* must be as planned"):
        plan.run(x[:2], x)


def test_threads_share_a_plan(rng):
    x, w = rng.standard_normal((64, 256), np.float32), bsmm.quantize(rng.standard_normal((128, 256), np.float32), "nvfp4")
    plan, expected = bsmm.Plan(x, w), bsmm.matmul(x, w)
    wrong = []

    def work():
        for _ in range(20):
            if not np.array_equal(plan.run(x, w), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
