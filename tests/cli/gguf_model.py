"""Writes a GGUF file with metadata of every type and tensors of several types. usage: gguf_model.py FILE [ALIGNMENT]"""
import math
import random
import struct
import sys

# These are the types of metadata: the code of struct and the value.
NUMBERS = [("B", 200), ("b", -3), ("H", 60000), ("h", -300), ("I", 4000000000), ("i", -70000), ("f", 1e-5), ("?", True)]
LONG = [("Q", 2**63), ("q", -(2**62)), ("d", 0.1)]
SHAPES = {
    "token_embd.weight": ("Q8_0", (8, 64)), "output_norm.weight": ("F32", (64,)),
    "blk.0.attn_q.weight": ("F32", (64, 64)), "blk.0.attn_norm.weight": ("F32", (64,)),
    "blk.0.ffn_down.weight": ("F16", (64, 128)), "blk.0.ffn_up.weight": ("BF16", (128, 64)),
    "blk.0.ffn_gate_inp.weight": ("F32", (3, 64)), "blk.0.ffn_up_exps.weight": ("F32", (3, 4, 64)),
    "blk.0.attn_q.bias": ("F32", (64,)), "ids": ("I32", (5,))}
TYPES = {"F32": 0, "F16": 1, "Q8_0": 8, "I32": 26, "BF16": 30}


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def pairs(alignment):
    yield text("general.architecture") + struct.pack("<I", 8) + text("llama")
    if alignment != 32:
        yield text("general.alignment") + struct.pack("<II", 4, alignment)
    yield text("general.file_type") + struct.pack("<II", 4, 0)
    for number, (code, value) in enumerate(NUMBERS + [(None, None)] * 2 + LONG):
        if code:
            yield text(f"zz.number.{number}") + struct.pack(f"<I{code}", number, value)
    yield text("empty") + struct.pack("<I", 8) + text("")
    yield text("not.utf8") + struct.pack("<I", 8) + text(b"\xff\0x")
    words = [b"<s>", "größe".encode(), b"\0\xfe", b""]
    yield text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, len(words)) + b"".join(map(text, words))
    yield text("a.scores") + struct.pack("<IIQ3f", 9, 6, 3, 0.5, -1, math.inf)
    yield text("a.nothing") + struct.pack("<IIQ", 9, 4, 0)


def values(dtype, count, source):
    numbers = [source.gauss(0, 0.05) for _ in range(count)]
    if dtype == "I32":
        return struct.pack(f"<{count}i", *range(count))
    if dtype == "Q8_0":
        block = lambda at: struct.pack("<e32b", 0.01 * (at + 1), *(source.randrange(-127, 128) for _ in range(32)))
        return b"".join(map(block, range(count // 32)))
    if dtype == "BF16":
        return b"".join(struct.pack("<f", x)[2:] for x in numbers)
    return struct.pack(f"<{count}{'f' if dtype == 'F32' else 'e'}", *numbers)


def main():
    alignment, source = int(sys.argv[2]) if len(sys.argv) > 2 else 32, random.Random(3)
    padded = lambda data: data + bytes(-len(data) % alignment)
    infos, data, metadata = b"", b"", list(pairs(alignment))
    for name, (dtype, shape) in SHAPES.items():
        dims = struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        infos += text(name) + dims + struct.pack("<IQ", TYPES[dtype], len(data))
        data += padded(values(dtype, math.prod(shape), source))
    header = b"GGUF" + struct.pack("<IQQ", 3, len(SHAPES), len(metadata)) + b"".join(metadata) + infos
    with open(sys.argv[1], "wb") as file:
        file.write(padded(header) + data)


if __name__ == "__main__":
    main()
