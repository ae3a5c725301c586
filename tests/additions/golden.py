#!/usr/bin/env python3
"""Writes golden data of the fake formats into a tree's tests/golden. usage: golden.py TREE

A code of e1m2 stands for its magnitude / 4, so that rounding to it is rounding to whole numbers."""
import gzip
import math
import random
import struct
import sys
from pathlib import Path

RNG = random.Random(1)


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def encode(value):
    """Returns the code of the made-up format e1m2 nearest to a value, with ties to even and
    saturation. The function returns 0xFF for NaN, which e1m2 lacks."""
    if math.isnan(value):
        return 0xFF
    sign = 8 if math.copysign(1, value) < 0 else 0
    return sign | (7 if abs(value) > 7 else min(7, round(abs(value) * 4)))


class Pack:
    def __init__(self, file):
        self.file, self.data, self.lines = file, bytearray(), []

    def put(self, content):
        at = len(self.data)
        self.data += content
        return f"{self.file.name}@{at}"

    def save(self, manifest):
        self.file.write_bytes(gzip.compress(bytes(self.data), 9, mtime=0))
        with open(manifest, "a", encoding="utf-8") as lines:
            lines.writelines("\t".join(map(str, line)) + "\n" for line in self.lines)


def elements(data):
    pack = Pack(data / "elements_e1m2.gz")
    codes = [math.copysign((code & 7) / 4, -1 if code & 8 else 1) for code in range(16)]
    decoded = pack.put(struct.pack("<16f", *codes))
    pack.lines.append(("decode/e1m2", "decode", "e1m2", "-", "test", 16, "codes", decoded))
    halves = [struct.unpack("<e", struct.pack("<H", bits))[0] for bits in range(1 << 16)]
    floats = [struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in range(1 << 16)]
    edges = [sign * (n / 8 + off) for n in range(20) for off in (-1e-4, 0, 1e-4) for sign in (-1, 1)]
    others = [RNG.uniform(-2.5, 2.5) for _ in range(1000)]
    for name, values, source in (("f16", halves, "f16"), ("bf16", floats, "bf16"),
                                 ("boundaries", edges, None), ("random", others, None)):
        values = [f32(value) for value in values]
        source = source or "f32:" + pack.put(struct.pack(f"<{len(values)}f", *values))
        codes = pack.put(bytes(map(encode, values)))
        pack.lines.append((f"encode/e1m2/sat/{name}", "encode", "e1m2", "sat", "test", len(values), source, codes))
    pack.save(data / "elements.tsv")


def layouts(data):
    pack = Pack(data / "layouts_fake_16x2.gz")
    for rows, cols in ((1, 1), (1, 3), (5, 2), (15, 1), (16, 2), (17, 3), (32, 4), (33, 9), (64, 1), (100, 7),
                       (128, 8), (300, 37)):
        tiles_across, tiles_down = -(-cols // 2), -(-rows // 16)
        at = [0] * (tiles_across * tiles_down * 32)
        for r in range(rows):
            for c in range(cols):
                at[(r // 16 * tiles_across + c // 2) * 32 + c % 2 * 16 + r % 16] = 1 + r * cols + c
        stored = pack.put(struct.pack(f"<{len(at)}I", *at))
        pack.lines.append((f"layout/fake_16x2/{rows}x{cols}", "layout", "fake_16x2", f"rows={rows},cols={cols}",
                           "test", len(at), "-", stored))
    pack.save(data / "layouts.tsv")


def block(values):
    """Returns the byte of a block's scale, which is 2^(ceil(log2 amax)), and the codes of the
    block's elements."""
    mantissa, exponent = math.frexp(max(map(abs, values)))
    power = exponent - (mantissa == 0.5)
    return power + 127, [encode(value / 2.0 ** power) for value in values]


def recipes(folder):
    pack = Pack(folder / "fake.bin.gz")
    rows, cols = 16, 256
    values = [f32(RNG.gauss(0, 1) * 2.0 ** RNG.randrange(-20, 20)) for _ in range(rows * cols)]
    blocks = [block(values[i:i + 32]) for i in range(0, rows * cols, 32)]
    codes = [code for _, some in blocks for code in some]
    parts = (struct.pack(f"<{len(values)}f", *values),
             bytes(low | high << 4 for low, high in zip(codes[::2], codes[1::2])), bytes(byte for byte, _ in blocks))
    at_input, at_data, at_scales = (pack.put(part).split("@")[1] for part in parts)
    pack.lines.append(("normal", "fake", "fake_mx4", "-", "f32", rows, cols, "test", pack.file.name, at_input,
                       at_data, len(parts[1]), at_scales, len(parts[2]), "-"))
    pack.save(folder / "manifest.tsv")


def main():
    golden = Path(sys.argv[1]) / "tests/golden"
    elements(golden / "data")
    layouts(golden / "data")
    recipes(golden / "recipes")


if __name__ == "__main__":
    main()
