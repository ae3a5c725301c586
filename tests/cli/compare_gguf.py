"""Compares GGUF files that bsmm quantized with those of PyPI's package gguf. Run by hand:
    python3 -m venv venv && venv/bin/pip install gguf && venv/bin/python compare_gguf.py BSMM IN.gguf
Every changed tensor of type MXFP4 must have the bytes that gguf.quants makes. For every changed tensor of type NVFP4,
the values that gguf.quants decodes must equal those of bsmm's dequantized output."""
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np


def read(path):
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


def values(tensor):
    shape = [int(extent) for extent in tensor.shape[::-1]]
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32).reshape(shape)


def main():
    bsmm, path, folder = sys.argv[1], sys.argv[2], pathlib.Path(tempfile.mkdtemp())
    source = read(path)
    for name in "mxfp4", "nvfp4":
        out, back = folder / f"{name}.gguf", folder / f"{name}-f32.gguf"
        subprocess.run([bsmm, "quantize", path, "-o", out, "--format", name], check=True)
        subprocess.run([bsmm, "dequantize", out, "-o", back, "--dtype", "f32", "--exclude", "token_embd*"], check=True)
        made, plain, count = read(out), read(back), 0
        kept = [key for key in gguf.GGUFReader(path).fields if key not in gguf.GGUFReader(out).fields]
        assert not kept, kept
        for key, tensor in made.items():
            if tensor.tensor_type.name != name.upper():
                continue
            count += 1
            scales = made.get(key.removesuffix("weight") + "scale")
            decoded = values(tensor) * (1 if scales is None else scales.data.reshape(-1, *[1] * (len(tensor.shape) - 1)))
            assert np.array_equal(decoded, values(plain[key])), key
            if name == "mxfp4":
                wanted = gguf.quants.quantize(values(source[key]), tensor.tensor_type)
                assert np.array_equal(wanted, tensor.data.reshape(wanted.shape)), key
        print(f"{name}: {count} tensors equal")
        assert count


main()
