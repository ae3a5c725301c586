"""Tests the torch operators and modules. tools/test-python-torch.sh runs this file."""
import types

import bsmm
import numpy as np
import pytest

torch = pytest.importorskip("torch")
import bsmm.torch  # noqa: E402

WEIGHT = torch.from_numpy(np.random.default_rng(5).standard_normal((48, 128), np.float32))


def model(bias=True):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(128, 96, bias=bias), torch.nn.GELU(), torch.nn.Linear(96, 32, bias=bias))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("preset", ["mxfp4", "nvfp4", "mxfp8", "fp8_block128"])
def test_tensors_are_read_in_place(dtype, preset):
    q = bsmm.quantize(WEIGHT.to(dtype), preset)
    assert isinstance(q.elements, torch.Tensor) and isinstance(q.scales, torch.Tensor)
    same = bsmm.quantize(WEIGHT.to(dtype).to(torch.float32).numpy(), preset)
    assert np.array_equal(q.elements.view(torch.uint8).numpy(), same.elements.view(np.uint8))
    x = torch.randn(5, 128, dtype=dtype)
    y = bsmm.matmul(x, q, out_dtype=dtype)
    assert y.dtype == dtype
    exact = x.double() @ q.dequantize().double().T
    assert torch.allclose(y.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-4)
    column_order = WEIGHT.T.contiguous().T
    assert torch.equal(bsmm.quantize(column_order, preset).dequantize(), bsmm.quantize(WEIGHT, preset).dequantize())


def test_operators_pass_torchs_own_checks():
    parts = torch.ops.bsmm.quantize(WEIGHT, "nvfp4", None, "nv_128x4")
    weight = ([48, 128], "nvfp4", "nv_128x4", "multiplier")
    torch.library.opcheck(torch.ops.bsmm.quantize, (WEIGHT, "nvfp4", None, "nv_128x4"))
    torch.library.opcheck(torch.ops.bsmm.dequantize, (*parts, *weight, torch.float32))
    x, bias = torch.randn(2, 3, 128, requires_grad=True), torch.randn(48, requires_grad=True)
    torch.library.opcheck(torch.ops.bsmm.linear, (x, *parts, bias, *weight))


def test_linear_equals_the_dequantized_layer():
    layer = torch.nn.Linear(128, 48)
    ours = bsmm.torch.Linear.from_linear(layer, "mxfp4", layout="nv_128x4")
    x = torch.randn(2, 3, 128)
    values = torch.nn.functional.linear(x, ours.weight.dequantize(), layer.bias)
    assert torch.allclose(ours(x), values, rtol=1e-5, atol=1e-5)
    assert ours.half().elements.dtype == torch.uint8 and ours.bias.dtype == torch.float16
    assert torch.equal(ours.weight.dequantize(), bsmm.torch.Linear.from_linear(layer, "mxfp4").weight.dequantize())


@pytest.mark.parametrize("shape", [(4, 128), (2, 3, 128), (128,)])
def test_a_result_may_be_changed_in_place(shape):
    ours = bsmm.torch.Linear.from_linear(torch.nn.Linear(128, 48), "mxfp8")
    x = torch.randn(shape, requires_grad=True)
    wanted = torch.relu(ours(x))
    y = torch.relu_(ours(x))
    assert y.shape == (*shape[:-1], 48) and torch.equal(y, wanted)
    y.sum().backward()
    assert x.grad.shape == x.shape


def test_gradients_of_x_and_bias():
    ours = bsmm.torch.Linear.from_linear(torch.nn.Linear(128, 48), "mxfp8")
    x = torch.randn(4, 128, requires_grad=True)
    ours(x).square().sum().backward()
    y = torch.nn.functional.linear(x, ours.weight.dequantize(), ours.bias).detach()
    assert torch.allclose(x.grad, 2 * y @ ours.weight.dequantize(), rtol=1e-4, atol=1e-4)
    assert torch.allclose(ours.bias.grad, 2 * y.sum(0), rtol=1e-4, atol=1e-4)


