# SPDX-License-Identifier: Apache-2.0
"""Writes the golden files of the element codecs, with answers from gfloat, ml_dtypes, numpy, torch
and torchao.

    python -m venv VENV && VENV/bin/pip install -r requirements.txt
    VENV/bin/python make_elements.py

Where several libraries encode the same input, the script stops unless they agree. README.md
describes the inputs. It also lists the known differences, and whose answer is then stored.
"""
from dataclasses import dataclass

import gfloat
import ml_dtypes
import numpy as np
import torch
from gfloat import formats as gf
from torchao.prototype.mx_formats import kernels as torchao
from torchao.prototype.mx_formats.kernels import pack_uint4

from store import Manifest

RANDOM_COUNT = 1_000_000
# This is the seed of random inputs. A format's own seed is SEED plus the index of the format in
# FORMATS.
SEED = 0x62736D6D
# NO_ANSWER is stored as the code of a NaN input if the format has no NaN. None of these formats has
# the code 0xFF.
NO_ANSWER = 0xFF
ALL_16_BITS = np.arange(1 << 16, dtype=np.uint16)


def fnuz(name, precision, bias):
    """Describes an fnuz format for gfloat, which knows none, with the parameters that ml_dtypes
    has."""
    return gfloat.FormatInfo(
        name, 8, precision, bias=bias, is_signed=True, domain=gfloat.Domain.Finite, has_nz=False,
        num_high_nans=0, has_subnormals=True, is_twos_complement=False)


@dataclass
class Format:
    """Describes an element format and its name in each library. torch_mode says how torch's cast
    treats large values, if torch has a cast."""
    name: str
    info: gfloat.FormatInfo
    np_type: type
    torch_type: torch.dtype = None
    torch_mode: str = None
    torchao_name: str = None
    modes: tuple = ("sat", "nonsat")

    @property
    def has_nan(self):
        return self.info.num_nans > 0

    @property
    def codes(self):
        return np.arange(1 << self.info.k, dtype=np.uint16 if self.info.k > 8 else np.uint8)


def small(name, info, np_type, torchao_name):
    """Describes a format with neither Inf nor NaN. Every library saturates when it encodes to such
    a format."""
    return Format(name, info, np_type, torchao_name=torchao_name, modes=("sat",))


FORMATS = [
    Format("e4m3", gf.format_info_ocp_e4m3, ml_dtypes.float8_e4m3fn, torch.float8_e4m3fn, "sat"),
    Format("e4m3fnuz", fnuz("e4m3fnuz", 4, 8), ml_dtypes.float8_e4m3fnuz, torch.float8_e4m3fnuz,
           "nonsat"),
    Format("e5m2", gf.format_info_ocp_e5m2, ml_dtypes.float8_e5m2, torch.float8_e5m2, "nonsat"),
    Format("e5m2fnuz", fnuz("e5m2fnuz", 3, 16), ml_dtypes.float8_e5m2fnuz, torch.float8_e5m2fnuz,
           "nonsat"),
    small("e3m2", gf.format_info_ocp_e3m2, ml_dtypes.float6_e3m2fn, "f6_e3m2"),
    small("e2m3", gf.format_info_ocp_e2m3, ml_dtypes.float6_e2m3fn, "f6_e2m3"),
    small("e2m1", gf.format_info_ocp_e2m1, ml_dtypes.float4_e2m1fn, "f4"),
    Format("e8m0", gf.format_info_ocp_e8m0, ml_dtypes.float8_e8m0fnu, torch.float8_e8m0fnu,
           "nonsat"),
    Format("f16", gf.format_info_binary16, np.float16, torch.float16, "nonsat"),
    Format("bf16", gf.format_info_bfloat16, ml_dtypes.bfloat16, torch.bfloat16, "nonsat"),
]


# The functions from here on decode elements.

def decode_answers(f):
    codes = f.codes
    answers = {
        "gfloat": gfloat.decode_ndarray(f.info, codes.astype(np.int64)).astype(np.float32),
        "numpy" if f.np_type is np.float16 else "ml_dtypes": codes.view(f.np_type).astype(np.float32),
    }
    if f.torch_type:
        signed = codes.view(np.int16) if f.info.k > 8 else codes
        answers["torch"] = torch.from_numpy(signed).view(f.torch_type).to(torch.float32).numpy()
    if f.torchao_name:
        convert = getattr(torchao, f.torchao_name + "_unpacked_to_f32")
        answers["torchao"] = convert(torch.from_numpy(codes)).numpy()
    return answers


