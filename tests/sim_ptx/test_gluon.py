"""Compares the Gluon kernels of kernels_gluon.py with NumPy in double. usage: test_gluon.py ARCH FOLDER"""
import ctypes
import os
import re
import sys

import driver
import kernels_gluon as K
import numpy as np
from triton.experimental.gluon._runtime import GluonASTSource
from triton_ptx import compile_ptx

failed = []


def build(arch, fn, types, constants, ctas=1):
    names = fn.arg_names
    signature = {n: types.get(n, "constexpr") for n in names}
    attrs = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if types.get(n, "").startswith("*")}
    source = GluonASTSource(fn, signature, {(names.index(k),): v for k, v in constants.items()}, attrs)
    return compile_ptx(source, arch, {"num_warps": 4, "num_ctas": ctas})


def run(device, built, arrays, blocks):
    """Runs a kernel whose arguments are the arrays. Returns the last array, which the kernel
    writes."""
    at = [device.upload(a) for a in arrays]
    module = device.load(built.asm["ptx"])
    function = device.function(module, built.metadata.name, built.metadata.shared)
    threads = int(re.search(r"\.reqntid (\d+)", built.asm["ptx"]).group(1))
    device.launch(function, (blocks,), (threads,), built.metadata.shared, [*at, ctypes.c_uint64(0), ctypes.c_uint64(0)])
    out = device.download(at[-1], arrays[-1].copy())
    for p in at:
        device.free(p)
    device.unload(module)
    return out


def compare(name, got, expect, bound):
    wrong = ~(np.abs(got.astype(np.float64) - expect) <= bound)
    print(f"{name}: {'equal' if not wrong.any() else str(wrong.sum()) + ' wrong'}", flush=True)
    if wrong.any():
        failed.append(name)


def check_pairs(device):
    rng = np.random.default_rng(1)
    for kind, m, n, steps in [("fp16", 256, 128, 1), ("fp16", 256, 256, 2), ("bf16", 256, 64, 1), ("fp16", 128, 128, 2),
                              ("bf16", 128, 256, 1), ("fp8e4nv", 256, 128, 1), ("fp8e5", 128, 64, 2)]:
        k = 64
        a, b = (values(kind, (r, c), rng) for r, c in ((m, k), (k, n)))
        d = np.zeros((m, n), np.float32)
        built = build(device.arch, K.pair_dot, {"a": f"*{kind}", "b": f"*{kind}", "d": "*fp32"}, {"M": m, "N": n, "K": k, "STEPS": steps}, 2)
        expect = steps * (a[1] @ b[1])
        got = run(device, built, [a[0], b[0], d], 2)
        compare(f"pair of blocks, {kind}, {m} x {n}, {steps} steps", got, expect, 2.0 ** -22 * steps * (np.abs(a[1]) @ np.abs(b[1])))


def values(kind, shape, rng):
    """Returns random numbers as the bytes of a format and as doubles."""
    if kind == "fp16":
        x = rng.standard_normal(shape).astype(np.float16)
        return x, x.astype(np.float64)
    if kind == "bf16":
        bits = (rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return bits, (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    codes = rng.integers(0, 256, shape).astype(np.uint8)
    exponent = {"fp8e4nv": (4, 3, 7), "fp8e5": (5, 2, 15)}[kind]
    codes &= 0xBF  # Half of the exponents, so that neither NaN nor Inf nor large sums occur.
    e, f, bias = exponent
    power = (codes >> f & ((1 << e) - 1)).astype(np.int64)
    part = (codes & ((1 << f) - 1)) / 2.0 ** f
    x = np.where(power > 0, (1 + part) * 2.0 ** (power - bias), part * 2.0 ** (1 - bias))
    return codes, np.where(codes & 0x80, -x, x)


def check_shapes(device):
    rng = np.random.default_rng(2)
    shapes = ["32x32b", "16x64b", "16x128b", "16x256b"]
    for store in shapes:
        for load in shapes:
            a = rng.standard_normal((128, 64)).astype(np.float32)
            built = build(device.arch, K.move_tile, {"a": "*fp32", "d": "*fp32"}, {"N": 64, "STORE": store, "LOAD": load})
            compare(f"tensor memory written as {store}, read as {load}", run(device, built, [a, np.zeros_like(a)], 1), a, 0)


def check_launch_control(device):
    for threads in "1", "4":
        os.environ["BSMM_SIM_THREADS"] = threads
        built = build(device.arch, K.persistent, {"d": "*i32"}, {"ROUNDS": 41})
        got = run(device, built, [np.zeros(40, np.int32)], 40)
        compare(f"work of programs that have not begun, {threads} threads", got, np.ones(40), 0)
    del os.environ["BSMM_SIM_THREADS"]


def main():
    device = driver.Device(sys.argv[1])
    check_pairs(device)
    check_shapes(device)
    check_launch_control(device)
    if failed:
        sys.exit(f"wrong: {failed}")


main()
