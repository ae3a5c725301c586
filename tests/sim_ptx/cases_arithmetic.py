"""Triton kernels for arithmetic that the cases of tests/sim_gfx9 do not test: 16-bit and 64-bit
integers, unsigned comparisons, and functions of NVIDIA's libdevice. NumPy computes the expected
results."""
import numpy as np
import triton
import triton.language as tl
from cases import elementwise, seed
from triton.language.extra.cuda import libdevice

INTEGERS = {"i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64}
COUNT = 1200


@triton.jit
def integers(x, y, z, n, BLOCK: tl.constexpr, OP: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=1)
    b = tl.load(y + at, mask=at < n, other=1)
    if OP == "subtract":
        r = a - b
    elif OP == "multiply_add":
        r = a * b + b
    elif OP == "quotient":
        r = a // b
    elif OP == "remainder":
        r = a % b
    elif OP == "least":
        r = tl.minimum(a, b)
    elif OP == "greatest":
        r = tl.maximum(a, b)
    elif OP == "high":
        r = libdevice.mulhi(a, b)
    elif OP == "clz":
        r = libdevice.clz(a)
    elif OP == "popc":
        r = libdevice.popc(a)
    elif OP == "brev":
        r = libdevice.brev(a)
    elif OP == "mul24":
        r = libdevice.mul24(a, b)
    elif OP == "sad":
        r = libdevice.sad(a, b, (a ^ b).to(tl.uint32))
    elif OP == "byte_perm":
        r = libdevice.byte_perm(a, b, 0x7250)
    elif OP == "hadd":
        r = libdevice.hadd(a, b)
    else:
        r = tl.where(a < b, a, b) + tl.where(a == b, 1, 0) + tl.where(a >= 2, b, a) + tl.where(a != b, 3, 0)
    tl.store(z + at, r, mask=at < n)


@triton.jit
def rounded(x, y, z, n, BLOCK: tl.constexpr, OP: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=1)
    b = tl.load(y + at, mask=at < n, other=1)
    if OP == "add_rd":
        r = libdevice.add_rd(a, b)
    elif OP == "add_ru":
        r = libdevice.add_ru(a, b)
    elif OP == "mul_rz":
        r = libdevice.mul_rz(a, b)
    elif OP == "mul_ru":
        r = libdevice.mul_ru(a, b)
    elif OP == "fma_rz":
        r = libdevice.fma_rz(a, b, a)
    elif OP == "fma_rd":
        r = libdevice.fma_rd(a, b, a)
    elif OP == "fma_ru":
        r = libdevice.fma_ru(a, b, a)
    elif OP == "rcp_rd":
        r = libdevice.rcp_rd(a)
    elif OP == "rcp_ru":
        r = libdevice.rcp_ru(a)
    elif OP == "copysign":
        r = libdevice.copysign(a, b)
    else:
        r = libdevice.rcp_rz(a)
    tl.store(z + at, r, mask=at < n)


def big(a):
    return np.array([int(v) for v in a], object)


def truncated(a, b):
    return np.array([abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b)], object)


def expected(op, a, b, bits):
    """Returns the results as Python integers. The kernel stores their low `bits` bits."""
    every = (1 << bits) - 1
    return {"subtract": lambda: a - b, "multiply_add": lambda: a * b + b, "quotient": lambda: truncated(a, b),
            "remainder": lambda: a - truncated(a, b) * b, "least": lambda: np.minimum(a, b), "greatest": lambda: np.maximum(a, b),
            "high": lambda: a * b >> bits, "clz": lambda: np.array([bits - (int(v) & every).bit_length() for v in a], object),
            "popc": lambda: np.array([bin(int(v) & every).count("1") for v in a], object),
            "brev": lambda: np.array([int(f"{int(v) & every:0{bits}b}"[::-1], 2) for v in a], object),
            "mul24": lambda: (((a & 0xFFFFFF) ^ 0x800000) - 0x800000) * (((b & 0xFFFFFF) ^ 0x800000) - 0x800000),
            "sad": lambda: abs(a - b) + ((a ^ b) & every), "hadd": lambda: a + b >> 1,
            "byte_perm": lambda: np.array([int.from_bytes([(x & every | (y & every) << 32) >> 8 * s & 255 for s in (0, 5, 2, 7)], "little")
                                           for x, y in zip(a, b)], object),
            "compare": lambda: np.minimum(a, b) + (a == b) + np.where(a >= 2, b, a) + 3 * (a != b)}[op]()


