"""Runs the kernels of kernels.c, which clang-22 compiles, and compares their results with NumPy's.
usage: test_c.py ARCH"""
import pathlib
import struct
import sys

import numpy as np

import assemble
import formats as F
import hip

SOURCE = (pathlib.Path(__file__).parent / "kernels.c").read_text()
rng = np.random.default_rng(3)


def calls():
    def steps(n):
        k = 0
        while n > 1:
            n, k = (3 * n + 1 if n & 1 else n // 2), k + 1
        return k
    x = rng.integers(1, 10000, 64).astype(np.uint32)
    return x, np.array([steps(int(n)) + steps(int(n) + 1) for n in x], np.uint32)


def scratch():
    x = rng.integers(0, 1000, 64).astype(np.uint32)
    out = []
    for n in map(int, x):
        own = [n * k for k in range(32)]
        for k in range(32):
            own[n + k & 31] += own[k]
        s = 0
        for v in own:
            s = (s * 31 + v) & 0xFFFFFFFF
        out.append(s)
    return x, np.array(out, np.uint32)


def flat():
    x = rng.integers(0, 1 << 32, 64).astype(np.uint32)
    return x, np.where(np.arange(64) % 3 == 0, x + np.uint32(1), x)


def atomics64():
    x = rng.integers(1, 1 << 63, 64).astype(np.uint64)
    old = 0
    for _ in range(64):
        old = (old * 3 + 1) & (2 ** 64 - 1)
    return x, np.array([sum(map(int, x)) % 2 ** 64, x.max(), 0, np.bitwise_xor.reduce(x), sum(map(int, x)) % 2 ** 64, old], np.uint64)


def lanes():
    v = rng.integers(-99, 99, 64).astype(np.int32)
    l = np.arange(64)
    row, at = l & ~15, l & 15
    shr = np.where(at >= 1, v[l - 1], -1)
    shl = np.where(at < 12, v[np.minimum(l + 4, 63)], 0)
    bcast = np.where((l // 16) % 2 == 1, v[np.maximum(row - 1, 0)], -1)
    ror = np.where((l // 4) % 2 == 0, v[row + ((at - 3) & 15)], -1)
    return v, np.concatenate([v[l ^ 1], v[l ^ 3], shr, shl, bcast, v[row + 15 - at], ror, v[63 - l], (v > 0).astype(np.int32), v[l ^ 3]]).astype(np.int32)


def indexed():
    x = rng.integers(0, 1 << 20, 64).astype(np.uint32)
    k, out = int(x[0]) & 15, []
    for lane in range(64):
        v = [int(n) for n in x[16 * (lane & 3):][:16]]
        v[k] += 100
        v[(k + 9) & 15] = v[(k + 5) & 15] * 3
        s = 0
        for n in v:
            s = s * 7 + n
        out.append((s + v[int(x[lane & 3]) & 15]) & 0xFFFFFFFF)
    return x, np.array(out, np.uint32)


def rounding():
    x = rng.standard_normal(128).astype(np.float32)
    exact = x[:64].astype(np.float64) * x[64:]
    near = exact.astype(np.float32)
    toward = np.where(np.abs(near) > np.abs(exact), np.nextafter(near, np.float32(0)), near)
    up = np.where(near < exact, np.nextafter(near, np.float32(np.inf)), near)
    return x, np.concatenate([toward, up]).astype(np.float32)


def grid3():
    x = np.array([5], np.uint32)
    return x, np.array([5 + (g << 16 | i) for g in range(2 * 3 * 2) for i in range(8 * 4 * 2)], np.uint32)


def bytes_():
    v = rng.integers(0, 1 << 32, 64).astype(np.uint32)
    lo = ((v >> 24) + v) & 255 | ((v >> 8 & 255) * 3 & 255) << 8
    return v, (lo | ((v.view(np.int32) >> 16 >> 2) & 0xFFFF).astype(np.uint32) << 16).astype(np.uint32)


def quotients():
    """Returns pairs of operands for the test of divisions, and the quotients. Some are random, and
    some have hard values such as Inf, zero and subnormal numbers. Pairs whose quotient is NaN
    are replaced. LLVM compiles a division to v_div_scale, v_div_fmas and v_div_fixup."""
    x = rng.integers(0, 1 << 32, (2, 4096), dtype=np.uint64).astype(np.uint32).view(np.float32)
    hard = np.array([0, -0.0, 1, -1, np.inf, 1e-40, -1e-40, 3.4e38, 2.0 ** -126, 2688, 1e-45, 6, 448], np.float32)
    x[:, :169] = np.stack(np.meshgrid(hard, hard)).reshape(2, -1)
    with np.errstate(all="ignore"):
        q = x[0] / x[1]
    x[:, np.isnan(q)] = 1
    return x, np.where(np.isnan(q), 1, q).astype(np.float32).view(np.uint32)


def halves():
    x = rng.standard_normal((2, 64, 2)).astype(np.float16)
    a, b = x.astype(np.float64)
    fused = (a * b + np.stack([b[:, 1], a[:, 0]], 1)).astype(np.float16)
    low = (a[:, 1] - b[:, 0]).astype(np.float16)
    below = (b[:, 1] ** 2 + 1).astype(np.float16).astype(np.float64)
    return x, np.concatenate([fused, np.stack([low, (a[:, 0] / below).astype(np.float16)], 1)])


def buffer_to_lds():
    x = rng.integers(0, 1 << 32, 64).astype(np.uint32)
    return x, np.where(np.arange(64) < 50, x, 0).astype(np.uint32)


def transpose(bits):
    """Returns input and expected output of the loads that transpose a matrix. Sixteen lanes hold
    the matrix, and each row is spread over several lanes. Lane i receives element i of every
    row."""
    n = 64 // bits
    elements = rng.integers(0, 1 << bits, (64, n)).astype(np.uint64)
    shift = (np.arange(n) * bits).astype(np.uint64)
    out = np.zeros((64, n), np.uint64)
    for block in range(0, 64, 16):
        # Sixteen lanes from lane `block` on hold a matrix of n rows and 16 columns. Each row is
        # spread over 16 / n lanes.
        matrix = elements[block:block + 16].reshape(n, 16)
        out[block:block + 16] = matrix.T
    return np.bitwise_or.reduce(elements << shift, axis=1), np.bitwise_or.reduce(out << shift, axis=1)


def six_bits():
    x = (rng.standard_normal((64, 2, 16)) * 3).astype(np.float32)
    mixed = x.transpose(0, 2, 1).reshape(64, 32).astype(np.float64)
    out = np.zeros((64, 76), np.uint32)
    for at, name, scale in ((0, "e2m3", 2.0), (6, "e3m2", 0.5)):
        codes = F.encode(mixed / scale, name)
        for lane in range(64):
            packed = sum(int(c) << 6 * k for k, c in enumerate(codes[lane]))
            out[lane, at:at + 6] = [packed >> 32 * k & 0xFFFFFFFF for k in range(6)]
        out[:, 12 + at // 6 * 32:44 + at // 6 * 32] = (F.decode(codes, name) * scale).astype(np.float32).view(np.uint32)
    return x, out


BOTH = {"calls": calls, "scratch": scratch, "flat": flat, "atomics64": atomics64, "lanes": lanes, "indexed": indexed, "rounding": rounding, "grid3": grid3, "bytes": bytes_, "quotients": quotients, "halves": halves,
        "buffer_to_lds": buffer_to_lds}
GFX950 = {"transpose4": lambda: transpose(4), "transpose8": lambda: transpose(8), "six_bits": six_bits}


# These kernels use compiler builtins for single instructions. This test alone states their expected
# results, so it is no evidence by another project for these instructions.
BUILTINS = ["lanes", "transpose4", "transpose8", "six_bits"]


def main():
    arch = sys.argv[1]
    device = hip.Device(arch)
    module = device.load(assemble.c(arch, SOURCE))
    failed, vouched = [], set()
    rows = dict(BOTH, **(GFX950 if arch == "gfx950" else {}))
    for name, make in rows.items():
        x, expect = make()
        source, target = device.upload(x), device.upload(np.zeros_like(expect))
        before = hip.executed()
        grid, block = ((2, 3, 2), (8, 4, 2)) if name == "grid3" else ((1, 1, 1), (64, 1, 1))
        try:
            # HIP's second way to pass arguments is one buffer that holds all of them. This launch
            # uses it.
            device.launch_buffer(device.function(module, name), grid, block, 0, struct.pack("QQ", source.value, target.value))
            got = device.download(target, np.zeros_like(expect))
            wrong = np.nonzero((got != expect).reshape(-1))[0]
            if len(wrong):
                failed.append(f"{name}: {len(wrong)} wrong, first at {wrong[0]}: {got.reshape(-1)[wrong[0]]}, not {expect.reshape(-1)[wrong[0]]}")
        except hip.Error as error:
            failed.append(f"{name}: {error}")
        if name not in BUILTINS:
            vouched |= {opcode for opcode, count in hip.executed().items() if count > before.get(opcode, 0)}
    hip.vouch(vouched)
    print("\n".join(failed))
    print(f"{arch}: {len(rows)} kernels of clang-22, {len(failed)} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
