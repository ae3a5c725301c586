"""Small float formats in NumPy: a table of every format's values, and rounding to a format."""
import numpy as np

# FORMATS maps a format's name to (exponent bits, mantissa bits, exponent bias, kind). The kind says
# which codes are special. fnuz: there is no -0, and code 0x80 is NaN. ieee: the largest exponent
# means infinity or NaN. fn: only the code of all ones is NaN. plain: there is neither infinity nor
# NaN.
FORMATS = {
    "e4m3": (4, 3, 7, "fn"), "e5m2": (5, 2, 15, "ieee"), "e4m3fnuz": (4, 3, 8, "fnuz"),
    "e5m2fnuz": (5, 2, 16, "fnuz"), "e2m1": (2, 1, 1, "plain"), "e2m3": (2, 3, 1, "plain"), "e3m2": (3, 2, 3, "plain"),
}


def table(name):
    """Returns the value of each code of the format, in double."""
    e, m, bias, kind = FORMATS[name]
    codes = np.arange(1 << (1 + e + m))
    sign = np.where(codes >> (e + m), -1.0, 1.0)
    exponent = (codes >> m) & ((1 << e) - 1)
    fraction = (codes & ((1 << m) - 1)) / (1 << m)
    v = sign * np.where(exponent == 0, 2.0 ** (1 - bias) * fraction, 2.0 ** (exponent - bias) * (1 + fraction))
    if kind == "fnuz":
        v[1 << (e + m)] = np.nan
    if kind == "fn":
        v[(codes & ~(1 << (e + m))) == (1 << (e + m)) - 1] = np.nan
    if kind == "ieee":
        v[exponent == (1 << e) - 1] = np.nan
        v[(exponent == (1 << e) - 1) & (fraction == 0)] = np.inf
        v *= np.where(np.isinf(v), sign, 1)
    return v


def decode(codes, name):
    return table(name)[codes]


def encode(values, name):
    """Returns the code nearest to each value, with ties to even. A value beyond the largest finite
    one gets the code of the largest finite one."""
    v = table(name)
    half = len(v) // 2
    finite = np.array([c for c in range(half) if np.isfinite(v[c])])
    grid = v[finite]
    a = np.minimum(np.abs(values), grid[-1])
    hi = np.clip(np.searchsorted(grid, a), 1, len(grid) - 1)
    down = a - grid[hi - 1]
    up = grid[hi] - a
    code = np.where((up < down) | ((up == down) & (hi % 2 == 0)), hi, hi - 1)
    return (code + np.where(np.signbit(values) & ((code > 0) | (FORMATS[name][3] != "fnuz")), half, 0)).astype(np.uint8)


def tensor_core_dot(a, b, kind):
    """Returns A B^T of FP8 values as wgmma of compute capability 9.0 computes it (docs/NUMERICS.md,
    "Tensor cores"). This is a second implementation, which shares no code with the simulator."""
    least = 1 - FORMATS[kind][2]
    exponent = lambda x: np.maximum(np.frexp(x)[1] - 1, least)
    total = np.zeros((a.shape[0], b.shape[0]))
    for k in range(0, a.shape[1], 32):
        x, y = a[:, None, k : k + 32], b[None, :, k : k + 32]
        terms = np.concatenate([x * y, total[:, :, None]], axis=2)
        tops = np.where(x * y != 0, exponent(x) + exponent(y), -1000)
        tops = np.maximum(tops.max(axis=2), np.where(total != 0, np.frexp(total)[1] - 1, -1000))
        total = np.trunc(np.ldexp(terms, 13 - tops[:, :, None])).sum(axis=2)
        total = np.ldexp(total, tops - 13)
        kept = 13 - (np.frexp(total)[1] - 1)
        total = np.ldexp(np.trunc(np.ldexp(total, kept)), -kept)
    return total


def pack4(codes):
    """Packs two 4-bit codes into each byte along the last axis. The even code takes the low bits."""
    return codes[..., 0::2] | (codes[..., 1::2] << 4)


def to_bf16(x):
    """Returns the bits of the nearest bfloat16."""
    u = np.asarray(x, np.float32).view(np.uint32)
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(b):
    return (b.astype(np.uint32) << 16).view(np.float32)
