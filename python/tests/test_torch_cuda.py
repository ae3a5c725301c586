"""Tests the torch operators and modules on an NVIDIA GPU, by comparison with the results on the
CPU."""
import bsmm
import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no NVIDIA GPU", allow_module_level=True)
import bsmm.torch  # noqa: E402

GPU = torch.device("cuda:0")


def linear(out_features=96, in_features=128, bias=True):
    torch.manual_seed(0)
    return torch.nn.Linear(in_features, out_features, bias=bias)


def quantized(format="mxfp4", **options):
    """Returns the same quantized layer twice: once on the CPU and once on the GPU."""
    layer = linear(**options)
    here = bsmm.torch.Linear.from_linear(layer, format)
    return here, bsmm.torch.Linear.from_linear(layer.to(GPU), format)


@pytest.mark.parametrize("preset", ["mxfp4", "mxfp6_e2m3", "mxfp8", "nvfp4", "fp8_block128", "fp8_group128"])
def test_quantizing_on_the_gpu_gives_the_bytes_of_the_cpu(preset):
    here, there = quantized(preset)
    for name, part in here.named_buffers():
        assert there.get_buffer(name).device == GPU
        assert torch.equal(there.get_buffer(name).cpu(), part), name
    assert torch.equal(there.weight.dequantize().cpu(), here.weight.dequantize())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [1, 5, 40, 300])
@pytest.mark.parametrize("preset", ["mxfp4", "mxfp8", "nvfp4", "fp8_block128"])
def test_linear_equals_the_product_in_double(preset, rows, dtype):
    _, there = quantized(preset)
    there = there.to(dtype)
    x = torch.randn(rows, 128, dtype=dtype, device=GPU)
    y = there(x)
    assert y.device == GPU and y.dtype == dtype
    exact = x.double() @ there.weight.dequantize().double().T + there.bias.double()
    magnitude = x.double().abs() @ there.weight.dequantize().double().abs().T + there.bias.double().abs()
    slack = torch.finfo(dtype).eps * exact.abs() + 1e-6 * magnitude
    assert ((y.double() - exact).abs() <= slack).all()


def test_work_is_in_torchs_current_stream():
    _, there = quantized()
    x = torch.randn(64, 128, device=GPU)
    wanted = there(2 * x)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        # `late` is complete only after the sleep, because it is computed in the same stream.
        late = 2 * x
        y = there(late)
    stream.synchronize()
    assert torch.equal(y, wanted)


def test_a_cuda_graph_captures_and_replays_a_layer():
    _, there = quantized("nvfp4")
    x = torch.randn(16, 128, dtype=torch.bfloat16, device=GPU)
    there = there.to(torch.bfloat16)
    there(x)  # The call loads the kernels, because a capture must not load them.
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = there(x)
    for seed in range(3):
        torch.manual_seed(seed)
        x.copy_(torch.randn_like(x))
        y.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y, there(x)), seed


def test_gradients():
    here, there = quantized("mxfp8")
    x = torch.randn(4, 128, device=GPU, requires_grad=True)
    there(x).square().sum().backward()
    weight = there.weight.dequantize()
    y = torch.nn.functional.linear(x, weight, there.bias).detach()
    assert torch.allclose(x.grad, 2 * y @ weight, rtol=1e-3, atol=1e-3)
    assert torch.allclose(there.bias.grad, 2 * y.sum(0), rtol=1e-3, atol=1e-3)


def test_compile():
    _, there = quantized()
    compiled = torch.compile(there, backend="aot_eager", fullgraph=True, dynamic=True)
    for rows in (3, 70):
        x = torch.randn(rows, 128, device=GPU)
        assert torch.equal(compiled(x), there(x))


def test_a_module_moves_to_the_gpu():
    here, there = quantized("nvfp4")
    x = torch.randn(7, 128)
    assert torch.equal(here.to(GPU)(x.to(GPU)), there(x.to(GPU)))


def test_packed_weights_and_plans():
    _, there = quantized()
    x = torch.randn(33, 128, dtype=torch.bfloat16, device=GPU)
    weight = there.weight
    plan = bsmm.Plan(x, weight, out_dtype=torch.bfloat16)
    out = torch.empty(33, 96, dtype=torch.bfloat16, device=GPU)
    assert plan.run(x, weight, out=out) is out
    assert torch.equal(out, bsmm.matmul(x, weight, out_dtype=torch.bfloat16))
    packed = bsmm.pack(weight, "compact")
    assert torch.equal(bsmm.matmul(x, packed, out_dtype=torch.bfloat16), out)


def test_a_tensor_of_another_device_is_refused():
    _, there = quantized()
    with pytest.raises((bsmm.Error, ValueError), match="device"):
        there(torch.randn(4, 128))


def test_dlpack_between_libraries():
    array = bsmm.quantize(np.random.default_rng(1).standard_normal((48, 128), np.float32), "mxfp8").to("cuda:0").elements
    seen = torch.from_dlpack(array)
    assert seen.device == GPU and np.array_equal(seen.view(torch.uint8).cpu().numpy(), array.to_numpy().view(np.uint8))
