#!/usr/bin/env python3
"""Writes a safetensors file with the feed-forward weights of a small model, in bf16.

  usage: make_model.py FILE LAYERS HIDDEN INNER"""
import json
import random
import struct
import sys

path, layers, hidden, inner = sys.argv[1], *map(int, sys.argv[2:])
chosen = random.Random(7)


def bf16(value):
    return struct.pack("<f", value)[2:]


header, data = {}, b""
for layer in range(layers):
    for name, rows, cols in (("up", inner, hidden), ("down", hidden, inner)):
        spread = cols ** -0.5  # The factor keeps the magnitudes of hidden values.
        values = b"".join(bf16(chosen.gauss(0, spread)) for _ in range(rows * cols))
        header[f"model.layers.{layer}.mlp.{name}_proj.weight"] = {
            "dtype": "BF16", "shape": [rows, cols], "data_offsets": [len(data), len(data) + len(values)]}
        data += values
head = json.dumps(header).encode()
head += b" " * (-len(head) % 8)
with open(path, "wb") as out:
    out.write(struct.pack("<Q", len(head)) + head + data)
