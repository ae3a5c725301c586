"""The values and functions of AMD's pseudocode (pseudocode.py). A value without a type is an object
of class Bits, which has a width. Its typed views (.u32, .f16) are Python integers and NumPy
floats."""
import math

import numpy as np

import formats

np.seterr(all="ignore")
FLOATS = {16: (np.float16, np.uint16), 32: (np.float32, np.uint32), 64: (np.float64, np.uint64)}


def view(bits, kind, width):
    bits &= (1 << width) - 1
    if kind == "f":
        f, u = FLOATS[width]
        return np.array(bits, u).view(f)[()]
    return bits - (1 << width) if kind == "i" and bits >> (width - 1) else bits


def to_bits(value, kind, width):
    if isinstance(value, Bits):
        value = value.value
    if kind == "f":
        f, u = FLOATS[width]
        return int(np.array(value, f).view(u)[()])
    if isinstance(value, np.floating):
        return int(np.array(value).view(FLOATS[value.dtype.itemsize * 8][1])[()]) & ((1 << width) - 1)
    return int(value) & ((1 << width) - 1)


class Bits:
    def __init__(self, value=0, width=64):
        self.value, self.width = value, width

    def get(self, hi=None, lo=None, kind=None, width=None):
        v = self.value
        if hi is not None:
            hi, lo = int(hi), int(lo)
            if hi < lo:
                v, hi, lo = int(f"{v & ((1 << (lo + 1)) - 1):0{lo + 1}b}"[::-1], 2) >> 0, lo, hi
            v = v >> lo & ((1 << (hi - lo + 1)) - 1)
            width = width or hi - lo + 1
        if kind is None:
            return v
        return view(v, kind, width or self.width)

    def set(self, value, hi=None, lo=None, kind="u", width=None):
        if hi is None:
            width = width or self.width
            hi, lo = width - 1, 0
        hi, lo = max(int(hi), int(lo)), min(int(hi), int(lo))
        n = hi - lo + 1
        if isinstance(value, list):  # The values of a list are parts of equal width.
            each = n // len(value)
            value = concat(*[(item, each) for item in value])
        bits = to_bits(value, kind, width or n) & ((1 << n) - 1)
        self.value = (self.value & ~(((1 << n) - 1) << lo)) | bits << lo
        return self

    def __int__(self):
        return self.value

    __index__ = __int__


def concat(*items):
    """Concatenates values of known widths. The first item takes the highest bits."""
    if any(width is None for _, width in items):
        return [item for item, _ in items]
    v = 0
    for item, width in items:
        raw = to_bits(item, "f", width) if isinstance(item, np.floating) else int(item) & ((1 << width) - 1)
        v = v << width | raw
    return Bits(v, sum(w for _, w in items))


def cast(width, kind, v):
    if isinstance(v, Bits):
        if kind == "F":
            return view(v.value, "f", width)
        v = v.value
    if kind == "F":
        return FLOATS[width][0](v)
    if isinstance(v, (np.floating, float)):
        if math.isnan(v):
            return 0
        lo, hi = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if kind == "I" else (0, (1 << width) - 1)
        return int(max(lo, min(hi, math.trunc(float(v)) if math.isfinite(v) else (hi if v > 0 else lo))))
    v = int(v) & ((1 << width) - 1)
    return v - (1 << width) if kind == "I" and v >> (width - 1) else v


def parts(v):
    width = v.dtype.itemsize * 8
    e = {16: 5, 32: 8, 64: 11}[width]
    bits = to_bits(v, "f", width)
    return bits >> (width - 1), bits >> (width - 1 - e) & ((1 << e) - 1), bits & ((1 << (width - 1 - e)) - 1), e, width - 1 - e


def rounded_fma(a, b, c):
    from fractions import Fraction
    if np.isfinite(a) and np.isfinite(b) and np.isinf(c):
        return c
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        return type(a)(float(a) * float(b) + float(c))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return type(a)(float(a) * float(b) + float(c))
    r = round_fraction(exact, type(a))
    return type(a)(np.copysign(r, 1.0 if exact > 0 else -1.0))


def round_fraction(x, dtype):
    """Rounds an exact fraction to the nearest float of the type, with ties to even, in a single
    rounding."""
    info = np.finfo(dtype)
    e = max(x.numerator.bit_length() - x.denominator.bit_length(), info.minexp)
    for e in (e - 1, e, e + 1):
        if abs(x) < 2 ** max(e + 1, info.minexp + 1) if e + 1 > info.minexp else False:
            break
    e = max(e, info.minexp)
    from fractions import Fraction
    unit = Fraction(2) ** (e - info.nmant)
    q = x / unit
    n = round(q)
    value = n * unit
    if abs(value) > Fraction(float(info.max)):
        return dtype(np.inf if x > 0 else -np.inf)
    return dtype(float(value))


