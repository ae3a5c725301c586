"""Runs the pseudocode that AMD's manuals give for an instruction, on the bits of one lane. The
texts come from the PyPI package tinygrad. Each text is translated to Python once. Values that
carry a type are objects of class Bits, which have a width. Typed views of them (.u32, .f16) are
Python integers and NumPy floats."""
import math
import re

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
    """Stands for the pseudocode's INF.f16, INF.f32 and INF.f64, and compares as an infinite double."""

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
    """Selects the architecture's 8-bit float formats: those of gfx942 are the fnuz ones."""
    if arch == "gfx942":
        SMALL.update(fp8="e4m3fnuz", bf8="e5m2fnuz")


SMALL = {"fp8": "e4m3", "bf8": "e5m2", "fp4": "e2m1", "fp6": "e2m3", "bf6": "e3m2"}


def small_to(kind, wide):
    def convert(code, scale=127):
        v = float(formats.table(SMALL[kind])[int(code)]) * (2.0 ** (int(scale) - 127) if int(scale) != 255 else math.nan)
        return to_bf16(v) if wide == "bf16" else {"f32": np.float32, "f16": np.float16}[wide](v)
    return convert


def to_small(kind, wide):
    """Returns a function that rounds a float to a small format, to nearest even. A value too large
    for the format becomes NaN or infinity where the format has them."""
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


# ---- translation ----
TOKEN = re.compile(r"\s*(\d+'[UIFB]|\d+'\d+\.\d+|\d+'\d+[UIF]?|\d+'0x[0-9a-fA-F]+|0x[0-9a-fA-F]+U?L*|\d+\.\d*(?:[eE][-+]?\d+)?[FL]?|\d+[UL]*|[A-Za-z_]\w*|"
                   r"\*\*|<<|>>|<=|>=|==|!=|<>|&&|\|\||\+=|-=|\*=|[-+*/%&|^~!<>=?:.(){}\[\],])")
TYPE = re.compile(r"^(bf|fp|[uifb])(\d+)$")


