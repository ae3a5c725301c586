"""Tests mma.sync with block scales (sm_120a) for every kind, pair of elements and scale selector that the ISA
has, against a second statement of the fragments in NumPy. usage: test_mma_scaled.py ARCH FOLDER"""
import itertools
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "sim_gfx9"))
import driver
import formats as F
import numpy as np

SMALL = ["e4m3", "e5m2", "e3m2", "e2m3", "e2m1"]
BITS = {"e4m3": 8, "e5m2": 8, "e3m2": 6, "e2m3": 6, "e2m1": 4}
KERNEL = """.version 8.8
.target sm_120a
.address_size 64
.visible .entry kernel(.param .u64 a, .param .u64 b, .param .u64 sa, .param .u64 sb, .param .u64 d) {{
 .reg .b32 %r<20>;
 .reg .f32 %f<8>;
 .reg .b64 %rd<12>;
 mov.u32 %r1, %tid.x;
 ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [sa]; ld.param.u64 %rd4, [sb]; ld.param.u64 %rd5, [d];
 mul.wide.u32 %rd6, %r1, 16; mul.wide.u32 %rd7, %r1, 8; mul.wide.u32 %rd8, %r1, 4;
 add.s64 %rd1, %rd1, %rd6; add.s64 %rd2, %rd2, %rd7; add.s64 %rd3, %rd3, %rd8; add.s64 %rd4, %rd4, %rd8; add.s64 %rd5, %rd5, %rd6;
 ld.global.v4.u32 {{%r2, %r3, %r4, %r5}}, [%rd1];
 ld.global.v2.u32 {{%r6, %r7}}, [%rd2];
 ld.global.u32 %r8, [%rd3];
 ld.global.u32 %r9, [%rd4];
 ld.global.v4.f32 {{%f0, %f1, %f2, %f3}}, [%rd5];
 mma.sync.aligned.{opcode} {{%f0, %f1, %f2, %f3}}, {{%r2, %r3, %r4, %r5}}, {{%r6, %r7}}, {{%f0, %f1, %f2, %f3}},
   %r8, {{{ba}, {ta}}}, %r9, {{{bb}, {tb}}};
 st.global.v4.f32 [%rd5], {{%f0, %f1, %f2, %f3}};
 ret;
}}
"""


def cases():
    """Yields (opcode, type of A, type of B, scales per row, type of scales) for each instruction."""
    for a, b in itertools.product(SMALL, SMALL):
        yield f"m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.{a}.{b}.f32.ue8m0", a, b, 1, "ue8m0"
    yield "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", "e2m1", "e2m1", 2, "ue8m0"
    yield "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", "e2m1", "e2m1", 2, "ue8m0"
    yield "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", "e2m1", "e2m1", 4, "ue4m3"


def fragment(codes, kind, dense):
    """Packs rows of codes (rows, k) into registers (32 lanes, registers). Lane 4 g + t holds row g
    of each group of 8 rows, and in each register the neighboring columns that begin with column
    t of the register."""
    rows, k = codes.shape
    bits = 4 if dense else 8
    each = 32 // bits
    shift = 0 if dense or kind != "e2m1" else 2  # In a byte, an e2m1 code takes bits 2 to 5.
    registers = np.zeros((32, rows // 8 * (k // (4 * each))), np.uint32)
    for row, column in np.ndindex(rows, k):
        group, along = row // 8, column // each
        lane, register = row % 8 * 4 + along % 4, group + rows // 8 * (along // 4)
        registers[lane, register] |= np.uint32(int(codes[row, column]) << (column % each * bits + shift))
    return registers


def scales(rng, count, kind):
    """Returns random codes of scales (rows, count) and their values."""
    codes = rng.integers(120, 134, count) if kind == "ue8m0" else rng.integers(0, 0x7F, count)
    return codes, 2.0 ** (codes - 127.0) if kind == "ue8m0" else F.decode(codes.astype(np.uint8), "e4m3")


def run(device, opcode, a, b, count, kind, select, rng):
    k = 64 if "k64" in opcode else 32
    left, right = (rng.integers(0, 1 << BITS[f], (n, k)).astype(np.uint8) for f, n in ((a, 16), (b, 8)))
    for codes, f in ((left, a), (right, b)):
        if BITS[f] == 8:
            codes &= 0xBF  # neither NaN nor Inf
    sa, sav = scales(rng, (16, count), kind)
    sb, sbv = scales(rng, (8, count), kind)
    ba, ta, bb, tb = select
    words = rng.integers(0, 256, (2, 32, 4)).astype(np.uint8)  # Bytes that no selector names hold anything.
    for row in range(16):
        words[0, row % 8 * 4 + 2 * ta + row // 8, ba:ba + count] = sa[row]
    for column in range(8):
        words[1, column * 4 + tb, bb:bb + count] = sb[column]
    start = rng.standard_normal((16, 8)).astype(np.float32)
    lanes = np.zeros((32, 4), np.float32)
    place = [(lane // 4 + 8 * (n // 2), lane % 4 * 2 + n % 2) for lane in range(32) for n in range(4)]
    for (row, column), (lane, n) in zip(place, np.ndindex(32, 4)):
        lanes[lane, n] = start[row, column]
    dense = "mxf4" in opcode
    at = [device.upload(x) for x in (fragment(left, a, dense), fragment(right, b, dense), words[0], words[1], lanes)]
    module = device.load(KERNEL.format(opcode=opcode, ba=ba, ta=ta, bb=bb, tb=tb))
    device.launch(device.function(module, "kernel"), (1,), (32,), 0, at)
    out = device.download(at[4], lanes.copy())
    for p in at:
        device.free(p)
    device.unload(module)
    got = np.zeros((16, 8))
    for (row, column), (lane, n) in zip(place, np.ndindex(32, 4)):
        got[row, column] = out[lane, n]
    x = F.decode(left, a) * np.repeat(sav, k // count, 1)
    y = F.decode(right, b) * np.repeat(sbv, k // count, 1)
    return np.abs(got - (start + x @ y.T)) <= 2.0 ** -23 * (np.abs(start) + np.abs(x) @ np.abs(y).T)


def main():
    device = driver.Device(sys.argv[1])
    rng = np.random.default_rng(3)
    failed = runs = 0
    for opcode, a, b, count, kind in cases():
        for number, select in enumerate(itertools.product(range(0, 4, count), range(2), range(0, 4, count), range(4))):
            if count == 1 and (a, b) != ("e4m3", "e2m1") and number % 13:
                continue  # All selectors for one pair of elements, some for the others.
            runs += 1
            if not run(device, opcode, a, b, count, kind, select, rng).all():
                failed += 1
                print(f"{opcode}, selectors {select}: wrong")
    try:
        run(device, *next(cases()), (4, 0, 0, 0), rng)
        failed += 1
        print("a selector out of range was taken")
    except driver.Error as error:
        failed += "scale selectors {4, 0}" not in str(error)
    print(f"{runs} products, {failed} failed")
    sys.exit(bool(failed))


main()
