"""Compares the cycles that the time model predicts for bsmm's kernels, for Triton's code of the same
products, and for the floor. usage: compare_triton.py BSMM [PRODUCT ...]

BSMM is the command `bsmm`. PRODUCT is a key of PRODUCTS; without it, all products are compared.
$SIM_LIBRARY names the simulator's library. The floor is a time that no kernel can beat. It is the
longer of two times: that of the matrix instructions at the peak rate of all compute units, and that
of the bytes of A, B, their scales and D at the rate of HBM. All cycles leave out the cost of a launch.
The kernels below are written like those of Triton's tutorials (matrix multiplication, block-scaled
matrix multiplication). Each is compiled with every row of CONFIGS, and the fastest counts. Both
sides execute only the workgroups that the model samples. Triton's code runs with all
checks of the simulator but that of wait states, and its first results are compared with sums in double."""
import collections
import ctypes
import json
import os
import subprocess
import sys

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import formats
import hip
from test_time import NAMES


@triton.jit
def place(M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Returns the tile of D that a program computes. Consecutive programs go through eight rows of
    tiles at a time."""
    pid, down, across = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (8 * across) * 8
    height = min(down - first, 8)
    return first + pid % (8 * across) % height, pid % (8 * across) // height


@triton.jit
def groupwise(a, sa, b, sb, d, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Computes D = A B^T, with one fp32 scale for each 1 x 128 elements of A and for each 128 x
    128 elements of B."""
    i, j = place(M, N, BM, BN)
    rows, cols, ks = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        y = tl.load(b + cols[None, :] * K + (k + ks)[:, None])
        xs = tl.load(sa + rows * (K // 128) + k // 128)
        ys = tl.load(sb + cols // 128 * (K // 128) + k // 128)
        acc += tl.dot(x, y) * xs[:, None] * ys[None, :]
    tl.store(d + rows[:, None] * N + cols[None, :], acc.to(tl.bfloat16))


@triton.jit
def scaled(a, sa, b, sb, d, M, N, K, FORMAT: tl.constexpr, PACK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr):
    """Computes D = A B^T, with one e8m0 scale for each 1 x 32 elements. PACK is the number of
    elements in a byte."""
    i, j = place(M, N, BM, BN)
    rows, cols = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN)
    ks, ss = tl.arange(0, BK // PACK), tl.arange(0, BK // 32)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * (K // PACK) + (k // PACK + ks)[None, :])
        y = tl.load(b + cols[None, :] * (K // PACK) + (k // PACK + ks)[:, None])
        xs = tl.load(sa + rows[:, None] * (K // 32) + (k // 32 + ss)[None, :])
        ys = tl.load(sb + cols[:, None] * (K // 32) + (k // 32 + ss)[None, :])
        acc = tl.dot_scaled(x, xs, FORMAT, y, ys, FORMAT, acc)
    tl.store(d + rows[:, None] * N + cols[None, :], acc.to(tl.float16))


Product = collections.namedtuple("Product", "arch bsmm kernel element constants m n k")
PRODUCTS = {
    "fnuz": Product("gfx942", "fp8_group128_fnuz:fp8_block128_fnuz", groupwise, "fp8e4b8", {}, 6144, 4608, 7168),
    "mxfp8": Product("gfx950", "mxfp8", scaled, "fp8e4nv", {"FORMAT": "e4m3", "PACK": 1}, 4096, 4096, 8192),
    "mxfp4": Product("gfx950", "mxfp4", scaled, "u8", {"FORMAT": "e2m1", "PACK": 2}, 4096, 4096, 8192),
    "mxfp8_8192": Product("gfx950", "mxfp8", scaled, "fp8e4nv", {"FORMAT": "e4m3", "PACK": 1}, 8192, 8192, 8192),
    "mxfp4_8192": Product("gfx950", "mxfp4", scaled, "u8", {"FORMAT": "e2m1", "PACK": 2}, 8192, 8192, 8192),
}
# Each row has the number of compute units of a device, its products of 8-bit elements per cycle and
# compute unit, and the bytes that HBM delivers per cycle (sim/gfx9/devices.def). gfx950 multiplies
# twice as many 4-bit elements per cycle.
Peak = collections.namedtuple("Peak", "units products bytes")
PEAKS = {"gfx942": Peak(304, 2048, 4.177e12 / 2.1e9), "gfx950": Peak(256, 4096, 6.305e12 / 2.4e9)}
# Each row lists the rows and columns of a tile of D, the elements of K in a step, the number of
# warps, and the number of pipeline stages.
CONFIGS = [(128, 128, 128, 4, 2), (256, 128, 128, 8, 2), (256, 256, 128, 8, 2)]


def build(p, config):
    bm, bn, bk, warps, stages = config
    scale = "fp32" if p.kernel is groupwise else "u8"
    types = [f"*{p.element}", f"*{scale}", f"*{p.element}", f"*{scale}", "*bf16" if p.kernel is groupwise else "*fp16"] + ["i32"] * 3
    names, constants = p.kernel.arg_names, {**p.constants, "BM": bm, "BN": bn, "BK": bk}
    signature = dict(zip(names, types + ["constexpr"] * len(constants)))
    attrs = {(i,): [["tt.divisibility", 16]] for i in range(8)}
    source = ASTSource(p.kernel, signature, {(names.index(n),): v for n, v in constants.items()}, attrs)
    return triton.compile(source, target=GPUTarget("hip", p.arch, 64), options={"num_warps": warps, "num_stages": stages})


def data(p):
    """Returns A, the scales of A, B, and the scales of B. Elements have magnitudes up to 1
    (e2m1: up to 6), and scales are near 1."""
    rng, pack = np.random.default_rng(5), p.constants.get("PACK", 1)
    codes = np.arange(256) if pack == 2 else np.r_[:0x38, 0x81:0xb8]
    elements = [rng.choice(codes.astype(np.uint8), (rows, p.k // pack)) for rows in (p.m, p.n)]
    if p.kernel is groupwise:
        scales = [rng.uniform(0.5, 2, (rows, p.k // 128)).astype(np.float32) for rows in (p.m, p.n // 128)]
    else:
        scales = [rng.integers(125, 130, (rows, p.k // 32), dtype=np.uint8) for rows in (p.m, p.n)]
    return elements[0], scales[0], elements[1], scales[1]


def run(p, config, inputs):
    """Runs Triton's code. Returns the cycles that it takes in the model, and D."""
    built, device = build(p, config), hip.Device(p.arch)
    device.lib.bsmm_sim_time(2)
    module = device.load(built.asm["hsaco"])
    function = device.function(module, built.metadata.name, built.metadata.shared)
    out = np.zeros((p.m, p.n), dtype=np.uint16)
    buffers = [device.upload(x) for x in (*inputs, out)]
    args = [*buffers, *map(ctypes.c_int32, (p.m, p.n, p.k)), ctypes.c_uint64(0), ctypes.c_uint64(0)]
    tiles = -(-p.m // config[0]) * -(-p.n // config[1])
    try:
        device.launch(function, (tiles,), (64 * config[3],), built.metadata.shared, args)
        values = (ctypes.c_double * len(NAMES))()
        assert device.lib.bsmm_sim_times(ctypes.c_uint(0), None, ctypes.c_size_t(0), values, ctypes.c_size_t(len(NAMES)))
        return dict(zip(NAMES, values)), device.download(buffers[-1], out)
    finally:
        for at in buffers:
            device.free(at)
        device.unload(module)


def values_of(codes, kind):
    """Returns the values of codes. A byte of e2m1 has two codes, the first in its low bits."""
    return formats.decode(np.stack([codes & 15, codes >> 4], axis=-1).reshape(len(codes), -1) if kind == "e2m1" else codes, kind)


def check(p, inputs, out):
    """Compares the first 16 x 16 results with sums in double."""
    a, sa, b, sb = (x[:16] for x in inputs)
    if p.kernel is groupwise:
        sb = np.repeat(sb[:1], 16, axis=0)
        x, y = (values_of(e, "e4m3fnuz") * np.repeat(s, 128, axis=1) for e, s in ((a, sa), (b, sb)))
        got = (out[:16, :16].astype(np.uint32) << 16).view(np.float32)
    else:
        kind = p.constants["FORMAT"]
        x, y = (values_of(e, kind) * np.repeat(2.0 ** (s.astype(float) - 127), 32, axis=1) for e, s in ((a, sa), (b, sb)))
        got = out[:16, :16].view(np.float16)
    want, magnitude = x @ y.T, np.abs(x) @ np.abs(y).T
    assert (np.abs(got - want) <= 2.0 ** -8 * magnitude).all(), "Triton's result is wrong"


def floor(p):
    """Returns the cycles that no kernel can beat."""
    peak, pack = PEAKS[p.arch], p.constants.get("PACK", 1)
    matrix = p.m * p.n * p.k / (peak.units * peak.products * pack)
    if p.kernel is groupwise:
        scales = 4 * (p.m * p.k / 128 + p.n * p.k / 128 ** 2)
    else:
        scales = (p.m + p.n) * p.k / 32
    return max(matrix, ((p.m + p.n) * p.k / pack + scales + 2 * p.m * p.n) / peak.bytes)


def bsmm_cycles(command, p):
    text = subprocess.run([command, "bench", "--device", f"sim:{p.arch}", "-f", p.bsmm, "-M", str(p.m), "-N", str(p.n), "-K", str(p.k),
                           "--counters", "--sampled", "--json"], check=True, capture_output=True, text=True).stdout
    return sum(launch["cycles"] for launch in json.loads(text.splitlines()[-1])["counters"])


def compare(command, name):
    p, best = PRODUCTS[name], float("inf")
    inputs = data(p)
    for config in CONFIGS:
        try:
            times, out = run(p, config, inputs)
        except hip.Error as error:
            print(f"{name}: Triton, {config}: {str(error).splitlines()[0][:120]}", flush=True)
            continue
        check(p, inputs, out)
        busy = times["matrix_busy"] / times["replayed"] / times["cus"] / 4
        print(f"{name}: Triton, {config}: {times['cycles']:.0f} cycles, matrix {busy:.2f}", flush=True)
        best = min(best, times["cycles"])
    own = bsmm_cycles(command, p)
    print(f"{name} {p.m} x {p.n} x {p.k} on {p.arch}, model: bsmm {own:.0f} cycles, {own / best:.2f} of Triton's {best:.0f}, "
          f"{own / floor(p):.2f} of the floor {floor(p):.0f}", flush=True)


def main():
    command, *names = sys.argv[1:]
    os.environ["BSMM_SIM_CHECKS"] = "7"
    for name in names or PRODUCTS:
        compare(command, name)


if __name__ == "__main__":
    main()
