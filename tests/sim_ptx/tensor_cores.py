"""Runs single matrix instructions of compute capability 9.0 on many operands and prints a hash of the
results of each instruction and kind of operands. On an H100 or H200 this makes
tests/golden/data/h100_tensor_cores.txt; test_tensor_cores.py compares the simulator with that file.

usage: SIM_LIBRARY=libcuda.so.1 tensor_cores.py [RAW]   RAW: a file for the bits of all results
The PTX is written here and not compiled, so a GPU needs its driver alone."""
import ctypes
import hashlib
import sys

import driver
import numpy as np

TESTS = 64  # of each kind: warps that execute the instruction once
NARROW, WIDE, ANY, TINY, SPECIAL = range(5)  # kinds of elements
ELEMENTS = ("narrow", "wide", "any", "tiny", "special")
SUMS = ("zero", "near", "wide", "large", "huge", "subnormal")  # kinds of accumulators

# Maps a format to (exponent bits, mantissa bits, whether the largest exponent means Inf or NaN).
FORMATS = {"f16": (5, 10, True), "bf16": (8, 7, True), "tf32": (8, 23, True), "e4m3": (4, 3, False), "e5m2": (5, 2, True)}


class Instruction:
    """Represents one instruction. It has the number of registers of A, B and the accumulators in
    each lane, and makes the PTX."""

    def __init__(self, kind, k, a, b, sum_type="f32"):
        self.kind, self.k, self.types, self.sum_type = kind, k, (a, b), sum_type
        bits = 32 if a == "tf32" else 8 if a[0] == "e" else 16
        self.bits = bits
        self.counts = (16 * k * bits // 1024, 8 * k * bits // 1024, 4 if sum_type == "f32" else 2)
        self.name = f"{kind}_{sum_type}_{a}_{b}_k{k}"

    def registers(self, letter, count):
        return "{" + ",".join(f"%{letter}{i}" for i in range(count)) + "}"

    def multiply(self):
        na, nb, nc = self.counts
        a, b, c, d = (self.registers(x, n) for x, n in zip("abcd", (na, nb, nc, nc)))
        types = f"{self.sum_type}.{self.types[0]}.{self.types[1]}"
        if self.kind == "mma":
            return f"mma.sync.aligned.m16n8k{self.k}.row.col.{types}.{self.sum_type} {d}, {a}, {b}, {c};"
        major = ", 0" if self.bits == 16 else ""
        moves = "".join(f"mov.b32 %d{i}, %c{i};\n" for i in range(nc))
        return (moves + "wgmma.fence.sync.aligned;\n"
                f"wgmma.mma_async.sync.aligned.m64n8k{self.k}.{types} {d}, {a}, %desc, %yes, 1, 1{major};\n"
                "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;")

    def ptx(self):
        na, nb, nc = self.counts
        load = "".join(f"ld.global.u32 %{x}{i}, [%p{x}+{4 * i}];\n" for x, n in zip("abc", self.counts) for i in range(n))
        store = "".join(f"st.global.u32 [%pd+{4 * i}], %d{i};\n" for i in range(nc))
        place = "".join(f"ld.param.u64 %p{x}, [{x}];\nmad.wide.u32 %p{x}, %lane, {4 * n}, %p{x};\n"
                        for x, n in zip("abcd", (*self.counts, nc)))
        shared = ""
        if self.kind == "wgmma":  # Warp 0 stores its B: 8 x 8 blocks of 16 bytes a row, one block for each register.
            shared = ("setp.lt.u32 %first, %thread, 32;\nmov.u32 %s, b_tile;\nshl.b32 %t, %thread, 2;\nadd.u32 %t, %t, %s;\n" +
                      "".join(f"@%first st.shared.u32 [%t+{128 * i}], %b{i};\n" for i in range(nb)) +
                      "fence.proxy.async.shared::cta;\nbar.sync 0;\nshr.u32 %s, %s, 4;\ncvt.u64.u32 %desc, %s;\n"
                      f"or.b64 %desc, %desc, {8 << 16 | 16 << 32};\nsetp.eq.u32 %yes, 0, 0;\n")
        return f""".version 8.7
.target sm_90a
.address_size 64
.visible .entry run(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)
{{
.reg .b32 %a<4>, %b<4>, %c<4>, %d<4>, %thread, %lane, %s, %t;
.reg .b64 %pa, %pb, %pc, %pd, %desc;
.reg .pred %first, %yes;
.shared .align 128 .b8 b_tile[256];
mov.u32 %thread, %tid.x;
mov.u32 %t, %ctaid.x;
mov.u32 %s, %ntid.x;
mad.lo.u32 %lane, %t, %s, %thread;
{place}{load}{shared}{self.multiply()}
{store}ret;
}}
"""


def all_instructions():
    yield from (Instruction("mma", k, t, t, s) for t in ("f16", "bf16") for k in (8, 16)
                for s in (("f32", "f16") if t == "f16" else ("f32",)))
    yield from (Instruction("mma", k, "tf32", "tf32") for k in (4, 8))
    yield from (Instruction(kind, 32, a, b, s) for kind in ("mma", "wgmma") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")
                for s in ("f32", "f16"))
    yield from (Instruction("wgmma", 16, "f16", "f16", s) for s in ("f32", "f16"))
    yield Instruction("wgmma", 16, "bf16", "bf16")
    yield Instruction("wgmma", 8, "tf32", "tf32")


def random_elements(rng, name, kind, shape):
    """Returns random codes of a format. The 13 lowest bits of tf32 are random too, because hardware
    ignores them."""
    exponents, mantissas, special = FORMATS[name]
    bias, top = 2 ** (exponents - 1) - 1, 2 ** exponents - 1
    reach = {NARROW: 2, WIDE: 7, ANY: bias, TINY: bias, SPECIAL: 3}[kind]
    if exponents == 8 and kind in (ANY, TINY):
        reach = 20
    middle = 0 if kind == TINY else bias
    if exponents == 8 and kind == TINY:
        middle = bias - 66  # Products are near the smallest subnormal numbers of fp32.
    e = np.clip(rng.integers(-reach, reach + 1, shape) + middle, 0, top - 1 if special else top)
    m = rng.integers(0, 2 ** mantissas, shape)
    if not special:
        m = np.where((e == top) & (m == 2 ** mantissas - 1), 0, m)
    if kind == WIDE:
        zero = rng.integers(0, 16, shape) == 0
        e, m = np.where(zero, 0, e), np.where(zero, 0, m)
    if kind == SPECIAL:
        hit = rng.integers(0, 128, shape) == 0
        infinite = hit & (rng.integers(0, 2, shape) == 0) & special
        e = np.where(hit, top, e)
        m = np.where(infinite, 0, np.where(hit, 2 ** mantissas - 1, m))
    return (rng.integers(0, 2, shape) << (exponents + mantissas) | e << mantissas | m).astype(np.uint32)


def random_registers(rng, name, bits, kind, count):
    codes = random_elements(rng, name, kind, (TESTS * 32, count, 32 // bits))
    return np.bitwise_or.reduce(codes << (bits * np.arange(32 // bits, dtype=np.uint32)), axis=2).astype(np.uint32)


def random_sums(rng, kind, sum_type, count):
    half = sum_type == "f16"
    shape = (TESTS * 32, count * (2 if half else 1))
    unit = rng.uniform(-1, 1, shape)
    exponent = {"zero": 0, "near": 0, "wide": rng.integers(-20, 20, shape), "large": rng.integers(2, 14, shape),
                "huge": rng.integers(124, 129, shape), "subnormal": rng.integers(-149, -124, shape)}[kind]
    if half:
        exponent = np.clip(exponent, -24, 16)
    x = np.ldexp(unit, exponent) * (kind != "zero")
    with np.errstate(over="ignore"):
        x = x.astype(np.float16 if half else np.float32)
    return np.nan_to_num(x, posinf=60000, neginf=-60000).view(np.uint32).reshape(TESTS * 32, count)


def results(device, instruction):
    """Yields (kind of elements, kind of accumulators, bits of D in each lane) for random operands
    of every kind."""
    module = device.load(instruction.ptx())
    function = device.function(module, "run")
    warps = 4 if instruction.kind == "wgmma" else 1
    for elements in range(len(ELEMENTS)):
        for sums in SUMS:
            rng = np.random.Generator(np.random.PCG64([elements, SUMS.index(sums)]))
            a, b = (random_registers(rng, t, instruction.bits, elements, n) for t, n in zip(instruction.types, instruction.counts))
            c = random_sums(rng, sums, instruction.sum_type, instruction.counts[2])
            at = [device.upload(x) for x in (a, b, c, np.full_like(c, 0xA5A5A5A5))]
            device.launch(function, (TESTS // warps,), (32 * warps,), 0, at)
            yield ELEMENTS[elements], sums, device.download(at[3], c.copy())
            for x in at:
                device.free(x)
    device.unload(module)


def lines(device, raw=None):
    for instruction in all_instructions():
        for elements, sums, d in results(device, instruction):
            if raw:
                raw.write(d.tobytes())
            yield f"{instruction.name} {elements} {sums} {hashlib.sha256(d.tobytes()).hexdigest()[:16]}"


def main():
    with open(sys.argv[1] if len(sys.argv) > 1 else "/dev/null", "wb") as raw:
        for line in lines(driver.Device("sm_90a"), raw):
            print(line)


if __name__ == "__main__":
    main()