class Parser:
    def __init__(self, text):
        self.t, at = [], 0
        text = text.strip()
        while at < len(text):
            m = TOKEN.match(text, at)
            if not m:
                raise SyntaxError(text[at:at + 20])
            self.t.append(m.group(1))
            at = m.end()
        self.k = 0

    def peek(self):
        return self.t[self.k] if self.k < len(self.t) else None

    def next(self):
        self.k += 1
        return self.t[self.k - 1]

    def expect(self, x):
        if self.next() != x:
            raise SyntaxError(f"no {x} in {self.t}")

    LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!=", "<>"], ["<", ">", "<=", ">="], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]
    PYTHON = {"||": "or", "&&": "and", "<>": "!="}

    def expression(self):
        c = self.binary(0)
        if self.peek() == "?":
            self.next()
            a = self.expression()
            self.expect(":")
            return f"({a} if {c} else {self.expression()})"
        return c

    def binary(self, level):
        if level == len(self.LEVELS):
            return self.unary()
        a = self.binary(level + 1)
        while self.peek() in self.LEVELS[level]:
            op = self.next()
            b = self.binary(level + 1)
            a = f"lesser_or_greater({a}, {b})" if op == "<>" else f"op({op!r}, {a}, {b})" if op in "+ - * / % << >> & | ^".split() else f"({a} {self.PYTHON.get(op, op)} {b})"
        return a

    def unary(self):
        t = self.peek()
        if t in ("-", "~", "!", "+"):
            self.next()
            v = self.unary()
            return {"-": f"(-{v})", "~": f"inv({v})", "!": f"(not {v})", "+": v}[t]
        v = self.postfix()
        if self.peek() == "**":
            self.next()
            return f"pow({v}, {self.unary()})"
        return v

    def literal(self, t):
        if "'" in t:
            width, rest = t.split("'")
            if rest in ("U", "I", "F", "B"):
                self.expect("(")
                # The literal gives the float's bits, not its value.
                if rest == "F" and self.peek().startswith("0x"):
                    v = f"view({self.next()}, 'f', {width})"
                    self.expect(")")
                    return v
                v = self.expression()
                self.expect(")")
                return f"cast({width}, {rest!r}, {v})"
            if "." in rest:
                return f"np.float{width}({rest})"
            return str(int(rest.rstrip("UIF"), 0))
        if t.startswith("0x"):
            return str(int(t.rstrip("UL"), 16))
        if "." in t:
            return f"np.float32({t.rstrip('FL')})" if t.endswith("F") else f"np.float64({t.rstrip('FL')})"
        return t.rstrip("UL")

    def postfix(self):
        t = self.next()
        if t == "(":
            v = f"({self.expression()})"
            self.expect(")")
        elif t == "{":
            items = [self.expression()]
            while self.peek() == ",":
                self.next()
                items.append(self.expression())
            self.expect("}")
            widths = [re.search(r", (\d+)\)$", i) or re.match(r"cast\((\d+)", i) for i in items]
            if not all(widths):
                ranges = [re.match(r"get\(\w+, (\d+), (\d+), None, None\)$", i) for i in items]
                widths = [w.group(1) if w else str(int(r.group(1)) - int(r.group(2)) + 1) if r else "16" if i == "0" else None for w, r, i in zip(widths, ranges, items)]
            else:
                widths = [w.group(1) for w in widths]
            return "concat(" + ", ".join(f"({i}, {w})" for i, w in zip(items, widths)) + ")"
        elif t[0].isdigit():
            return self.literal(t)
        elif self.peek() == "(":
            self.next()
            args = []
            while self.peek() != ")":
                args.append(self.expression())
                if self.peek() == ",":
                    self.next()
            self.next()
            return f"{t}({', '.join(args)})"
        else:
            v = t
        return self.access(v)

    def access(self, v):
        """Parses what may follow a name: a range of bits [hi : lo], a .type, or both."""
        hi = lo = kind = width = None
        while self.peek() in (".", "["):
            if self.next() == ".":
                m = TYPE.match(self.next())
                if not m:
                    raise SyntaxError("member")
                if kind is not None:
                    v, hi = f"get({v}, {hi}, {lo}, {kind!r}, {width})", None
                kind, width = {"bf": "u", "fp": "u"}.get(m.group(1), m.group(1)), int(m.group(2))
                continue
            if kind is not None or hi is not None:
                v, kind, width = f"get({v}, {hi}, {lo}, {kind!r}, {width})", None, None
            hi = lo = self.expression()
            if self.peek() == ":":
                self.next()
                lo = self.expression()
            self.expect("]")
        return f"get({v}, {hi}, {lo}, {kind!r}, {width})"

    def target(self):
        """Parses the left side of an assignment and returns its name, hi, lo, kind and width."""
        name = self.next()
        hi = lo = None
        kind, width = None, None
        while self.peek() in (".", "["):
            if self.next() == ".":
                m = TYPE.match(self.next())
                kind, width = {"bf": "u", "fp": "u"}.get(m.group(1), m.group(1)), int(m.group(2))
            else:
                hi = lo = self.expression()
                if self.peek() == ":":
                    self.next()
                    lo = self.expression()
                self.expect("]")
        return name, hi, lo, kind, width


def op(o, a, b):
    a = a.value if isinstance(a, Bits) else a
    b = b.value if isinstance(b, Bits) else b
    fa, fb = isinstance(a, np.floating), isinstance(b, np.floating)
    if fa and not fb: b = type(a)(b)
    if fb and not fa: a = type(b)(a)
    if fa and fb and type(a) is not type(b):
        wide = max(type(a), type(b), key=lambda t: t(0).itemsize)
        a, b = wide(a), wide(b)
    if o == "+": return a + b
    if o == "-": return a - b
    if o == "*": return a * b
    if o == "/": return a / b if isinstance(a, np.floating) else a // b
    if o == "%": return a % b
    if o == "<<": return int(a) << int(b)
    if o == ">>": return int(a) >> int(b)
    return int(a) & int(b) if o == "&" else int(a) | int(b) if o == "|" else int(a) ^ int(b)


def get(v, hi, lo, kind, width):
    if isinstance(v, Infinity):
        return FLOATS[width][0](np.inf) if kind == "f" else v
    if isinstance(v, NotANumber):
        return FLOATS[width][0](np.nan)
    if isinstance(v, Bits):
        return v.get(hi, lo, kind, width)
    if hi is None and kind is None:
        return v
    if isinstance(v, np.floating):
        if kind == "f" and hi is None:
            return FLOATS[width][0](v)
        v = to_bits(v, "f", v.dtype.itemsize * 8)
    if hi is None and kind in "ui":
        return view(int(v), kind, width)
    return Bits(int(v) & ((1 << 128) - 1), 128).get(hi, lo, kind, width)


def concat(*items):
    """Joins values of known widths into one. The first item takes the highest bits."""
    if any(width is None for _, width in items):
        return [item for item, _ in items]
    v = 0
    for item, width in items:
        raw = to_bits(item, "f", width) if isinstance(item, np.floating) else int(item) & ((1 << width) - 1)
        v = v << width | raw
    return Bits(v, sum(w for _, w in items))


