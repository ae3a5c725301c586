"""Lists the GEMMs and conversions that run as Triton kernels, each with its result in double by
NumPy. A function makes each case for one architecture. It returns None if Triton cannot compile
the case."""
import functools

import numpy as np

import formats as F
import kernels as K

CASES = []


class Case:
    """Holds one test case: a Triton kernel, the types and constants of its arguments in order,
    its operands, and the expected result."""

    def __init__(self, name, fn, types, constants, grid, args, out, expect, tolerance=0.0, warps=4, dim=0, absolute=0.0,
                 stages=2, exact=False, options=None):
        self.name, self.fn, self.types, self.constants, self.grid = name, fn, types, constants, grid
        self.args, self.out, self.expect, self.tolerance, self.absolute = args, out, expect, tolerance, absolute
        self.options = dict(num_warps=warps, num_stages=stages, **(options or {}))
        if dim:
            self.options["matrix_instr_nonkdim"] = dim


def add(*rows):
    def wrap(make):
        for row in rows:
            CASES.append((make, row))
        return make
    return wrap


def seed(*key):
    return np.random.default_rng(sum(map(ord, repr(key))))


def operand(rng, shape, kind):
    """Returns random elements twice: as the bits that the kernel reads, and as numbers in double."""
    if kind in F.FORMATS:
        codes = F.encode(rng.standard_normal(shape) * 2, kind)
        return codes, F.decode(codes, kind)
    if kind == "bf16":
        bits = F.to_bf16(rng.standard_normal(shape))
        return bits, F.from_bf16(bits).astype(np.float64)
    if kind == "i8":
        v = rng.integers(-128, 128, shape).astype(np.int8)
        return v, v.astype(np.float64)
    v = rng.standard_normal(shape).astype({"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}[kind])
    return v, v.astype(np.float64)


TRITON = {"e4m3": "fp8e4nv", "e5m2": "fp8e5", "e4m3fnuz": "fp8e4b8", "e5m2fnuz": "fp8e5b16"}


def dot_case(name, fn, arch, kind, shape, block, warps, dim, accumulate=None):
    M, N, KK = shape
    rng = seed(kind, shape, block)
    a, av = operand(rng, (M, KK), kind)
    b, bv = operand(rng, (N, KK), kind)
    expect = av @ bv.T
    out = {"i8": np.int32, "fp64": np.float64}.get(kind, np.float32)
    acc = {"i8": "int32", "fp64": "float64"}.get(kind, "float32")
    import triton.language as tl
    element = "*" + TRITON.get(kind, kind)
    result = {"i8": "*i32", "fp64": "*fp64"}.get(kind, "*fp32")
    unit = {"fp64": 2.0 ** -52, "i8": 0.0}.get(kind, 2.0 ** -23)
    bound = KK * unit * (np.abs(av) @ np.abs(bv).T)
    if fn is K.dot_tf32:
        bound = bound + 2.0 ** -9 * (np.abs(av) @ np.abs(bv).T)
    grid = (-(-M // block[0]), -(-N // block[1]), 1)
    case = Case(name, fn, [element, element, result, "i32", "i32", "i32"],
                dict(BM=block[0], BN=block[1], BK=block[2], ACC=getattr(tl, acc)), grid, [a, b, None, M, N, KK],
                np.zeros((M, N), out), expect, absolute=bound, warps=warps, dim=dim)
    if kind in ("e4m3", "e5m2"):
        case.wgmma = lambda: F.tensor_core_dot(av, bv, kind)
    return case


DOTS = [(kind, block, warps, dim)
        for kind in ("fp8", "bf8", "bf16", "fp16")
        for block, warps, dim in (((32, 32, 64), 1, 16), ((64, 64, 64), 4, 32), ((128, 128, 64), 8, 16), ((128, 128, 32), 4, 32))]
DOTS += [("fp32", (64, 64, 32), 4, 16), ("fp32", (64, 64, 32), 4, 32), ("i8", (64, 64, 64), 4, 16), ("i8", (64, 64, 64), 4, 32),
         ("fp64", (32, 32, 16), 4, 16), ("bf16", (16, 64, 64), 2, 0), ("fp16", (256, 128, 32), 8, 0),
         ("fp8", (128, 256, 128), 8, 0), ("bf16", (128, 128, 32), 1, 0)]


@add(*DOTS)
def dot(arch, kind, block, warps, dim):
    fnuz = "fnuz" if arch == "gfx942" else ""
    kind = {"fp8": "e4m3" + fnuz, "bf8": "e5m2" + fnuz}.get(kind, kind)
    shape = (2 * block[0], block[1], 4 * block[2])
    return dot_case(f"dot_{kind}_{'x'.join(map(str, block))}_w{warps}_d{dim}", K.dot, arch, kind, shape, block, warps, dim)


@add(("fp32", (64, 64, 32), 4, 16), ("fp32", (64, 64, 32), 4, 32))
def dot_tf32(arch, kind, block, warps, dim):
    if arch != "gfx942":
        return None
    return dot_case(f"dot_tf32_d{dim}", K.dot_tf32, arch, kind, (64, 64, 128), block, warps, dim)


@add(("bf16", (64, 64, 32)), ("fp16", (64, 32, 64)), ("fp32", (32, 32, 32)))
def dot_masked(arch, kind, block):
    return dot_case(f"dot_masked_{kind}", K.dot_masked, arch, kind, (77, 45, 101), block, 4, 0)


def scaled_operand(rng, shape, kind):
    codes = F.encode(rng.standard_normal(shape), kind) if kind != "e2m1" else rng.integers(0, 16, shape).astype(np.uint8)
    values = F.decode(codes, kind)
    scales = rng.integers(120, 134, (shape[0], shape[1] // 32)).astype(np.uint8)
    values = values * np.repeat(2.0 ** (scales.astype(np.float64) - 127), 32, axis=1)
    return F.pack4(codes) if kind == "e2m1" else codes, scales, values


def shuffle(scales, dim):
    """Reorders block scales to the layout cdna4_mfma16 or cdna4_mfma32 of docs/LAYOUTS.md (dim 16
    or 32)."""
    R, C = scales.shape
    if dim == 32:
        return np.ascontiguousarray(scales.reshape(R // 32, 32, C // 8, 4, 2).transpose(0, 2, 4, 1, 3))
    return np.ascontiguousarray(scales.reshape(R // 32, 2, 16, C // 8, 2, 4).transpose(0, 3, 5, 2, 4, 1))


def scaled_case(arch, fa, fb, dim, shuffled, block, warps):
    M, N, KK = block[0], 2 * block[1], 2 * block[2]
    rng = seed(fa, fb, dim)
    a, sa, av = scaled_operand(rng, (M, KK), fa)
    b, sb, bv = scaled_operand(rng, (N, KK), fb)
    unit = 2.0 ** -23 if arch == "gfx950" else 2.0 ** -23
    constants = dict(FA=fa, FB=fb, PA=2 if fa == "e2m1" else 1, PB=2 if fb == "e2m1" else 1, BM=block[0], BN=block[1], BK=block[2])
    if shuffled:
        sa, sb = shuffle(sa, dim), shuffle(sb, dim)
        constants["DIM"] = dim
    types = [{"e2m1": "*u8"}.get(f, "*" + TRITON.get(f, "")) for f in (fa, fb)]
    name = f"dot_scaled{'_shuffled' if shuffled else ''}_{fa}_{fb}_d{dim}"
    return Case(name, K.dot_scaled_shuffled if shuffled else K.dot_scaled, [types[0], "*u8", types[1], "*u8", "*fp32", "i32", "i32", "i32"],
                constants, (M // block[0], N // block[1], 1), [a, sa, b, sb, None, M, N, KK], np.zeros((M, N), np.float32),
                av @ bv.T, absolute=KK * unit * (np.abs(av) @ np.abs(bv).T), warps=warps, dim=dim)


PAIRS = [(fa, fb) for fa in ("e2m1", "e4m3", "e5m2") for fb in ("e2m1", "e4m3", "e5m2")]


@add(*[(fa, fb, dim) for fa, fb in PAIRS for dim in (16, 32)])
def dot_scaled(arch, fa, fb, dim):
    if arch == "gfx942" and dim == 32 and (fa, fb) != ("e2m1", "e2m1"):
        return None
    return scaled_case(arch, fa, fb, dim, False, (64, 64, 256), 4)


@add(*[(fa, fb, dim) for fa, fb in PAIRS[:5] for dim in (16, 32)])
def dot_scaled_shuffled(arch, fa, fb, dim):
    return scaled_case(arch, fa, fb, dim, True, (128, 128, 256), 8) if arch == "gfx950" else None


def elementwise(name, fn, kinds, inputs, out, expect, constants, **more):
    n = inputs[0].size
    block = 512
    return Case(name, fn, ["*" + k for k in kinds] + ["i32"], dict(BLOCK=block, **constants), (-(-n // block), 1, 1),
                [*inputs, None, n], out, expect, **more)


@add(("e4m3",), ("e5m2",), ("e4m3fnuz",), ("e5m2fnuz",))
def widen(arch, kind):
    """Converts every code of an 8-bit float format to f32."""
    if (arch == "gfx942") != kind.endswith("fnuz") and kind != "e5m2":
        return None
    import triton.language as tl
    x = np.arange(256).astype(np.uint8)
    return elementwise(f"widen_{kind}", K.convert, [TRITON[kind], "fp32"], [x], np.zeros(256, np.float32), F.decode(x, kind), dict(TO=tl.float32))


@add(("e4m3", "fp32"), ("e5m2", "fp32"), ("e4m3fnuz", "fp32"), ("e5m2fnuz", "fp32"), ("e4m3", "fp16"), ("e5m2", "bf16"), ("e4m3fnuz", "bf16"))
def narrow(arch, kind, source):
    """Rounds floats to an 8-bit format. Some of them are ties. The results are compared as numbers,
    so different bits of the same number count as equal."""
    if (arch == "gfx942") != kind.endswith("fnuz"):
        return None
    import triton.language as tl
    rng = seed(kind)
    grid = F.table(kind)
    grid = np.sort(grid[np.isfinite(grid)])
    v = np.concatenate([grid, (grid[1:] + grid[:-1]) / 2, rng.standard_normal(2000) * 4])
    v = v[np.abs(v) <= grid.max()].astype(np.float32)
    bits = {"fp32": v, "fp16": v.astype(np.float16), "bf16": F.to_bf16(v)}[source]
    exact = {"fp32": v, "fp16": v.astype(np.float16).astype(np.float64), "bf16": F.from_bf16(F.to_bf16(v))}[source]
    case = elementwise(f"narrow_{source}_{kind}", K.convert, [source, TRITON[kind]], [bits], np.zeros(v.size, np.uint8),
                       F.decode(F.encode(exact, kind), kind), dict(TO=getattr(tl, {"e4m3": "float8e4nv", "e5m2": "float8e5", "e4m3fnuz": "float8e4b8", "e5m2fnuz": "float8e5b16"}[kind])))
    case.read = lambda out: F.decode(out, kind)
    return case


@add(("fp32", "bf16"), ("fp32", "fp16"), ("fp16", "fp32"), ("bf16", "fp32"), ("fp64", "fp32"), ("fp32", "fp64"), ("i32", "fp32"),
     ("fp32", "i32"), ("fp64", "i32"), ("i64", "fp32"), ("fp32", "i8"), ("i16", "fp16"), ("u32", "fp64"))
def cast(arch, source, target):
    import triton.language as tl
    types = {"fp32": np.float32, "fp16": np.float16, "fp64": np.float64, "i32": np.int32, "i64": np.int64, "i8": np.int8,
             "i16": np.int16, "u32": np.uint32}
    names = {"fp32": "float32", "fp16": "float16", "fp64": "float64", "bf16": "bfloat16", "i32": "int32", "i8": "int8"}
    rng = seed(source, target)
    v = rng.standard_normal(1500) * 100
    x = np.abs(v) if source == "u32" else v
    x = x.astype(types.get(source, np.float32))
    values = x.astype(np.float64)
    if source == "bf16":
        x = F.to_bf16(x)
        values = F.from_bf16(x).astype(np.float64)
    expect = np.trunc(values) if target[0] == "i" else values
    if target == "bf16":
        expect = F.from_bf16(F.to_bf16(values))
    else:
        expect = expect.astype(types[target])
    case = elementwise(f"cast_{source}_{target}", K.convert, [source, target], [x], np.zeros(1500, types.get(target, np.uint16)), expect,
                       dict(TO=getattr(tl, names[target])))
    if target == "bf16":
        case.read = F.from_bf16
    return case


UNARY = {"exp": (np.exp, 4e-6), "exp2": (np.exp2, 4e-6), "log": (lambda v: np.log(np.abs(v)), 4e-6), "log2": (lambda v: np.log2(np.abs(v)), 4e-6),
         "sin": (np.sin, 4e-6), "cos": (np.cos, 4e-6), "sqrt": (lambda v: np.sqrt(np.abs(v)), 1e-6), "sqrt_rn": (lambda v: np.sqrt(np.abs(v)), 6e-8),
         "rsqrt": (lambda v: 1 / np.sqrt(np.abs(v)), 1e-6), "floor": (np.floor, 0), "ceil": (np.ceil, 0),
         "sigmoid": (lambda v: 1 / (1 + np.exp(-v)), 1e-6), "erf": (None, 1e-6)}


@add(*[(op, kind) for op in UNARY for kind in ("fp32",)], ("exp", "fp64"), ("sqrt", "fp64"), ("log", "fp64"), ("sin", "fp64"))
def unary(arch, op, kind):
    import math
    dtype = {"fp32": np.float32, "fp64": np.float64}[kind]
    x = (seed(op).standard_normal(1000) * 3).astype(dtype)
    f, tolerance = UNARY[op]
    f = f or np.vectorize(math.erf)
    return elementwise(f"{op}_{kind}", K.unary, [kind, kind], [x], np.zeros(1000, dtype), f(x.astype(np.float64)), dict(OP=op),
                       tolerance=tolerance if kind == "fp32" else 1e-13, absolute=tolerance if kind == "fp32" else 1e-14)


def floordiv(a, b):
    return np.trunc(a.astype(np.float64) / b).astype(np.int64) if a.dtype.itemsize < 8 else (np.sign(a) * np.sign(b)) * (np.abs(a) // np.abs(b))


BINARY = {"add": np.add, "mul": np.multiply, "div": np.divide, "div_rn": np.divide, "floordiv": floordiv,
          "mod": lambda a, b: a - floordiv(a, b) * b, "min": np.minimum, "max": np.maximum,
          "mulhi": lambda a, b: (a.astype(np.uint64) * b.astype(np.uint64)) >> np.uint64(32),
          "shift": lambda a, b: (a << (b & 15)) ^ (a >> (b & 7)), "logic": lambda a, b: (a & b) | (~a ^ (b | 12)),
          "compare": lambda a, b: np.where(a < b, a, b) + (a == b) + np.where(a >= 2, b, a), "fma": lambda a, b: a * b + a}


@add(*[(op, "i32") for op in ("add", "mul", "floordiv", "mod", "min", "max", "shift", "logic", "compare")],
     *[(op, "i64") for op in ("mul", "floordiv", "min", "shift", "compare")], ("mulhi", "u32"), ("floordiv", "u32"), ("min", "u32"), ("compare", "i16"), ("logic", "i8"),
     ("mul", "i16"), *[(op, "fp32") for op in ("div", "div_rn", "min", "compare", "fma")],
     *[(op, "fp16") for op in ("add", "mul", "max", "compare", "fma")], *[(op, "bf16") for op in ("add", "mul", "max")], *[(op, "fp64") for op in ("add", "mul", "div", "max", "fma")])
def binary(arch, op, kind):
    types = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u32": np.uint32, "fp16": np.float16, "fp32": np.float32,
             "fp64": np.float64, "bf16": np.uint16}
    dtype = types[kind]
    rng = seed(op, kind)
    if kind[0] in "iu":
        info = np.iinfo(dtype)
        a = rng.integers(info.min, info.max, 1200, dtype=dtype)
        b = (rng.integers(info.min, info.max, 1200, dtype=dtype) >> rng.integers(0, info.bits - 1, 1200).astype(dtype)).astype(dtype)
        a[:10], b[:10] = b[:10].copy(), a[:10].copy()
        b[20:30] = a[20:30]
        b[b == 0] = 3
        if info.min < 0 and op in ("floordiv", "mod"):
            b[b == -1] = 5
        with np.errstate(over="ignore"):
            expect = BINARY[op](a, b).astype(dtype)
        tolerance = 0
    else:
        a, av = operand(rng, 1200, kind)
        b, bv = operand(rng, 1200, kind)
        expect = BINARY[op](av.astype(np.longdouble), bv.astype(np.longdouble)).astype(np.float64)
        tolerance = {"fp16": 2.0 ** -11, "fp32": 2.0 ** -24, "fp64": 2.0 ** -53, "bf16": 2.0 ** -8}[kind]
        tolerance *= {"fp32": 2, "fp64": 2}.get(kind, 1) if op == "div" else 1
        tolerance *= 2 if op in ("fma", "compare") else 1
    case = elementwise(f"{op}_{kind}", K.binary, [kind] * 3, [a, b], np.zeros(1200, dtype), expect, dict(OP=op), tolerance=tolerance,
                       absolute=2.0 ** -24 if kind in ("fp16", "fp32") else 0)
    if kind == "bf16":
        case.read = F.from_bf16
    return case


@add((100, 128, 1), (1000, 1024, 4), (777, 1024, 8))
def softmax(arch, n, block, warps):
    x = seed(n).standard_normal((7, n)).astype(np.float32)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return Case(f"softmax_{n}", K.softmax, ["*fp32", "*fp32", "i32"], dict(BLOCK=block), (7, 1, 1), [x, None, n], np.zeros_like(x),
                e / e.sum(axis=1, keepdims=True), tolerance=1e-5, warps=warps)


REDUCE = {"sum": np.sum, "max": np.max, "min": np.min, "argmax": np.argmax, "argmin": np.argmin, "xor": np.bitwise_xor.reduce}


@add(("sum", "fp32", 0), ("sum", "fp32", 1), ("sum", "i32", 1), ("max", "fp32", 1), ("min", "i32", 0), ("argmax", "fp32", 1), ("argmin", "i32", 0),
     ("xor", "i32", 1), ("sum", "fp64", 1), ("max", "fp16", 1), ("max", "i64", 1))
def reduce(arch, op, kind, axis):
    dtype = {"fp32": np.float32, "i32": np.int32, "fp64": np.float64, "fp16": np.float16, "i64": np.int64}[kind]
    rng = seed(op, kind)
    x = rng.integers(-10 ** 6, 10 ** 6, (32, 128)).astype(dtype) if kind[0] == "i" else rng.standard_normal((32, 128)).astype(dtype)
    wide = x.astype(np.float64) if kind[0] == "f" else x
    out = np.int32 if op.startswith("arg") else dtype
    return Case(f"reduce_{op}_{kind}_{axis}", K.reduce, ["*" + kind, "*i32" if op.startswith("arg") else "*" + kind],
                dict(ROWS=32, COLS=128, AXIS=axis, OP=op), (1, 1, 1), [x, None], np.zeros(x.shape[1 - axis], out), REDUCE[op](wide, axis=axis),
                absolute=0 if kind[0] == "i" else 128 * 2.0 ** -23 * np.abs(wide).sum(axis=axis) if op == "sum" else 0)


@add(("sum", "fp32", 1), ("sum", "i32", 0), ("prod", "fp32", 1), ("sort", "fp32", 1), ("sort", "i32", 1), ("flip", "i32", 1))
def scan(arch, op, kind, axis):
    rng = seed(op, kind)
    x = rng.integers(-1000, 1000, (16, 64)).astype(np.int32) if kind == "i32" else (rng.standard_normal((16, 64)) * 0.3 + 1).astype(np.float32)
    f = {"sum": np.cumsum, "prod": np.cumprod, "sort": np.sort, "flip": np.flip}[op]
    wide = x.astype(np.float64) if kind == "fp32" else x
    return Case(f"scan_{op}_{kind}_{axis}", K.scan, ["*" + kind] * 2, dict(ROWS=16, COLS=64, AXIS=axis, OP=op), (1, 1, 1), [x, None],
                np.zeros_like(x), f(wide, axis=axis), tolerance=64 * 2.0 ** -23 if op in ("sum", "prod") and kind == "fp32" else 0,
                absolute=1e-4 if op == "sum" and kind == "fp32" else 0)


@add(("add", "i32"), ("add", "fp32"), ("add", "i64"), ("add", "fp64"), ("max", "i32"), ("min", "u32"), ("and", "i32"), ("or", "i32"), ("xor", "i32"),
     ("max", "fp32"), ("add", "fp16"), ("add", "bf16"))
def atomic(arch, op, kind):
    types = {"i32": np.int32, "i64": np.int64, "u32": np.uint32, "fp32": np.float32, "fp64": np.float64, "fp16": np.float16, "bf16": np.uint16}
    n, bins = 1500, 64
    x = seed(op, kind).integers(-8, 8, n)
    x = (np.abs(x) if kind == "u32" else x).astype(np.float32 if kind == "bf16" else types[kind])
    f = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op]
    expect = np.zeros(bins, x.dtype)
    f.at(expect, np.arange(n) % bins, x)
    case = elementwise(f"atomic_{op}_{kind}", K.atomic, [kind, kind], [F.to_bf16(x) if kind == "bf16" else x], np.zeros(bins, types[kind]), expect,
                       dict(BINS=bins, OP=op))
    if kind == "bf16":
        case.read = F.from_bf16
    return case


@add((20,))
def ticket(arch, n):
    case = Case("ticket", K.ticket, ["*i32", "*i32", "i32"], {}, (n, 1, 1), [np.zeros(2, np.int32), None, n], np.zeros(n, np.int32), np.arange(n), warps=1)
    case.read = np.sort
    return case


@add(("fp32", 64, 64), ("fp16", 32, 128), ("i8", 64, 32), ("bf16", 64, 64))
def transpose(arch, kind, bm, bn):
    x, v = operand(seed(kind), (100, 90), kind)
    case = Case(f"transpose_{kind}", K.transpose, ["*" + kind] * 2 + ["i32"] * 2, dict(BM=bm, BN=bn), (-(-100 // bm), -(-90 // bn), 1),
                [x, None, 100, 90], np.zeros((90, 100), x.dtype), x.T)
    return case


@add(("fp32",), ("i8",), ("fp64",))
def gather(arch, kind):
    x, _ = operand(seed(kind), 3000, kind)
    index = seed(kind, 1).integers(0, 3000, 1000).astype(np.int32)
    return Case(f"gather_{kind}", K.gather, ["*" + kind, "*i32", "*" + kind, "i32"], dict(BLOCK=256), (4, 1, 1), [x, index, None, 1000],
                np.zeros(1000, x.dtype), x[index])


@add((64, 1), (512, 4))
def gather_block(arch, n, warps):
    x = np.arange(n, dtype=np.float32) * 3
    index = seed(n).integers(0, n, n).astype(np.int32)
    return Case(f"gather_block_{n}", K.gather_block, ["*fp32", "*i32", "*fp32"], dict(N=n), (1, 1, 1), [x, index, None], np.zeros(n, np.float32),
                x[index], warps=warps)


@add((1024, 64))
def histogram(arch, n, bins):
    x = seed(n).integers(0, bins, n).astype(np.int32)
    return Case("histogram", K.histogram, ["*i32", "*i32"], dict(N=n, BINS=bins), (1, 1, 1), [x, None], np.zeros(bins, np.int32), np.bincount(x, minlength=bins))


def philox(seed_, at):
    c = [at.astype(np.uint64), *(np.zeros_like(at, np.uint64) for _ in range(3))]
    k0, k1 = seed_ & 0xFFFFFFFF, seed_ >> 32
    mask = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), b & mask, (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), a & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c[0].astype(np.uint32).view(np.int32)


@add((42,))
def random(arch, start):
    return Case("random", K.random, ["*i32", "i32"], dict(BLOCK=256), (4, 1, 1), [None, start], np.zeros(1024, np.int32), philox(start, np.arange(1024)))


@add(("fp16", 64, 64, 32, 4), ("bf16", 128, 128, 64, 4), ("fp16", 64, 128, 64, 8))
def attention(arch, kind, d, bm, bn, warps):
    T = 256
    rng = seed(kind, d, bm)
    (q, qv), (k, kv), (v, vv) = (operand(rng, (T, d), kind) for _ in range(3))
    if kind == "fp16":
        q = (qv * 0.2).astype(np.float16)
        qv = q.astype(np.float64)
    else:
        q = F.to_bf16(qv * 0.2)
        qv = F.from_bf16(q).astype(np.float64)
    s = qv @ kv.T
    p = np.exp2(s - s.max(axis=1, keepdims=True))
    expect = p @ vv / p.sum(axis=1, keepdims=True)
    return Case(f"attention_{kind}_{bm}", K.attention, ["*" + kind] * 3 + ["*fp32", "i32"], dict(D=d, BM=bm, BN=bn), (T // bm, 1, 1),
                [q, k, v, None, T], np.zeros((T, d), np.float32), expect, absolute=2.0 ** -8 if kind == "bf16" else 2.0 ** -10,
                tolerance=2.0 ** -8, warps=warps)


@functools.cache
def all_cases(arch):
    """Returns the list of cases, whose expected results take seconds to compute."""
    made = (make(arch, *row) for make, row in CASES)
    return [case for case in made if case is not None]
