"""Tests on a simulated NVIDIA GPU that calls put their work into the given CUDA stream. While a
stream is captured, the driver records its work instead of doing it, so no result appears.
$BSMM_TEST_LIBCUDA is the simulator."""
import contextlib
import os
import subprocess
import sys
import types

import pytest
from bsmm._arrays import TorchSpace

LIBCUDA = os.environ.get("BSMM_TEST_LIBCUDA", "")

CODE = """
import bsmm, ctypes, numpy as np
from bsmm._device import DeviceSpace, copy_array

cuda = ctypes.CDLL("libcuda.so.1")
space = DeviceSpace("cuda:0")
x = np.random.default_rng(5).standard_normal((64, 128), np.float32)
there = copy_array(x, space)
q = bsmm.quantize(x, "mxfp4").to("cuda:0")
plan = bsmm.Plan(there, q)
calls = {
    "matmul": lambda stream: bsmm.matmul(there, q, stream=stream),
    "run": lambda stream: plan.run(there, q, stream=stream),
    "quantize": lambda stream: bsmm.quantize(there, "mxfp8", stream=stream).elements,
    "dequantize": lambda stream: q.dequantize(stream=stream),
    "relayout": lambda stream: q.relayout("nv_128x4", stream=stream).scales,
}
assert bsmm.amax(there) == np.abs(x).max()
for name, call in calls.items():
    first = call(None)
    stream, graph = ctypes.c_void_p(), ctypes.c_void_p()
    assert not cuda.cuStreamCreate(ctypes.byref(stream), 1)
    # A stream that is not captured gives the result.
    assert call(stream.value).to_numpy().tobytes() == first.to_numpy().tobytes(), name
    assert not cuda.cuStreamBeginCapture_v2(stream, 2)
    late = call(stream.value)
    assert late.to_numpy().tobytes() != first.to_numpy().tobytes(), name
    assert not cuda.cuStreamEndCapture(stream, ctypes.byref(graph))
    print(name, "is in the stream")
"""


@pytest.mark.skipif(not LIBCUDA, reason="no simulator of NVIDIA GPUs")
def test_work_is_in_the_given_stream():
    folder = os.path.dirname(os.path.abspath(LIBCUDA))
    run = subprocess.run([sys.executable, "-P", "-c", CODE], text=True, capture_output=True, timeout=250,
                         env={**os.environ, "LD_LIBRARY_PATH": folder, "BSMM_SIM_ARCH": "sm_90a"})
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("is in the stream") == 5


def test_torch_allocates_in_the_given_stream(monkeypatch):
    """Tests, with a model of torch, that arrays for work in another stream than torch's current one
    are allocated in that stream."""
    cuda = types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=7),
                                 ExternalStream=lambda stream, device: ("external", stream),
                                 default_stream=lambda device: "default", stream=contextlib.nullcontext)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda, version=types.SimpleNamespace()))
    space = TorchSpace(types.SimpleNamespace(type="cuda", index=0))
    entered = []
    for stream in (None, 7, 9, 0):
        with space.using(stream) as now:
            entered.append(now)
    assert entered == [None, None, ("external", 9), "default"]