def ldexp(v, n):
    return type(v)(np.ldexp(np.float64(v), int(n))) if abs(int(n)) < 3000 else type(v)(np.ldexp(np.float64(v), 3000 if n > 0 else -3000))


def is_nan(v):
    return bool(np.isnan(v))


def signed_zero_less(a, b):
    return a < b or (a == b and np.signbit(a) and not np.signbit(b))


def minimum(a, b):
    if is_nan(a): return b
    if is_nan(b): return a
    return a if signed_zero_less(a, b) else b


def maximum(a, b):
    if is_nan(a): return b
    if is_nan(b): return a
    return b if signed_zero_less(a, b) else a


def narrow(kind):
    return lambda v: np.float16(v) if kind == 16 else np.float32(v)


def to_int(lo, hi):
    def convert(v):
        return 0 if is_nan(v) else int(max(lo, min(hi, math.trunc(float(v)) if np.isfinite(v) else (hi if v > 0 else lo))))
    return convert


def norm(lo, hi, scale):
    def convert(v):
        if is_nan(v): return 0
        return int(max(lo, min(hi, np.rint(max(-1.0 if lo else 0.0, min(1.0, float(v))) * scale))))
    return convert


def signext_from_bit(v, n):
    v, n = int(v), int(n)
    return 0 if n == 0 else (v & ((1 << n) - 1)) - ((v >> (n - 1) & 1) << n)


class Infinity:
    """Represents the names INF.f16, INF.f32 and INF.f64 of the pseudocode. It compares like an
    infinite double."""

    def __neg__(self):
        return -np.float64("inf")

    def __eq__(self, other):
        return float(other) == math.inf


class NotANumber:
    pass


def to_bf16(v):
    u = to_bits(np.float32(v), "f", 32)
    return 0x7FC0 | u >> 16 if is_nan(v) else (u + 0x7FFF + (u >> 16 & 1)) >> 16


def least(a, b, f):
    return a if is_nan(a) else b if is_nan(b) else f(a, b)


def sad(a, b, masked):
    pairs = [(int(a) >> k & 255, int(b) >> k & 255) for k in range(0, 32, 8)]
    return sum(abs(x - y) for x, y in pairs if y or not masked)


def set_arch(arch):
    """Selects the 8-bit float formats of the architecture. On gfx942 they are the fnuz formats."""
    if arch == "gfx942":
        SMALL.update(fp8="e4m3fnuz", bf8="e5m2fnuz")


SMALL = {"fp8": "e4m3", "bf8": "e5m2", "fp4": "e2m1", "fp6": "e2m3", "bf6": "e3m2"}


def small_to(kind, wide):
    def convert(code, scale=127):
        v = float(formats.table(SMALL[kind])[int(code)]) * (2.0 ** (int(scale) - 127) if int(scale) != 255 else math.nan)
        return to_bf16(v) if wide == "bf16" else {"f32": np.float32, "f16": np.float16}[wide](v)
    return convert


