"""Tests ModelOpt's patterns of excluded layers. usage: exclusion_check.py make FOLDER | written FOLDER | kept FOLDER

`make` writes a model with the layers below. `written` compares the patterns of a quantized folder with those of ModelOpt
0.47 (modelopt/torch/export/quant_utils.py, _prefix_wildcard_summarize_exclude_modules). `kept` checks that the patterns
of the input decided which layers became quantized."""
import fnmatch
import json
import pathlib
import struct
import sys

from model_values import stored

QUANTIZED = ["model.layers.0.mlp.up", "model.layers.0.mlp.up_b", "model.layers.10.mlp.up", "model.layers.2.attn.q.inner",
             "vision.block.1", "a"]
PLAIN = ["model.layers.1.mlp.up", "model.layers.1.attn.q", "model.layers.0.attn.q", "model.layers.0.mlp.down",
         "model.layers.2.attn.q2", "model.layers.2.attn.q", "tower.block.0", "tower.block.1", "vision.block.10", "a.b.c",
         "lm_head"]
PATTERNS = ["a.b*", "lm_head", "model.layers.0.attn*", "model.layers.0.mlp.down", "model.layers.1.*",
            "model.layers.2.attn.q", "model.layers.2.attn.q2", "tower*", "vision.block.10"]


def make(folder):
    folder.mkdir()
    values, header = struct.pack("<1024f", *((k % 37 - 18) / 16 for k in range(1024))), {}
    for index, name in enumerate(QUANTIZED + PLAIN):
        header[f"{name}.weight"] = {"dtype": "F32", "shape": [32, 32], "data_offsets": [4096 * index, 4096 * index + 4096]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + values * len(header))
    (folder / "config.json").write_text("{}")


def written(folder):
    second = json.loads((folder / "hf_quant_config.json").read_text())["quantization"]["exclude_modules"]
    assert second == json.loads((folder / "config.json").read_text())["quantization_config"]["ignore"], second
    assert second == PATTERNS, second
    covers = lambda name: any(fnmatch.fnmatchcase(name, pattern) for pattern in second)
    assert not [name for name in PLAIN if not covers(name)] and not [name for name in QUANTIZED if covers(name)]


def kept(folder):
    tensors = stored(folder / "model.safetensors")[0]
    quantized = {name.removesuffix(".weight_packed") for name in tensors if name.endswith(".weight_packed")}
    assert quantized == set(QUANTIZED), quantized ^ set(QUANTIZED)


if __name__ == "__main__":
    {"make": make, "written": written, "kept": kept}[sys.argv[1]](pathlib.Path(sys.argv[2]))
