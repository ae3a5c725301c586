"""Writes a folder with a layer of fused experts. Their rows are outputs, or inputs if the word "inputs" is given.
usage: experts_model.py FOLDER [inputs]"""
import json
import math
import pathlib
import random
import struct
import sys

HIDDEN, INNER, EXPERTS = 64, 96, 3


def main():
    folder, source = pathlib.Path(sys.argv[1]), random.Random(9)
    folder.mkdir()
    turn = (lambda rows, cols: (cols, rows)) if len(sys.argv) > 2 else (lambda rows, cols: (rows, cols))
    shapes = {
        "self_attn.q_proj.weight": (HIDDEN, HIDDEN), "mlp.gate.weight": (EXPERTS, HIDDEN),
        "mlp.experts.gate_up_proj": (EXPERTS, *turn(2 * INNER, HIDDEN)), "mlp.experts.gate_up_proj_bias": (EXPERTS, 2 * INNER),
        "mlp.experts.down_proj": (EXPERTS, *turn(HIDDEN, INNER))}
    header, data = {}, bytearray()
    for name, shape in shapes.items():
        count = math.prod(shape)
        header[f"model.layers.0.{name}"] = {
            "dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *(source.gauss(0, 0.05) for _ in range(count)))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text("{}")


main()