def to_small(kind, wide):
    """Returns a function that rounds a float to a small format, to nearest even. A value that is
    too large becomes NaN or infinity if the format has them."""
    def convert(v, scale=127):
        name = SMALL[kind]
        if wide == "bf16" and not isinstance(v, np.floating):
            v = view(int(v) << 16, "f", 32)
        x = float(v) / 2.0 ** (int(scale) - 127) if int(scale) != 255 else math.nan
        table = formats.table(name)
        top, sign = float(np.nanmax(np.where(np.isfinite(table), table, np.nan))), len(table) // 2 if np.signbit(v) else 0
        if math.isnan(x) and not name.endswith("fnuz"):
            return {"e4m3": sign | 0x7F, "e5m2": sign | 0x7F}.get(name, sign | (len(table) // 2 - 1))
        step = {"e4m3": 32, "e5m2": 8192}.get(name, 0)
        if name.endswith("fnuz") and (math.isnan(x) or abs(x) >= top + {"e4m3fnuz": 8, "e5m2fnuz": 4096}[name]):
            return 0x80
        if name in ("e4m3", "e5m2") and abs(x) >= top + step / 2:
            return sign | (0x7F if name == "e4m3" else 0x7C)
        return int(formats.encode(np.array([x]), name)[0])
    return convert


ENV = {
    "Bits": Bits, "cast": cast, "view": view, "np": np, "PI": math.pi, "fma": rounded_fma, "ldexp": ldexp, "isNAN": is_nan,
    "exponent": lambda v: parts(v)[1], "sign": lambda v: parts(v)[0], "trunc": lambda v: np.trunc(v), "floor": lambda v: np.floor(v),
    "ceil": lambda v: np.ceil(v), "fract": lambda v: v - np.floor(v), "abs": abs, "sqrt": np.sqrt, "isEven": lambda v: bool(np.isfinite(v)) and int(v) % 2 == 0,
    "cvtToQuietNAN": lambda v: v, "isQuietNAN": lambda v: is_nan(v) and bool(parts(v)[2] >> (parts(v)[4] - 1)),
    "isSignalNAN": lambda v: is_nan(v) and not parts(v)[2] >> (parts(v)[4] - 1), "isINF": lambda v: bool(np.isinf(v)),
    "LT_NEG_ZERO": signed_zero_less, "GT_NEG_ZERO": lambda a, b: signed_zero_less(b, a), "signext_from_bit": signext_from_bit,
    "f16_to_f32": np.float32, "f32_to_f16": np.float16, "f32_to_f64": np.float64, "f64_to_f32": np.float32,
    "i32_to_f32": np.float32, "u32_to_f32": np.float32, "i32_to_f64": np.float64, "u32_to_f64": np.float64,
    "u16_to_f16": np.float16, "i16_to_f16": np.float16, "u8_to_u32": int, "u4_to_u32": int, "u16_to_u32": int, "i8_to_i32": int,
    "i4_to_i32": int, "i16_to_i32": int, "i32_to_i16": lambda v: max(-32768, min(32767, int(v))), "u32_to_u16": lambda v: min(65535, int(v)), "bf16_to_f32": lambda v: view(int(v) << 16, "f", 32),
    "f32_to_i32": to_int(-2 ** 31, 2 ** 31 - 1), "f64_to_i32": to_int(-2 ** 31, 2 ** 31 - 1), "f32_to_u32": to_int(0, 2 ** 32 - 1),
    "f64_to_u32": to_int(0, 2 ** 32 - 1), "f16_to_i16": to_int(-2 ** 15, 2 ** 15 - 1), "f16_to_u16": to_int(0, 65535),
    "f32_to_u8": to_int(0, 255), "f32_to_snorm": norm(-32767, 32767, 32767), "f32_to_unorm": norm(0, 65535, 65535),
    "f16_to_snorm": norm(-32767, 32767, 32767), "f16_to_unorm": norm(0, 65535, 65535), "pow": lambda a, b: type(a)(2.0) ** b,
    "mantissa": lambda v: np.frexp(v)[0], "log2": np.log2, "sin": np.sin, "cos": np.cos,
    "ABSDIFF": lambda a, b: abs(int(a) - int(b)), "SAT8": lambda v: max(0, min(255, int(v))), "INF": Infinity(), "NAN": NotANumber(),
    "ROUND_MODE": 0, "ROUND_NEAREST_EVEN": 0, "ROUND_TOWARD_ZERO": 1,
    "signext": lambda v: int(v), "f32_to_bf16": lambda v: to_bf16(v), "v_minimum_f32": lambda a, b: least(a, b, minimum), "v_maximum_f32": lambda a, b: least(a, b, maximum),
    "v_minimum3_f16": lambda a, b, c: least(least(a, b, minimum), c, minimum), "v_maximum3_f16": lambda a, b, c: least(least(a, b, maximum), c, maximum),
    "v_prng_b32": lambda v: ((int(v) << 1) ^ (197 if int(v) >> 31 & 1 else 0)) & 0xFFFFFFFF,
    "v_min_f32": minimum, "v_max_f32": maximum, "v_min_f16": minimum, "v_max_f16": maximum, "v_min_i32": min, "v_max_i32": max,
    "v_min_u32": min, "v_max_u32": max, "v_min_i16": min, "v_max_i16": max, "v_min_u16": min, "v_max_u16": max,
    "v_max3_f32": lambda a, b, c: maximum(maximum(a, b), c), "v_max3_f16": lambda a, b, c: maximum(maximum(a, b), c),
    "v_min3_f32": lambda a, b, c: minimum(minimum(a, b), c), "v_min3_f16": lambda a, b, c: minimum(minimum(a, b), c),
    "v_max3_i32": max, "v_max3_u32": max, "v_max3_i16": max, "v_max3_u16": max, 
    "v_sad_u8": lambda a, b, c: min(0xFFFFFFFF, sad(a, b, False) + int(c)), "v_msad_u8": lambda a, b, c: sad(a, b, True) + int(c),
    "BYTE_PERMUTE": lambda data, sel: byte_permute(int(data), int(sel)), "s_ff1_i32_b32": None,
    "lesser_or_greater": lambda a, b: bool(a < b or a > b), "not_": lambda v: not v, "inv": lambda v: ~int(v),
}
for small in SMALL:
    for wide in ("f32", "f16", "bf16"):
        for suffix in ("", "_scale"):
            ENV[f"{small}_to_{wide}{suffix}"] = small_to(small, wide)
            ENV[f"{wide}_to_{small}{suffix}"] = to_small(small, wide)


def byte_permute(data, sel):
    sel &= 255
    if sel >= 13: return 255
    if sel == 12: return 0
    if sel >= 8: return 255 * (data >> (16 * (sel - 8) + 15) & 1)
    return data >> 8 * sel & 255
