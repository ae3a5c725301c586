"""Checks a GGUF file that bsmm wrote from another one.

usage: gguf_check.py IN OUT plain TYPE   the changed tensors have the values of IN, rounded to TYPE
       gguf_check.py IN OUT MODEL        the changed tensors have the codes and scales of the safetensors file MODEL
All other tensors and all metadata must be those of IN, byte for byte."""
import pathlib
import struct
import sys

from model_values import Gguf, gguf_tensor, stored


def packed(codes, columns, group, scales, blocks):
    """Packs codes as ggml does. Each super-block has the scales of `blocks` blocks, followed by the
    codes of these blocks as low and high nibbles."""
    out, half = b"", group // 2
    assert columns % (group * blocks) == 0
    for block in range(0, len(codes) // group, blocks):
        out += bytes(scales[block : block + blocks])
        for at in range(block * group, (block + blocks) * group, group):
            out += bytes(codes[at + k] | codes[at + half + k] << 4 for k in range(half))
    return out


def expected(tensors, base):
    """Returns the type and bytes in GGUF of a weight of compressed-tensors (mxfp4) or ModelOpt (nvfp4)."""
    _, shape, data = tensors[f"{base}.weight_packed" if f"{base}.weight_packed" in tensors else f"{base}.weight"]
    dtype, _, scales = tensors[f"{base}.weight_scale"]
    codes, columns = [code for byte in data for code in (byte & 15, byte >> 4)], 2 * shape[-1]
    if dtype == "U8":
        return "MXFP4", packed(codes, columns, 32, scales, 1)
    return "NVFP4", packed(codes, columns, 16, scales, 4)


def check_metadata(source, made):
    assert list(source.pairs.items()) == list(made.pairs.items()), "metadata"
    assert made.version == 3 and len(made.data) == made.start + made.size, (len(made.data), made.start, made.size)


def round_to(dtype, values):
    if dtype == "BF16":
        words = struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values))
        return struct.pack(f"<{len(values)}H", *((w + 0x7FFF + (w >> 16 & 1)) >> 16 for w in words))
    return struct.pack(f"<{len(values)}{'f' if dtype == 'F32' else 'e'}", *values)


def check_plain(source, made, dtype):
    quantized = {name for name, entry in source.tensors.items() if entry[0] in ("MXFP4", "NVFP4", "Q8_0")}
    for name in quantized:
        values = gguf_tensor(*source.tensors[name]).values
        if f"{name[:-7]}.scale" in source.tensors:
            scales = struct.unpack("<f", source.tensors[f"{name[:-7]}.scale"][2][:4])
            values = [value * scales[0] for value in values]
        assert made.tensors[name][:2] == (dtype, source.tensors[name][1]), name
        assert made.tensors[name][2] == round_to(dtype, values), name
    return quantized


def check_quantized(made, model):
    tensors = stored(pathlib.Path(model))[0]
    changed = {name[: -len("_scale")] for name in tensors if name.endswith(".weight_scale")}
    for name in changed:
        dtype, data = expected(tensors, name[: -len(".weight")])
        assert made.tensors[name][0] == dtype and made.tensors[name][2] == data, name
        if dtype == "NVFP4":
            _, shape, data = made.tensors[f"{name[:-7]}.scale"]
            assert shape == [len(data) // 4] and data == tensors[f"{name}_scale_2"][2], name
    return changed


def main():
    source, made = Gguf(sys.argv[1]), Gguf(sys.argv[2])
    check_metadata(source, made)
    plain = sys.argv[3] == "plain"
    changed = check_plain(source, made, sys.argv[4]) if plain else check_quantized(made, sys.argv[3])
    scales = {f"{name[:-7]}.scale" for name in changed}
    for name, entry in source.tensors.items():
        assert name in changed | scales or made.tensors[name] == entry, name
    assert set(made.tensors) - scales == set(source.tensors) - scales, set(made.tensors) ^ set(source.tensors)
    print(len(changed), len(source.tensors) - len(changed))


main()
