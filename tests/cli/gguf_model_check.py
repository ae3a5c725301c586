"""Compares GGUF files of one model. usage: gguf_model_check.py THEIRS OURS [tensors]

THEIRS is the file of llama.cpp's converter. OURS must have the same tensors, byte for byte, and the same metadata. With
`tensors`, the metadata may differ."""
import struct
import sys

from model_values import Gguf

# These entries may differ. general.name and general.size_label are texts for people. add_sep_token
# says whether a separator is added, but this tokenizer has none.
OTHERS = {"general.name", "general.size_label", "tokenizer.ggml.add_sep_token"}


def is_near(one, other):
    """Tells whether two arrays of RoPE factors are nearly equal. llama.cpp's converter computes
    them in f32 with torch, so they need not be identical."""
    pairs = zip(*(struct.unpack(f"<{len(part) // 4}f", part) for part in (one, other)))
    return len(one) == len(other) and all(abs(a - b) <= 1e-6 * abs(a) for a, b in pairs)


def main():
    theirs, ours = Gguf(sys.argv[1]), Gguf(sys.argv[2])
    assert theirs.tensors.keys() == ours.tensors.keys(), theirs.tensors.keys() ^ ours.tensors.keys()
    for name, (dtype, shape, data) in theirs.tensors.items():
        found = ours.tensors[name]
        assert found[:2] == (dtype, shape), (name, found[:2], dtype, shape)
        assert found[2] == data or name == "rope_freqs.weight" and is_near(found[2], data), name
    if sys.argv[3:] == ["tensors"]:
        return
    differing = {key for key in theirs.pairs.keys() | ours.pairs.keys() if theirs.pairs.get(key) != ours.pairs.get(key)}
    assert differing <= OTHERS, differing - OTHERS
    assert len(theirs.pairs) > 20 and "rope_freqs.weight" in theirs.tensors


main()
