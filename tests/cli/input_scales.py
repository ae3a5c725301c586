"""Makes files and folders with input scales for test_input_scales.sh, and checks the output.
usage: input_scales.py make | input_scales.py CHECK PATH..."""
import json
import math
import pathlib
import random
import struct
import sys

from folder_check import read, tensors_of

NAN = float("nan")


def f32(*values):
    return struct.pack(f"<{len(values)}f", *values)


def write(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def folder(path, tensors):
    pathlib.Path(path).mkdir()
    write(f"{path}/model.safetensors", tensors)
    pathlib.Path(f"{path}/config.json").write_text('{"model_type": "llama"}\n')


def codes(count, least, end):
    return bytes(random.Random(count).randrange(least, end) for _ in range(count))


def nvfp4(name, scale=None, rows=64, cols=64):
    """Returns the tensors of a ModelOpt weight in nvfp4, with an input scale (dtype, shape,
    bytes) or none."""
    tensors = {f"{name}.weight": ("U8", [rows, cols // 2], codes(rows * cols // 2, 0, 256)),
               f"{name}.weight_scale": ("F8_E4M3", [rows, cols // 16], codes(rows * cols // 16, 0x20, 0x60)),
               f"{name}.weight_scale_2": ("F32", [], f32(0.5))}
    return tensors | ({f"{name}.input_scale": scale} if scale else {})


def fp8(name, rows, cols, scale=None):
    """Returns the tensors of a ModelOpt weight in FP8, with an input scale (dtype, shape, bytes)
    or none."""
    tensors = {f"{name}.weight": ("F8_E4M3", [rows, cols], codes(rows * cols, 0x10, 0x70)),
               f"{name}.weight_scale": ("F32", [], f32(0.25))}
    return tensors | ({f"{name}.input_scale": scale} if scale else {})


def plain(name):
    return {name: ("F32", [64, 64], f32(*(0.01 * i for i in range(64 * 64))))}


def make():
    write("plain.safetensors", plain("w") | plain("b.weight"))
    write("square.safetensors", {"b.weight": ("F32", [128, 128], f32(*range(128 * 128)))})
    scales = {"zero": f32(0), "negative": f32(-1), "nan": f32(NAN), "inf": f32(math.inf), "tiny": f32(1e-40)}
    for name, value in scales.items():
        write(f"{name}.safetensors", nvfp4("l", ("F32", [], value)))
    write("bf16.safetensors", nvfp4("l", ("BF16", [], b"\x80\x3f")))
    write("three.safetensors", nvfp4("l", ("F32", [3], f32(1, 2, 3))))
    write("long.safetensors", nvfp4("n" * 600, ("F32", [], f32(0.25))))
    for rows, cols in ((1, 64), (1, 128), (64, 128), (128, 128)):
        write(f"fp8-{rows}x{cols}.safetensors", fp8("l", rows, cols, ("F32", [], f32(0.5))))
    foreign = nvfp4("l") | {"l.input_global_scale": ("F32", [1], f32(4))}
    foreign |= plain("p.weight") | {"p.input_scale": ("F32", [], f32(0.75))}
    write("foreign.safetensors", foreign)
    folder("alone", fp8("l", 64, 256))
    several = {}
    for i in range(4):
        several |= nvfp4(f"l{i}", ("F32", [], f32(0.25 + i)), 64, 256)
    folder("several", several)


def check_scale(path, name, value):
    """Checks the value of a scale. `value` is a number, or "none" if there must be no tensor of this name."""
    got = tensors_of(path)
    if str(value) == "none":
        assert str(name) not in got, got[str(name)]
    else:
        assert struct.unpack("<f", got[str(name)][2])[0] == float(str(value)), got[str(name)]


def check_inputs(path):
    """Checks that ModelOpt's configuration says for every layer that its input is quantized."""
    quantization = json.loads((path / "config.json").read_text())["quantization_config"]
    assert [n for n in read(path) if n.endswith("input_scale")]
    assert quantization["quant_algo"] == "NVFP4", quantization
    assert all("input_activations" in g for g in quantization["config_groups"].values()), quantization


def check_no_config(path):
    assert "quantization_config" not in json.loads((path / "config.json").read_text())
    assert not (path / "hf_quant_config.json").exists()


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make()
    else:
        globals()[f"check_{sys.argv[1]}"](*map(pathlib.Path, sys.argv[2:]))