def test_quantize_replaces_linear_layers_and_state_dicts_load():
    ours = bsmm.torch.quantize_(model(), "nvfp4", recipe="compressed-tensors")
    assert [type(m) for m in ours] == [bsmm.torch.Linear, torch.nn.GELU, bsmm.torch.Linear]
    other = bsmm.torch.quantize_(model(), "nvfp4", recipe="compressed-tensors", filter=lambda name, m: name == "0")
    assert type(other[2]) is torch.nn.Linear
    again = bsmm.torch.quantize_(model(), "nvfp4", recipe="compressed-tensors")
    for part in again.buffers():
        part.zero_()
    again.load_state_dict(ours.state_dict())
    x = torch.randn(5, 128)
    assert torch.equal(again(x), ours(x))
    assert torch.nn.functional.cosine_similarity(ours(x), model()(x)).min() > 0.95
    with pytest.raises(bsmm.NotFoundError):
        bsmm.torch.quantize_(model(), "mxfp5")


def test_compile_traces_the_operators():
    ours = bsmm.torch.quantize_(model(), "mxfp4")
    compiled = torch.compile(ours, backend="aot_eager", fullgraph=True, dynamic=True)
    for rows in (3, 7):
        x = torch.randn(rows, 128)
        assert torch.equal(compiled(x), ours(x))


class Quantized(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        x = WEIGHT * (index + 1)
        return bsmm.matmul(x, bsmm.quantize(WEIGHT, "mxfp4"))


def test_workers_of_a_data_loader():
    here = torch.stack([Quantized()[i] for i in range(8)])
    for context in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(Quantized(), batch_size=4, num_workers=2, multiprocessing_context=context,
                                             timeout=60)
        assert torch.equal(torch.cat(list(loader)), here)


def test_one_openmp_runtime():
    """Tests that bsmm loads no OpenMP runtime besides the one of torch."""
    bsmm.matmul(WEIGHT, WEIGHT)
    with open("/proc/self/maps") as maps:
        runtimes = {line.split()[-1] for line in maps if "libgomp" in line or "libomp" in line or "libiomp" in line}
    assert len(runtimes) <= 1, runtimes


def test_the_current_stream_is_torchs(monkeypatch):
    """Tests without a GPU that the stream of a CUDA device is torch's current stream."""
    streams = {0: 0x1230, 1: 0x4560}
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: types.SimpleNamespace(cuda_stream=streams[device.index]))
    for index, stream in streams.items():
        assert bsmm._arrays.TorchSpace(torch.device("cuda", index)).stream() == stream
    assert bsmm._arrays.TorchSpace(torch.device("cpu")).stream() == 0


def test_every_call_takes_the_stream_of_its_tensors(monkeypatch):
    """Tests with CPU tensors, whose calls ignore the stream, that each call of the library gets it."""
    seen = []

    def watch(name, where):
        call = getattr(bsmm._bsmm, name)

        def watched(*arguments):
            seen.append((name, arguments[where]["stream"]))
            return call(*arguments)
        monkeypatch.setattr(bsmm._bsmm, name, watched)

    for name, where in (("quantize", 0), ("dequantize", 0), ("relayout", 0), ("plan_run", 1)):
        watch(name, where)
    monkeypatch.setattr(bsmm._arrays.TorchSpace, "stream", lambda space: 0x7890)
    x = torch.randn(3, 128)
    for options, wanted in (({}, 0x7890), ({"stream": 0x40}, 0x40)):
        seen.clear()
        weight = bsmm.quantize(WEIGHT, "mxfp8", **options)
        weight.relayout("nv_128x4", **options).dequantize(**options)
        bsmm.matmul(x, weight, **options)
        assert seen == [(name, wanted) for name in ("quantize", "relayout", "dequantize", "plan_run")]
    seen.clear()
    layer = bsmm.torch.Linear.from_linear(torch.nn.Linear(128, 48), "mxfp8")
    layer(x)
    assert seen == [("quantize", 0x7890), ("plan_run", 0x7890)]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU")
def test_current_stream_of_cuda_tensors():
    x, w = torch.randn(64, 128, device="cuda"), WEIGHT.cuda()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(50_000_000)
        # `late` is complete only after the sleep, because it is computed in the same stream.
        late = w * 2
        y = bsmm.matmul(x, bsmm.quantize(late, "mxfp8"))
        torch.cuda.current_stream().synchronize()
    q = bsmm.quantize(w * 2, "mxfp8")
    assert torch.allclose(y.double(), x.double() @ q.dequantize().double().T, rtol=1e-2, atol=1e-1)
    moved = bsmm.quantize(WEIGHT, "mxfp8").to("cuda:0")
    assert np.array_equal(moved.to("cpu").elements.view(np.uint8), bsmm.quantize(WEIGHT.numpy(), "mxfp8").elements.view(np.uint8))
