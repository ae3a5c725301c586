"""Compares bsmm with torchao on the CPU: the bytes of quantized tensors, their values, and products.
tools/test-python-torch.sh runs this file."""
import bsmm
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchao")
import bsmm.torch  # noqa: E402
from torchao.prototype.mx_formats.config import ScaleCalculationMode  # noqa: E402
from torchao.prototype.mx_formats.mx_tensor import MXTensor, to_mx  # noqa: E402
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale  # noqa: E402
from torchao.prototype.mx_formats.utils import to_blocked  # noqa: E402

MX = {"mxfp8": torch.float8_e4m3fn, "mxfp8_e5m2": torch.float8_e5m2, "mxfp4": torch.float4_e2m1fn_x2}
# These recipes are torchao's modes.
MODES = {"ocp": "FLOOR", "rceil": "RCEIL", "ceil": "CEIL", "even": "EVEN", "torchao": "FLOOR"}
DTYPES = [torch.float32, torch.bfloat16]


def values(rows=48, cols=256, dtype=torch.float32, seed=7):
    """Returns normal values whose blocks have magnitudes from 2^-20 to 2^20."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, cols // 32, 32)) * 2.0 ** rng.integers(-20, 21, (rows, cols // 32, 1))
    return torch.from_numpy(x.reshape(rows, cols).astype(np.float32)).to(dtype)


def bytes_of(x):
    return x.contiguous().view(torch.uint8).reshape(-1)


def to_nvfp4(x, levels):
    return NVFP4Tensor.to_nvfp4(x, per_tensor_scale=per_tensor_amax_to_scale(x.abs().max()) if levels == 2 else None)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("recipe", MODES)
@pytest.mark.parametrize("preset", MX)
def test_mx_tensors_have_the_same_bytes(preset, recipe, dtype):
    x = values(dtype=dtype)
    scale, data = to_mx(x, MX[preset], 32, ScaleCalculationMode[MODES[recipe]])
    ours = bsmm.quantize(x, preset, recipe=recipe)
    assert torch.equal(bytes_of(ours.scales), bytes_of(scale))
    assert torch.equal(bytes_of(ours.elements), bytes_of(data))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("levels", [1, 2])
def test_nvfp4_tensors_have_the_same_bytes(levels, dtype):
    x = values(dtype=dtype)
    theirs = to_nvfp4(x, levels)
    ours = bsmm.quantize(x, "nvfp4", recipe="torchao", one_level=levels == 1)
    assert torch.equal(bytes_of(ours.scales), bytes_of(theirs.scale))
    assert torch.equal(bytes_of(ours.elements), bytes_of(theirs.qdata))
    level = float(ours.global_scale[0]) if levels == 2 else 1.0
    assert level == (float(theirs.per_tensor_scale) if levels == 2 else 1.0)


@pytest.mark.parametrize("shape", [(128, 128), (48, 256), (130, 320)])
def test_scales_are_in_the_blocked_layout(shape):
    ours = bsmm.quantize(values(*shape), "mxfp8", recipe="torchao")
    blocked = to_blocked(ours.scales.view(torch.uint8).reshape(shape[0], -1))
    assert torch.equal(bytes_of(ours.relayout("nv_128x4").scales), bytes_of(blocked))


@pytest.mark.parametrize("preset", MX)
def test_mx_tensors_are_read_in_place(preset):
    x = values()
    theirs = MXTensor.to_mx(x, MX[preset])
    ours = bsmm.BlockScaled(theirs.qdata, theirs.scale, preset, shape=x.shape)
    assert ours.elements.data_ptr() == theirs.qdata.data_ptr()
    assert torch.equal(ours.dequantize(), theirs.dequantize(torch.float32))


def test_nvfp4_tensors_are_read_in_place():
    theirs = to_nvfp4(values(), 2)
    ours = bsmm.BlockScaled(theirs.qdata, theirs.scale, "nvfp4", shape=(48, 256),
                            global_scale=theirs.per_tensor_scale.reshape(1))
    # torchao rounds the product of the two scales to f32 first, and bsmm rounds only the result.
    assert torch.allclose(ours.dequantize(), theirs.dequantize(torch.float32), rtol=2**-23, atol=0)


@pytest.mark.parametrize("activations", [*MX, "bf16"])
@pytest.mark.parametrize("weights", [*MX, "nvfp4"])
def test_products_are_those_of_torchaos_values(weights, activations):
    """Tests that bsmm's product of torchao's tensors lies within the kernel's documented error
    bound of the product of torchao's values in double."""
    x, w = values(5, seed=1, dtype=torch.bfloat16), values(seed=2)
    b = to_nvfp4(w, 1) if weights == "nvfp4" else MXTensor.to_mx(w, MX[weights])
    ours = bsmm.BlockScaled(b.qdata, b.scale, weights, shape=w.shape)
    a, left = x, x.double()
    if activations != "bf16":
        theirs = MXTensor.to_mx(x, MX[activations])
        a, left = bsmm.BlockScaled(theirs.qdata, theirs.scale, activations, shape=x.shape), theirs.dequantize(torch.float32).double()
    right = b.dequantize(torch.float32).double()
    row = next(row for row in bsmm.explain(a, ours) if row["accepts"])
    exact, allowed = left @ right.T, row["bound"] * (left.abs() @ right.abs().T)
    y = bsmm.matmul(a, ours)
    # The sum of torchao's values in double is itself rounded, and the result is rounded to f32.
    assert ((y.double() - exact).abs() <= 1.001 * allowed + 2**-23 * exact.abs()).all()


@pytest.mark.parametrize("preset", ["mxfp8", "mxfp4"])
def test_linear_layers_agree_with_torchaos(preset):
    """Tests that a layer with torchao's quantized weights gives the same results as bsmm's, up to
    the rounding of torchao's result to bf16."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(256, 48, bias=False, dtype=torch.bfloat16)
    x = torch.randn(7, 256, dtype=torch.bfloat16)
    ours = bsmm.torch.Linear.from_linear(layer, preset, recipe="torchao")
    theirs = torch.nn.functional.linear(x, MXTensor.to_mx(layer.weight.detach(), MX[preset]).dequantize(torch.bfloat16))
    magnitude = x.abs().double() @ ours.weight.dequantize().double().abs().T
    assert ((ours(x).double() - theirs.double()).abs() <= 2**-7 * theirs.double().abs() + 2**-20 * magnitude).all()
