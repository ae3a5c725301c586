"""Reads the values of safetensors and GGUF files without bsmm and without NumPy. The rules are those of safetensors,
of compressed-tensors and ModelOpt (compressors, qtensor), and of ggml-common.h and ggml-quants.c."""
import json
import math
import pathlib
import struct

E2M1 = [sign * value for sign in (1, -1) for value in (0, 0.5, 1, 1.5, 2, 3, 4, 6)]
GGUF_TYPES = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 8: ("Q8_0", 32, 34), 26: ("I32", 1, 4), 30: ("BF16", 1, 2),
              39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36)}
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Tensor:
    """Holds the values of a tensor, and for each value the largest magnitude that its block can
    represent."""

    def __init__(self, shape, values, limits=None):
        self.shape, self.values = tuple(shape), values
        self.limits = limits or [math.inf] * len(values)


def e4m3(code):
    exponent, fraction = code >> 3 & 15, code & 7
    if exponent == 15 and fraction == 7:
        return math.nan
    value = fraction / 8 * 2.0**-6 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 7)
    return -value if code & 128 else value


def e8m0(code):
    return math.nan if code == 255 else 2.0 ** (code - 127)


def plain(dtype, data):
    if dtype == "BF16":
        words = struct.unpack(f"<{len(data) // 2}H", data)
        return list(struct.unpack(f"<{len(words)}f", struct.pack(f"<{len(words)}I", *(w << 16 for w in words))))
    code, size = {"F32": ("f", 4), "F16": ("e", 2), "I64": ("q", 8), "I32": ("i", 4)}[dtype]
    return list(struct.unpack(f"<{len(data) // size}{code}", data))


def nibbles(data):
    return [E2M1[code] for byte in data for code in (byte & 15, byte >> 4)]


def scaled(shape, elements, most, scales):
    """Multiplies elements by the scales of their blocks of one row."""
    block = len(elements) // len(scales)
    return Tensor(shape, [x * scales[i // block] for i, x in enumerate(elements)],
                  [abs(most * scales[i // block]) for i in range(len(elements))])


# The functions from here on read safetensors files.


def stored(path):
    """Reads a safetensors file. Returns a map of names to (dtype, shape, bytes), and the
    metadata."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    cut = lambda entry: data[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]]
    return {name: (entry["dtype"], entry["shape"], cut(entry)) for name, entry in header.items()}, metadata


def scales_of(tensors, base):
    """Returns the block scales of a weight, multiplied by its global scale."""
    dtype, _, codes = tensors[f"{base}.weight_scale"]
    if dtype == "F8_E4M3":
        scales = [e4m3(code) for code in codes]
    else:
        scales = [e8m0(code) for code in codes] if dtype == "U8" else plain(dtype, codes)
    if f"{base}.weight_global_scale" in tensors:
        divisor = plain("F32", tensors[f"{base}.weight_global_scale"][2])[0]
        scales = [scale / divisor for scale in scales]
    if f"{base}.weight_scale_2" in tensors:
        factor = plain("F32", tensors[f"{base}.weight_scale_2"][2])[0]
        scales = [scale * factor for scale in scales]
    return scales


def safetensors_values(tensors):
    found = {}
    for name, (dtype, shape, data) in tensors.items():
        base, _, end = name.rpartition(".")
        if end == "weight_packed" or (end == "weight" and f"{base}.weight_scale" in tensors):
            packed = dtype == "U8"
            elements = nibbles(data) if packed else [e4m3(code) for code in data]
            whole = [*shape[:-1], shape[-1] * (2 if packed else 1)]
            found[f"{base}.weight"] = scaled(whole, elements, 6 if packed else 448, scales_of(tensors, base))
        elif end not in ("weight_scale", "weight_global_scale", "weight_scale_2"):
            found[name] = Tensor(shape, plain(dtype, data))
    return found


# The functions from here on read GGUF files.


class Gguf:
    """Holds a GGUF file: the bytes of its metadata, and a map of names to (type, shape from the
    outermost dimension, bytes)."""

    def __init__(self, path):
        self.data, self.at = pathlib.Path(path).read_bytes(), 4
        assert self.data[:4] == b"GGUF"
        self.version, tensors, pairs = self.take("I"), self.take("Q"), self.take("Q")
        self.pairs = dict(self.pair() for _ in range(pairs))
        infos = [self.info() for _ in range(tensors)]
        align = struct.unpack("<I", self.pairs["general.alignment"][4:])[0] if "general.alignment" in self.pairs else 32
        self.start = -(-self.at // align) * align
        self.tensors, self.size = {}, 0
        for name, shape, (dtype, block, size), offset in infos:
            assert offset % align == 0
            count = math.prod(shape) // block * size
            self.size = max(self.size, -(-(offset + count) // align) * align)
            self.tensors[name] = dtype, shape, self.data[self.start + offset :][:count]

    def take(self, code):
        size = struct.calcsize(f"<{code}")
        self.at += size
        return struct.unpack(f"<{code}", self.data[self.at - size : self.at])[0]

    def text(self):
        length = self.take("Q")
        self.at += length
        return self.data[self.at - length : self.at]

    def skip(self, kind):
        if kind == 8:
            self.text()
        elif kind == 9:
            kind, count = self.take("I"), self.take("Q")
            for _ in range(count):
                self.skip(kind)
        else:
            self.take(NUMBERS[kind])

    def pair(self):
        key, start = self.text().decode(), self.at
        self.skip(self.take("I"))
        return key, self.data[start : self.at]

    def info(self):
        name, count = self.text().decode(), self.take("I")
        shape = [self.take("Q") for _ in range(count)][::-1]
        return name, shape, GGUF_TYPES[self.take("I")], self.take("Q")

    def values(self):
        return {name: gguf_tensor(*entry) for name, entry in self.tensors.items() if name[-6:] != ".scale"}


def gguf_mxfp4(data):
    elements, scales = [], []
    for at in range(0, len(data), 17):
        codes = data[at + 1 : at + 17]
        scales.append(e8m0(data[at]))
        elements += [E2M1[code & 15] for code in codes] + [E2M1[code >> 4] for code in codes]
    return elements, scales


def gguf_nvfp4(data):
    elements, scales = [], []
    for at in range(0, len(data), 36):
        scales += [e4m3(code) for code in data[at : at + 4]]
        for part in range(at + 4, at + 36, 8):
            codes = data[part : part + 8]
            elements += [E2M1[code & 15] for code in codes] + [E2M1[code >> 4] for code in codes]
    return elements, scales


def gguf_tensor(dtype, shape, data):
    if dtype == "Q8_0":
        blocks = [data[at : at + 34] for at in range(0, len(data), 34)]
        return Tensor(shape, [plain("F16", b[:2])[0] * q for b in blocks for q in struct.unpack("<32b", b[2:])])
    if dtype in ("MXFP4", "NVFP4"):
        elements, scales = (gguf_mxfp4 if dtype == "MXFP4" else gguf_nvfp4)(data)
        return scaled(shape, elements, 6, scales)
    return Tensor(shape, plain(dtype, data))


def model_values(path):
    """Returns a map of names to Tensor for a file, or for a folder with safetensors files."""
    path = pathlib.Path(path)
    if path.suffix == ".gguf":
        return Gguf(path).values()
    tensors = {}
    for file in sorted(path.glob("*.safetensors")) if path.is_dir() else [path]:
        tensors |= stored(file)[0]
    return safetensors_values(tensors)
