"""Splits a GGUF file into parts as llama.cpp's gguf-split does: the first part has all metadata.
usage: gguf_parts.py FILE PREFIX PARTS [KEY=VALUE]... The options change metadata of the last part."""
import struct
import sys

from gguf_model import text
from model_values import GGUF_TYPES, Gguf

NUMBERS = {name: number for number, (name, _, _) in GGUF_TYPES.items()}


def part(model, names, pairs):
    padded = lambda data: data + bytes(-len(data) % 32)
    infos, data = b"", b""
    for name in names:
        dtype, shape, values = model.tensors[name]
        dims = struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        infos += text(name) + dims + struct.pack("<IQ", NUMBERS[dtype], len(data))
        data += padded(values)
    metadata = b"".join(text(key) + value for key, value in pairs.items())
    return padded(b"GGUF" + struct.pack("<IQQ", 3, len(names), len(pairs)) + metadata + infos) + data


def main():
    path, prefix, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    model = Gguf(path)
    names, changed = list(model.tensors), dict(option.split("=") for option in sys.argv[4:])
    for i in range(count):
        numbers = {"split.no": i, "split.count": count, "split.tensors.count": len(names)}
        if i == count - 1:
            numbers |= {key: int(value) for key, value in changed.items()}
        pairs = dict(model.pairs) if i == 0 else {}
        pairs |= {key: struct.pack("<IH", 2, value) for key, value in numbers.items()}
        chosen = names[i * len(names) // count : (i + 1) * len(names) // count]
        with open(f"{prefix}-{i + 1:05}-of-{count:05}.gguf", "wb") as file:
            file.write(part(model, chosen, pairs))


if __name__ == "__main__":
    main()