def decode(f):
    """Decodes all codes of a format to f32, which can represent every value of every format. All
    NaNs become the same NaN."""
    answers = {k: np.where(np.isnan(v), np.float32("nan"), v) for k, v in decode_answers(f).items()}
    first = answers["gfloat"]
    for source, values in answers.items():
        same = values.view(np.uint32) == first.view(np.uint32)
        assert same.all(), (f.name, source, np.flatnonzero(~same), values[~same])
    return first, "+".join(answers)


# The functions from here on encode elements.

def clip(f, x):
    """Saturates inputs for libraries that do not saturate themselves: clamps them to the format's
    range. NaN stays NaN."""
    low = f.info.smallest if f.name == "e8m0" else -f.info.max
    return np.clip(x, x.dtype.type(low), x.dtype.type(f.info.max))


def gfloat_codes(f, x, mode):
    if f.name == "e8m0":
        # gfloat rounds ties of e8m0 to even, but ml_dtypes and torch round them up. gfloat is
        # therefore not compared here, but in check_e8m0, which leaves out ties.
        return None
    x = x.astype(np.float64)
    x = x if f.has_nan else np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf)
    rounded = gfloat.round_ndarray(f.info, x, gfloat.RoundMode.TiesToEven, mode == "sat")
    return gfloat.encode_ndarray(f.info, rounded)


def numpy_codes(f, x, mode):
    if x.dtype == np.float64 and f.info.k <= 16 and f.np_type is not np.float16:
        return None  # ml_dtypes converts double to f32 first and so rounds twice.
    x = clip(f, x) if mode == "sat" else x
    with np.errstate(all="ignore"):
        return x.astype(f.np_type).view(f.codes.dtype)


def torch_codes(f, x, mode):
    if mode != f.torch_mode or x.dtype == np.float64:
        return None
    bits = torch.from_numpy(x).to(f.torch_type).view(torch.uint16 if f.info.k > 8 else torch.uint8)
    return bits.numpy()


def torchao_codes(f, x, mode):
    if not f.torchao_name or x.dtype == np.float64:
        return None
    x = np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return getattr(torchao, f"f32_to_{f.torchao_name}_unpacked")(torch.from_numpy(x)).numpy()


ORACLES = {"gfloat": gfloat_codes, "ml_dtypes": numpy_codes, "torch": torch_codes,
           "torchao": torchao_codes}


def comparable(f, source, x):
    """Tells for each input whether a library's answer is compared. Inputs for which a known
    difference exists are left out."""
    if f.name == "e8m0" and source == "torch":
        return ~(x <= 0)  # torch drops the sign and encodes zero as 0x00.
    return f.has_nan | ~np.isnan(x)


def encode(f, x, mode, values):
    """Encodes the inputs with every library and checks that the codes agree, where any two NaN
    codes count as equal. Returns the first library's codes."""
    answers = {}
    for source, oracle in ORACLES.items():
        codes = oracle(f, x, mode)
        if codes is not None:
            answers["numpy" if f.np_type is np.float16 and source == "ml_dtypes" else source] = codes
    first = next(iter(answers.values())).astype(f.codes.dtype)
    for source, codes in answers.items():
        both_nan = np.isnan(values[codes]) & np.isnan(values[first])
        wrong = (codes != first) & ~both_nan & comparable(f, source, x)
        assert not wrong.any(), (f.name, mode, source, x[wrong][:8], codes[wrong][:8],
                                 first[wrong][:8])
    if not f.has_nan:
        first = np.where(np.isnan(x), np.uint8(NO_ANSWER), first)
    return first, "+".join(answers)


def check_e8m0(f, x, codes):
    """Compares codes of e8m0 with gfloat's. It leaves out ties, which gfloat rounds to even, and
    inputs near the ends of e8m0's range."""
    power, mantissa = x.view(np.uint32) >> 23, x.view(np.uint32) & 0x7FFFFF
    ask = (power >= 1) & (power < 254) & (mantissa != 0x400000)
    rounded = gfloat.round_ndarray(f.info, x[ask].astype(np.float64))
    assert (gfloat.encode_ndarray(f.info, rounded) == codes[ask]).all()


# The functions from here on make the inputs of encoding.

def field(value):
    return int(np.float32(value).view(np.uint32) >> 23)


