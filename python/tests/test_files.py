"""Tests bsmm.open with the fixtures, i.e. files that other programs wrote. The values of the
weights must be those in the fixtures' manifest."""
import gc
from pathlib import Path

import bsmm
import ml_dtypes
import numpy as np
import pytest

FIXTURES = Path(__file__).resolve().parents[2] / "tests" / "fixtures"
pytestmark = pytest.mark.skipif(not FIXTURES.is_dir(), reason="the fixtures are in the source tree alone")


def cases():
    for values in sorted(FIXTURES.glob("*.*.npy")):
        for suffix in (".safetensors", ".gguf"):
            stem, found, name = values.name.partition(suffix + ".")
            if found and (FIXTURES / (stem + suffix)).exists():
                yield pytest.param(stem + suffix, name.removesuffix(".npy"), values, id=values.name)


@pytest.mark.parametrize("file, name, values", list(cases()))
def test_values_of_fixtures(file, name, values):
    opened = bsmm.open(FIXTURES / file)
    expected = np.load(values)
    if name not in opened:
        assert expected.ndim < 2  # Vectors and scalars are tensors of a file but not weights.
        return
    found = opened[name]
    found = found.dequantize() if isinstance(found, bsmm.BlockScaled) else np.asarray(found).astype(np.float32)
    assert np.array_equal(found.reshape(expected.shape), expected.astype(np.float32), equal_nan=True)


def test_arrays_keep_the_mapping_open(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(12, dtype=np.float32).reshape(3, 4))
    file = bsmm.open(tmp_path / "x.npy")
    array = file[next(iter(file))]
    del file
    gc.collect()
    assert not array.flags.writeable
    assert array.sum() == 66


def test_mapping_protocol_and_metadata():
    file = bsmm.open(FIXTURES / "every_dtype.safetensors")
    assert len(list(file)) == len(file) and all(name in file for name in file)
    assert "bf16" in file and "nothing" not in file and 3 not in file
    assert file["bf16"].dtype == ml_dtypes.bfloat16
    assert {t["name"] for t in file.tensors} >= set(file)
    assert repr(file).endswith(f"safetensors, {len(file)} weights)")
    with pytest.raises(LookupError, match="nothing"):
        file["nothing"]
    gguf = bsmm.open(FIXTURES / "ggml.gguf")
    assert gguf.kind == "gguf" and isinstance(gguf.metadata, dict)


def test_file_errors(tmp_path):
    with pytest.raises(OSError, match="nothing.safetensors") as caught:
        bsmm.open(tmp_path / "nothing.safetensors")
    assert isinstance(caught.value, bsmm.FileError)
    (tmp_path / "bad.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(bsmm.FormatError, match="bad.safetensors"):
        bsmm.open(tmp_path / "bad.safetensors")