def translate(text):
    """Returns the Python source of a function that runs the pseudocode. It sets the names that the
    pseudocode uses."""
    lines, depth = [], 1
    text = re.sub(r"//[^\n]*", "", text)
    for old, new in (("VGPR[laneId][VDST.u32]", "D0"), ("VGPR[laneId][SRC0.u32]", "S0"), ("WAVE_MODE.IEEE", "0"), ("EXEC.u64[laneId] = D0", "D0"),
                     ("+INF", "INF"), ("+0.0", "0.0"), ("in = S0", "seed = S0"), ("(in ", "(seed "), ("(in[", "(seed["), (".u4[3]", "[3]"), ("-INF.f", "-INF.f")):
        text = text.replace(old, new)
    text = re.sub(r"(S0\.f\d+) \* 2\.0F? \*\* (S1\.i\d+)", r"ldexp(\1, \2)", text)
    text = re.sub(r"\w+ = lambda\(.*?\) \((?:[^()]|\([^()]*\))*\);", "", text, flags=re.S)
    text = re.sub(r"SDWA_SRC0_SEL == (BYTE\d\.b3|WORD\d\.b\d)", "0", text)
    text = re.sub(r"\s*\n(?=\s*[&|+?:*-])", " ", text)
    for line in re.split(r";|\n", text):
        line = line.strip()
        if not line or line.startswith("declare"):
            m = re.match(r"declare (\w+) : (\d+)'[UIFB]$", line)
            if m:
                lines.append("    " * depth + f"{m.group(1)} = Bits(0, {m.group(2)})")
            elif line:
                raise SyntaxError(line)
            continue
        m = re.match(r"(if|elsif) (.*) then$", line)
        if m:
            depth -= m.group(1) == "elsif"
            lines.append("    " * depth + f"{'if' if m.group(1) == 'if' else 'elif'} {Parser(m.group(2)).expression()}:")
            depth += 1
        elif line == "else":
            lines.append("    " * (depth - 1) + "else:")
        elif line in ("endif", "endfor"):
            lines.append("    " * depth + "pass")
            depth -= 1
        elif line == "break":
            lines.append("    " * depth + "break")
        elif m := re.match(r"for (\w+) in (.*?) : (.*) do$", line):
            lines.append("    " * depth + f"for {m.group(1)} in range(int({Parser(m.group(2)).expression()}), int({Parser(m.group(3)).expression()}) + 1):")
            depth += 1
        else:
            lines.append("    " * depth + assignment(line))
    return "def run(env):\n    globals().update(env)\n" + "\n".join(lines) + "\n"


STATE = ("D0", "D1", "SCC", "VCC", "EXEC")


def assignment(line):
    p = Parser(line)
    name, hi, lo, kind, width = p.target()
    o = p.next()
    value = p.expression()
    if p.peek() is not None or o not in ("=", "+=", "-="):
        raise SyntaxError(line)
    if o != "=":
        value = f"op({o[0]!r}, get({name}, {hi}, {lo}, {kind!r}, {width}), {value})"
    if hi is None and name not in STATE and kind is None:
        return f"{name} = assign({name!r}, {value}, globals())"
    if name not in STATE and hi is None:
        return f"{name} = Bits(0, {width}).set({value}, None, None, {kind!r}, {width})"
    return f"{name} = bits({name!r}, globals()).set({value}, {hi}, {lo}, {kind or 'u'!r}, {width})"


def assign(name, value, scope):
    old = scope.get(name)
    return old.set(value) if isinstance(old, Bits) and old.width > 1 and not isinstance(value, np.floating) else value


def bits(name, scope):
    return scope[name] if isinstance(scope.get(name), Bits) else Bits(0, 64)


def compile_text(text):
    source = translate(text).replace("    globals().update(env)\n", "")
    names = sorted(set(re.findall(r"^\s*(?:for )?([A-Za-z_]\w*)(?= =| in )", source, re.M)))
    source = source.replace("def run(env):\n", "def run():\n    global " + ", ".join(names) + "\n" if names else "def run():\n")
    scope = dict(ENV, get=get, op=op, concat=concat, assign=assign, bits=bits)
    exec(compile(source, "pseudocode", "exec"), scope)

    def run(state):
        for n in names:
            scope.pop(n, None)
        scope.update(ENV)
        scope.update(state)
        scope["run"]()
        return {k: scope[k] for k in STATE if k in scope}
    return run