def random_inputs(seed, low, high):
    """Returns the random inputs that README.md describes. They are sorted by bit pattern, so that
    the expected codes compress well."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, RANDOM_COUNT + 1, dtype=np.uint64) * np.uint64(
            0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    bits = (z >> np.uint64(32)).astype(np.uint32)
    exponent = np.uint32(low) + (bits & np.uint32(0x7FFFFFFF)) % np.uint32(high - low + 1)
    near = (bits & np.uint32(1 << 31)) | exponent << np.uint32(23) | z.astype(np.uint32) & 0x7FFFFF
    bits[1::2] = near[1::2]
    return np.sort(bits).view(np.float32)


def boundary_inputs(f, values):
    """Returns inputs at which rounding to the format may go wrong, with both signs: every value;
    every midpoint between neighboring values; the first value and the first midpoint beyond the
    largest value; the f32 below and above each of these; the smallest and largest f32; Inf; and
    NaNs whose payload would be lost if it were truncated."""
    finite = np.unique(np.abs(values[np.isfinite(values)].astype(np.float64)))
    step = finite[-1] if f.name == "e8m0" else finite[-1] - finite[-2]
    nodes = np.concatenate([[0.0], finite, finite[-1:] + step])
    centres = np.concatenate([nodes, (nodes[1:] + nodes[:-1]) / 2])
    exact = centres[centres < 2.0**128].astype(np.float32)
    assert (exact.astype(np.float64) == centres[centres < 2.0**128]).all()
    bits = exact.view(np.uint32).astype(np.int64)
    special = [0x00000001, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF]
    around = np.concatenate([bits - 1, bits, bits + 1, special])
    magnitude = np.unique(around[around >= 0]).astype(np.uint32)
    return np.concatenate([magnitude, magnitude | np.uint32(1 << 31)]).view(np.float32)


def neighbour_inputs(boundaries):
    """Returns the doubles just below and just above each boundary between two codes. A codec that
    first rounds a double to f32 would get the boundary itself, and could return a wrong code."""
    x = boundaries.astype(np.float64)
    return np.stack([np.nextafter(x, -np.inf), np.nextafter(x, np.inf)], axis=1).reshape(-1)


def inputs_of(manifest, f, row, values):
    """Yields the name, the manifest's description and the array of each set of inputs."""
    yield "f16", "f16", ALL_16_BITS.view(np.float16).astype(np.float32)
    yield "bf16", "bf16", ALL_16_BITS.view(ml_dtypes.bfloat16).astype(np.float32)
    boundaries = boundary_inputs(f, values)
    stored = manifest.put(f.name, boundaries.view(np.uint32))
    yield "boundaries", f"f32:{stored}", boundaries
    if f.name != "e8m0":
        yield "neighbours", f"neighbours:{stored}", neighbour_inputs(boundaries)
    least = np.min(np.abs(values[np.isfinite(values) & (values != 0)]))
    low, high = max(field(least) - 2, 0), min(field(f.info.max) + 2, 254)
    yield "random", f"random:{SEED + row}:{low}:{high}", random_inputs(SEED + row, low, high)


# The functions from here on make the golden data of packing codes into bytes.

def add_packing(manifest, f):
    """Adds a case that packs random codes. In each byte of two 4-bit codes, the first code takes
    the low nibble. 6-bit codes are packed with the least significant bit first."""
    codes = random_inputs(SEED, 0, 254).view(np.uint32)[::997].astype(np.uint8)
    codes = (codes & np.uint8((1 << f.info.k) - 1))[: len(codes) // 4 * 4]
    bits = np.unpackbits(codes[:, None], axis=1, bitorder="little")[:, : f.info.k]
    packed, source = np.packbits(bits.reshape(-1), bitorder="little"), "numpy"
    if f.info.k == 4:
        assert (pack_uint4(torch.from_numpy(codes[None, :])).numpy().reshape(-1) == packed).all()
        source = "torchao+numpy"
    stored = manifest.put(f.name, codes)
    manifest.add(f"pack/{f.name}", "pack", f.name, "-", source, f"u8:{stored}", packed)


def main():
    manifest = Manifest("elements")
    for row, f in enumerate(FORMATS):
        values, source = decode(f)
        manifest.add(f"decode/{f.name}", "decode", f.name, "-", source, "codes",
                     values.view(np.uint32))
        for name, spec, x in inputs_of(manifest, f, row, values):
            for mode in f.modes:
                codes, source = encode(f, x, mode, values)
                if f.name == "e8m0" and mode == "nonsat":
                    check_e8m0(f, x, codes)
                manifest.add(f"encode/{f.name}/{mode}/{name}", "encode", f.name, mode, source, spec,
                             codes)
        if f.torchao_name:
            add_packing(manifest, f)
    manifest.save()


if __name__ == "__main__":
    # The inputs include signalling NaNs and DBL_MAX, for which numpy would print warnings.
    with np.errstate(invalid="ignore", over="ignore"):
        main()
