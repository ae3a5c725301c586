"""Tests that arrays of other libraries in the package, and arrays of the package in other
libraries, are used without copies."""
import array
import re
from pathlib import Path

import bsmm
import numpy as np
import pytest
from bsmm._arrays import names_stream, view
from bsmm._device import DeviceArray, DeviceSpace, copy_array

TABLE = re.compile(r'static const field \w+\[\] = \{(.*?)\};\n(?:static )?const record \w+ = \{\s*"(\w+)"', re.S)
ROOT = Path(__file__).resolve().parents[2]


class OnlyDlpack:
    """Wraps an array so that it can do nothing but export itself by DLPack."""

    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **kwargs):
        return self.data.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


class FakeGpuArray:
    def __init__(self, typestr, strides=None):
        self.__cuda_array_interface__ = {"shape": (4, 8), "typestr": typestr, "data": (4096, False),
                                         "strides": strides, "version": 3}


def test_dlpack_is_read_in_place(rng):
    x = rng.standard_normal((8, 64), np.float32)
    assert view(OnlyDlpack(x)).address == x.ctypes.data
    assert np.array_equal(bsmm.quantize(OnlyDlpack(x), "mxfp4").elements, bsmm.quantize(x, "mxfp4").elements)
    assert np.array_equal(bsmm.quantize(OnlyDlpack(x.T.copy().T), "mxfp4").elements, bsmm.quantize(x, "mxfp4").elements)


def test_capsules_are_freed_and_not_consumed_twice(rng):
    x = rng.standard_normal((2, 2), np.float32)
    capsule = x.__dlpack__()
    assert bsmm._bsmm.dlpack_read(capsule)[0] == x.ctypes.data
    with pytest.raises(TypeError, match="no unused DLPack capsule"):
        bsmm._bsmm.dlpack_read(object())


def test_buffer_protocol():
    x = array.array("f", [1.0] * 64)
    seen = view(memoryview(x).cast("B").cast("f", (2, 32)))
    assert seen.address == x.buffer_info()[0] and seen.type == "f32"
    with pytest.raises(TypeError):
        view([1.0, 2.0])


def test_cuda_array_interface():
    seen = view(FakeGpuArray("<f2"))
    assert (seen.address, seen.shape, seen.strides, seen.type, seen.device) == (4096, (4, 8), (8, 1), "f16", "cuda:0")
    assert view(FakeGpuArray("<f4", (64, 4))).strides == (16, 1)
    with pytest.raises(ValueError, match="multiples of 4"):
        view(FakeGpuArray("<f4", (66, 4)))


def test_streams_of_the_cuda_array_interface_are_awaited(monkeypatch):
    """Tests that view waits for the stream that an array names, because its values may still be
    computed there. Calls are queued in the default stream, whose number in the interface is 1."""
    waited = []
    monkeypatch.setattr(bsmm._bsmm, "synchronize", waited.append)
    array = FakeGpuArray("<f4")
    for stream in (None, 1, 2, 5000):
        array.__cuda_array_interface__["stream"] = stream
        view(array)
    assert waited == [{"device": "cuda:0", "stream": 2}, {"device": "cuda:0", "stream": 5000}]


def test_the_stream_of_the_call_is_not_awaited(monkeypatch):
    """Tests that view does not wait for the stream that the call itself names. A wait would fail
    while that stream records a CUDA graph."""
    waited = []
    monkeypatch.setattr(bsmm._bsmm, "synchronize", waited.append)
    array = FakeGpuArray("<f4")

    @names_stream
    def call(*, stream=None):
        view(array)

    for named in (2, 5000):
        array.__cuda_array_interface__["stream"] = named
        call(stream=5000)
    assert waited == [{"device": "cuda:0", "stream": 2}]
    array.__cuda_array_interface__["stream"] = 1
    call(stream=5000)
    assert waited[1:] == [{"device": "cuda:0", "stream": 1}]


def test_device_arrays_export_their_memory(rng):
    x = rng.standard_normal((3, 4), np.float32)
    there = copy_array(x, DeviceSpace("cpu"))
    assert isinstance(there, DeviceArray) and there.address % 64 == 0
    back = np.from_dlpack(there)
    assert back.ctypes.data == there.address and np.array_equal(back, x)
    del there
    assert np.array_equal(back, x)  # The exported array must keep the memory alive.
    assert not hasattr(copy_array(x, DeviceSpace("cpu")), "__cuda_array_interface__")


def test_unknown_devices_are_named():
    q = bsmm.quantize(np.ones((2, 32), np.float32), "mxfp4")
    assert q.to("cpu") is q
    with pytest.raises(bsmm.Error, match="cuda:77|cuda"):
        q.to("cuda:77")


GPUS = [name for name in bsmm.devices() if name != "cpu"]


@pytest.mark.parametrize("device", GPUS or [pytest.param("none", marks=pytest.mark.skip(reason="no GPU and no simulator"))])
def test_gpus_give_the_bytes_of_the_cpu(device, rng):
    x = rng.standard_normal((64, 128), np.float32)
    there = copy_array(x, DeviceSpace(device))
    assert bsmm.amax(there) == np.abs(x).max()
    for preset in ("mxfp4", "nvfp4", "mxfp8"):
        here, q = bsmm.quantize(x, preset), bsmm.quantize(there, preset)
        assert q.device == device
        assert np.array_equal(q.to("cpu").elements, here.elements)
        assert np.array_equal(q.dequantize().to_numpy(), here.dequantize())
        assert np.array_equal(here.to(device).relayout("nv_128x4").to("cpu").scales.view(np.uint8),
                              here.relayout("nv_128x4").scales.view(np.uint8))
        values = x.astype(np.float64), here.dequantize().astype(np.float64)
        plan = bsmm.Plan(there, q)
        bound = next(row["bound"] for row in bsmm.explain(there, q) if row["kernel"] == plan.kernel)
        error = np.abs(plan.run(there, q).to_numpy() - values[0] @ values[1].T)
        assert np.all(error <= (bound + 2.0**-23) * (np.abs(values[0]) @ np.abs(values[1]).T))


@pytest.mark.skipif(not (ROOT / "include" / "bsmm.h").exists(), reason="the header is in the source tree alone")
def test_tables_of_fields_are_those_of_the_header():
    """Tests that each struct of the extension has all fields of the header, except reserved fields,
    pools and struct_size."""
    header = re.sub(r"/\*.*?\*/", "", (ROOT / "include" / "bsmm.h").read_text(), flags=re.S)
    tables = (ROOT / "python" / "extension" / "structs.c").read_text()
    checked = 0
    for found in TABLE.finditer(tables):
        fields, name = found.groups()
        body = re.search(r"typedef struct " + name + r" \{(.*?)\} " + name + ";", header, re.S)[1]
        wanted = []
        for line in body.split(";"):
            words = [re.sub(r"\[.*", "", word) for word in line.split(",") if word.strip()]
            wanted += [re.split(r"[\s*]+", word)[-1] for word in words]
        given = re.findall(r"\(" + name + r",\s*(\w+)", fields)
        assert given == [field for field in wanted if field not in ("struct_size", "reserved", "pool")], name
        checked += 1
    assert checked > 20
