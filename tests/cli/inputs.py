"""Writes into the current folder the small files that the transcripts use."""
import json
import os
import struct


def value(i):
    """Returns a reproducible number. The numbers have both signs and several magnitudes, and are
    exact in bf16."""
    return ((i * 37 % 101) - 50) / 2.0 ** (i * 7 % 5)


def f32(count):
    return struct.pack(f"<{count}f", *map(value, range(count)))


def f16(count):
    return struct.pack(f"<{count}e", *map(value, range(count)))


def bf16(count):
    return b"".join(struct.pack("<f", value(i))[2:] for i in range(count))


def npy(path, shape, data, descr="<f4"):
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


def safetensors(path, tensors):
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(data for _, _, data in tensors.values())


def mxfp4(name, rows, scales):
    """Returns a weight as compressed-tensors stores it. Every row has the scales `scales`."""
    codes = bytes(i * 41 % 256 for i in range(rows * len(scales) * 16))
    return {name + ".weight_packed": ("U8", [rows, len(scales) * 16], codes),
            name + ".weight_scale": ("U8", [rows, len(scales)], bytes(scales) * rows)}


def nvfp4(name, global_scale):
    """Returns a weight as ModelOpt stores it."""
    return {name + ".weight": ("U8", [2, 16], bytes(i * 41 % 256 for i in range(32))),
            name + ".weight_scale": ("F8_E4M3", [2, 2], b"\x38\x40\x48\x30"),
            name + ".weight_scale_2": ("F32", [], struct.pack("<f", global_scale))}


def gguf(path, name, rows, cols, kind, data):
    """Writes a GGUF file of version 3 with one tensor and no metadata."""
    text = struct.pack("<4sIQQ", b"GGUF", 3, 1, 0) + struct.pack("<Q", len(name)) + name.encode()
    text += struct.pack("<IQQIQ", 2, cols, rows, kind, 0)
    with open(path, "wb") as file:
        file.write(text + bytes(-len(text) % 32) + data)


def sharded(folder, shards):
    """Writes a model in several files. shards is {file: tensors}."""
    os.mkdir(folder)
    for name, tensors in shards.items():
        safetensors(f"{folder}/{name}", tensors)
    where = {tensor: name for name, tensors in shards.items() for tensor in tensors}
    with open(f"{folder}/model.safetensors.index.json", "w") as file:
        json.dump({"metadata": {}, "weight_map": where}, file)


npy("x.npy", (4, 64), f32(4 * 64))
npy("f64.npy", (2, 4), bytes(64), "<f8")
safetensors("model.safetensors", {
    "embed.weight": ("BF16", [6, 64], bf16(6 * 64)),
    "layers.0.fc.weight": ("F32", [8, 64], f32(8 * 64)),
    "layers.0.fc.bias": ("F32", [8], f32(8)),
    "layers.0.norm.weight": ("F32", [64], f32(64)),
    "layers.1.fc.weight": ("F16", [8, 64], f16(8 * 64)),
    "layers.1.short.weight": ("BF16", [3, 40], bf16(3 * 40)),
    "experts.up": ("F32", [3, 2, 32], f32(3 * 2 * 32)),
    "ids": ("I64", [3], struct.pack("<3q", 1, 2, 3)),
})
safetensors("mxfp4.safetensors", mxfp4("fc", 4, [127, 124]))
safetensors("wide.safetensors", mxfp4("fc", 4, [127, 104]))
safetensors("nvfp4.safetensors", nvfp4("fc", 0.003))
safetensors("pow2.safetensors", nvfp4("fc", 0.25))
safetensors("broken.safetensors", {**nvfp4("bad", 0), **nvfp4("good", 0.5)})
gguf("mxfp4.gguf", "blk.0.ffn_up.weight", 2, 64, 39,
     b"".join(bytes([127 + i]) + bytes((i * 16 + j) * 41 % 256 for j in range(16)) for i in range(4)))
sharded("sharded", {
    "model-00001-of-00002.safetensors": {"a.weight": ("F32", [2, 64], f32(2 * 64))},
    "model-00002-of-00002.safetensors": {"b.weight": ("BF16", [4, 64], bf16(4 * 64))},
})
safetensors("spared.safetensors", {
    name: ("F32", [1, 32], f32(32)) for name in
    ["lm_head.weight", "model.embed_tokens.weight", "model.norm.weight", "token_embd.weight",
     "output.weight", "attn.output.weight", "attention.LayerNorm.weight", "mlp.fc.weight", "mlp.fc.table"]})
safetensors("nan.safetensors", {"fc.weight": ("F32", [1, 16], f32(15) + struct.pack("<f", float("nan")))})
safetensors("bidi.safetensors", {"fc\u202ethgiew\u2066\u200b\u0085.größe": ("F32", [1, 2], f32(2))})
safetensors("escape.safetensors", {"fc\x1b[31m.weight": ("F32", [1, 2], f32(2))})
with open("truncated.safetensors", "wb") as file:
    file.write(struct.pack("<Q", 1000) + b'{"a":')