def integer_case(op, kind, out=None):
    dtype = INTEGERS[kind]
    info, rng = np.iinfo(dtype), seed(op, kind)
    a = rng.integers(info.min, info.max, COUNT, dtype=dtype, endpoint=True)
    b = (rng.integers(info.min, info.max, COUNT, dtype=dtype, endpoint=True) >> rng.integers(0, info.bits - 1, COUNT).astype(dtype)).astype(dtype)
    a[:9], b[:9] = [0, 1, info.min, info.max, 2, 3, info.max - 1, info.min, info.max], [1, info.max, 2, info.max, 5, 3, 7, info.max, info.min]
    b[b == 0] = 3
    if op in ("quotient", "remainder"):
        b[b == np.array(-1).astype(dtype)] = 5  # The quotient of the least number by -1 overflows.
    target = INTEGERS[out or kind]
    value = expected(op, big(a), big(b), info.bits)
    mask = (1 << np.iinfo(target).bits) - 1
    expect = np.array([int(v) & mask for v in value], np.uint64).astype(f"u{target().itemsize}").view(target)
    return elementwise(f"integer_{op}_{kind}", integers, [kind, kind, out or kind], [a, b], np.zeros(COUNT, target), expect, dict(OP=op))


def direct(exact, dtype, way):
    """Rounds the numbers `exact`, which have a higher precision, to `dtype`: toward zero (rz), down
    (rd) or up (ru)."""
    near = exact.astype(dtype)
    wide = near.astype(np.longdouble)
    down = np.where(wide > exact, np.nextafter(near, dtype(-np.inf)), near)
    up = np.where(wide < exact, np.nextafter(near, dtype(np.inf)), near)
    return {"rd": down, "ru": up, "rz": np.where(exact < 0, up, down)}[way].astype(dtype)


def rounded_case(op):
    rng = seed(op)
    a, b = [(rng.standard_normal(COUNT) * 2.0 ** rng.integers(-3, 4, COUNT)).astype(np.float32) for _ in "ab"]
    x, y = a.astype(np.longdouble), b.astype(np.longdouble)
    if op == "copysign":
        expect = np.copysign(a, b)
    else:
        name, way = op.split("_")
        exact = {"add": lambda: x + y, "mul": lambda: x * y, "fma": lambda: x * y + x, "rcp": lambda: 1 / x}[name]()
        expect = direct(exact, np.float32, way)
    return elementwise(f"rounded_{op}", rounded, ["fp32"] * 3, [a, b], np.zeros(COUNT, np.float32), expect, dict(OP=op))


def all_cases():
    for kind in INTEGERS:
        for op in "subtract", "multiply_add", "quotient", "remainder", "least", "greatest", "compare":
            yield integer_case(op, kind)
    for kind in "i32", "u32", "i64", "u64":
        yield integer_case("high", kind)
    for op in "clz", "popc":
        yield integer_case(op, "i32")
        yield integer_case(op, "i64", "i32")
    for op, kind in ("brev", "i32"), ("brev", "i64"), ("mul24", "i32"), ("byte_perm", "i32"), ("hadd", "i32"), ("hadd", "u32"):
        yield integer_case(op, kind)
    yield integer_case("sad", "i32", "u32")
    for op in "add_rd", "add_ru", "mul_rz", "mul_ru", "fma_rz", "fma_rd", "fma_ru", "rcp_rd", "rcp_ru", "rcp_rz", "copysign":
        yield rounded_case(op)
