# SPDX-License-Identifier: Apache-2.0
"""Element formats, packing and input types that all recipe golden files use. Everything is exact:
values are held in float64 where the order of float32 operations does not matter."""
import ml_dtypes
import numpy as np

# ELEMENTS maps an element format to (exponent bits, mantissa bits, exponent bias, code of the
# largest magnitude, exponent of the largest value).
ELEMENTS = {
    "e4m3": (4, 3, 7, 0x7E, 8),
    "e5m2": (5, 2, 15, 0x7B, 15),
    "e3m2": (3, 2, 3, 0x1F, 4),
    "e2m3": (2, 3, 1, 0x1F, 2),
    "e2m1": (2, 1, 1, 0x07, 2),
}
BITS = {name: 1 + e + m for name, (e, m, *_) in ELEMENTS.items()}
INPUT_TYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


def magnitudes(elem):
    """Returns the values of the codes without sign and without special values, in the order of the
    codes."""
    _, m, bias, top, _ = ELEMENTS[elem]
    code = np.arange(top + 1)
    field, frac = code >> m, (code & ((1 << m) - 1)) / 2.0**m
    return np.where(field == 0, frac * 2.0 ** (1 - bias), (1 + frac) * 2.0 ** (field - bias))


def max_value(elem):
    return magnitudes(elem)[-1]


def emax(elem):
    return ELEMENTS[elem][4]


def mantissa_bits(elem):
    return ELEMENTS[elem][1]


def encode_nearest_even(x, elem):
    """Rounds to the nearest code with ties to even. Saturates, and keeps the sign of zero. NaN
    gives the code after the largest one (0x7F for e4m3), which callers replace if the format has
    no NaN."""
    table = magnitudes(elem)
    middle = (table[:-1] + table[1:]) / 2
    a = np.abs(np.asarray(x, np.float64))
    # In a tie, this gives the lower of the two codes. The next lines choose the even one.
    below = np.searchsorted(middle, a, side="left")
    tie = np.isin(a, middle)
    code = below + (tie & (below % 2 == 1))
    code = np.where(np.isnan(a), len(table), code)
    sign = np.signbit(x).astype(np.int64) << (BITS[elem] - 1)
    return (code | sign).astype(np.uint8)


def encode_ties_down(x, elem="e2m1"):
    """Rounds |x| to the nearest code with ties toward zero: the code is the number of midpoints
    below |x|. NaN gives code 0."""
    table = magnitudes(elem)
    middle = (table[:-1] + table[1:]) / 2
    a = np.nan_to_num(np.abs(np.asarray(x, np.float64)), nan=0.0, posinf=1e300)
    return np.searchsorted(middle, a, side="left").astype(np.uint8)


def decode(codes, elem):
    table = magnitudes(elem)
    sign_bit = 1 << (BITS[elem] - 1)
    mag = codes & (sign_bit - 1)
    value = np.where(mag < len(table), table[np.minimum(mag, len(table) - 1)], np.nan)
    return np.where(codes & sign_bit, -value, value)


def decode_e4m3(codes):
    return decode(np.asarray(codes, np.uint8), "e4m3")


def round_e4m3(x):
    """Converts float32 to e4m3 codes, rounding to nearest even and saturating at 448."""
    return encode_nearest_even(np.asarray(x, np.float32), "e4m3")


def pack(codes, elem):
    """Packs rows of codes into bytes. Of two 4-bit codes the first takes the low nibble. Codes of 6
    bits are packed with the least significant bit first. Each row is padded with zero codes to
    whole bytes (4 bits) or to whole groups of three bytes (6 bits)."""
    bits = BITS[elem]
    if bits == 8:
        return codes.astype(np.uint8)
    per = {4: 2, 6: 4}[bits]
    rows, cols = codes.shape
    wide = np.zeros((rows, -(-cols // per) * per), np.uint32)
    wide[:, :cols] = codes
    groups = wide.reshape(rows, -1, per)
    word = sum(groups[:, :, i] << (bits * i) for i in range(per))
    out = np.stack([(word >> (8 * i)) & 0xFF for i in range(bits * per // 8)], axis=-1)
    return out.reshape(rows, -1).astype(np.uint8)


def unpack4(packed):
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(packed.shape[0], -1)


def unpack6(packed):
    b = packed.reshape(packed.shape[0], -1, 3).astype(np.uint32)
    word = b[..., 0] | b[..., 1] << 8 | b[..., 2] << 16
    codes = np.stack([(word >> (6 * i)) & 63 for i in range(4)], axis=-1)
    return codes.reshape(packed.shape[0], -1).astype(np.uint8)


def to_input(x, dtype):
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(x, np.float32).astype(INPUT_TYPES[dtype])


def bits_to_f32(bits):
    return np.asarray(bits, np.uint32).view(np.float32)
