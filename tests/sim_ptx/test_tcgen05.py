"""Tests variants of tcgen05 that no kernel of Triton or Gluon uses. The expected results come from NumPy
code that follows the PTX ISA. The variants are scale-input-d, disable-output-lane, pack and unpack of ld
and st, cp that unpacks elements of 4 and 6 bits, and cp of 4x256b. usage: test_tcgen05.py ARCH FOLDER"""
import sys

import driver
import numpy as np

HEAD = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry kernel(.param .u64 a, .param .u64 b) {
 .reg .pred %p<6>;
 .reg .b32 %r<80>, %o<80>;
 .reg .b64 %rd<12>;
 .shared .align 1024 .b8 tile[16384];
 .shared .align 8 .b8 bar[8];
 .shared .align 4 .b8 at[4];
 ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
 mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r3, bar; mov.u32 %r4, at;
 setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32; setp.ne.u32 %p4, 0, 0;
 @%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4], 64;
 @%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
 bar.sync 0;
 ld.shared.u32 %r5, [%r4];
 and.b32 %r6, %r1, 96; shl.b32 %r6, %r6, 16; add.u32 %r6, %r6, %r5;
"""
TAIL = """
 bar.sync 0;
 @%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 64;
 ret;
}
"""
# WAIT waits until the tensor cores have completed the operations that thread 0 issued.
WAIT = """
 @%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3];
$W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0; @!%p3 bra $W;
 tcgen05.fence::after_thread_sync;
"""


def registers(first, count):
    return "{" + ", ".join(f"%o{first + k}" for k in range(count)) + "}"


def words(pointer, count, load):
    """Returns instructions that load the registers %o0 to %o(count - 1) of each thread from its row
    at `pointer`, or store them there."""
    move = "ld.global.u32 %o{0}, [%rd3+{1}];" if load else "st.global.u32 [%rd3+{1}], %o{0};"
    return f" mul.wide.u32 %rd3, %r1, {4 * count}; add.s64 %rd3, %rd3, {pointer};" + " ".join(move.format(k, 4 * k) for k in range(count))


def run(device, body, threads, given, out, target="sm_100a"):
    """Runs a kernel with the bytes `given` as its first argument. Returns the contents of its
    second argument."""
    module = device.load(HEAD.replace("sm_100a", target) + body + TAIL)
    at = [device.upload(given), device.upload(out)]
    try:
        device.launch(device.function(module, "kernel"), (1,), (threads,), 0, at)
        return device.download(at[1], out.copy())
    finally:
        for p in at:
            device.free(p)
        device.unload(module)


# The functions from here on test ld with pack::16b and st with unpack::16b.
SHAPES = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}


def place(shape, thread, register):
    """Returns for a register of a thread the lane of tensor memory and the number of the 32-bit
    element in that lane, counted after packing. In 16x32bx2, threads 16 to 31 access a second
    group of columns."""
    if shape == "32x32b":
        return thread, register
    if shape == "16x32bx2":
        return thread % 16, register
    group, within = divmod(register, SHAPES[shape])
    if shape == "16x64b":  # Threads of odd number have the lower 8 lanes, pairs of threads share 64 bits.
        return thread // 4 + 8 * (thread % 2), 2 * group + thread // 2 % 2
    if shape == "16x128b":
        return thread // 4 + 8 * within, 4 * group + thread % 4
    return thread // 4 + 8 * (within // 2), 8 * group + 2 * (thread % 4) + within % 2


def columns(shape, thread, element, split):
    """Returns the two columns whose low 16 bits form a packed element."""
    first = 2 * element + (split if shape == "16x32bx2" and thread >= 16 else 0)
    return first, first + 1


def test_pack(device, rng, shape, times):
    count, split = SHAPES[shape] * times, 32
    more = f", {split}" if shape == "16x32bx2" else ""
    tmem = rng.integers(0, 1 << 32, (32, 64), dtype=np.uint32)
    body = words("%rd1", 64, True) + f" tcgen05.st.sync.aligned.32x32b.x64.b32 [%r6], {registers(0, 64)}; tcgen05.wait::st.sync.aligned;"
    load = body + f" tcgen05.ld.sync.aligned.{shape}.x{times}.pack::16b.b32 {registers(0, count)}, [%r6]{more}; tcgen05.wait::ld.sync.aligned;"
    got = run(device, load + words("%rd2", count, False), 32, tmem, np.zeros((32, count), np.uint32))
    wanted = np.zeros_like(got)
    stored = tmem.copy()
    for thread in range(32):
        for register in range(count):
            lane, element = place(shape, thread, register)
            low, high = columns(shape, thread, element, split)
            wanted[thread, register] = (tmem[lane, low] & 0xFFFF) | (tmem[lane, high] & 0xFFFF) << 16
            value = tmem[thread, register]
            stored[lane, low], stored[lane, high] = value & 0xFFFF, value >> 16
    store = body + f" tcgen05.st.sync.aligned.{shape}.x{times}.unpack::16b.b32 [%r6]{more}, {registers(0, count)}; tcgen05.wait::st.sync.aligned;"
    store += f" tcgen05.ld.sync.aligned.32x32b.x64.b32 {registers(0, 64)}, [%r6]; tcgen05.wait::ld.sync.aligned;"
    after = run(device, store + words("%rd2", 64, False), 32, tmem, np.zeros((32, 64), np.uint32))
    return (got == wanted).all() and ((after ^ stored) & 0xFFFF == 0).all()


# The functions from here on test scale-input-d and disable-output-lane.
M, N, K = 128, 16, 16


def matrices(x):
    """Returns the bytes of x as matrices of 8 rows of 16 bytes. Neighbors along K follow each
    other."""
    rows = x.view(np.uint8).reshape(len(x) // 8, 8, -1, 16)
    return rows.transpose(0, 2, 1, 3).tobytes()


def descriptor(base, leading, stride):
    """Returns instructions that make the descriptor of a matrix without swizzle in %rd`base`."""
    high = leading // 16 << 16 | stride // 16 << 32 | 1 << 46
    return f" shr.u32 %r7, %r2, 4; cvt.u64.u32 %rd{base}, %r7; or.b64 %rd{base}, %rd{base}, {high};"


def product_body(tail, head=""):
    idesc = 1 << 4 | N // 8 << 17 | M // 16 << 24
    copy = words("%rd1", 12, True) + " mul.lo.u32 %r8, %r1, 48; add.u32 %r8, %r8, %r2;"
    copy += " ".join(f"st.shared.u32 [%r8+{4 * k}], %o{k};" for k in range(12)) + " fence.proxy.async.shared::cta; "
    start = f" add.s64 %rd1, %rd1, {128 * 48};" + words("%rd1", N, True) + f" tcgen05.st.sync.aligned.32x32b.x16.b32 [%r6], {registers(0, N)};"
    start += " tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;"
    mma = descriptor(4, 128, 256) + f" add.s64 %rd5, %rd4, {M * K * 2 // 16}; mov.b32 %r9, {idesc}; setp.eq.u32 %p5, 0, 0; {head}"
    mma += f" @%p1 tcgen05.mma.cta_group::1.kind::f16 [%r5], %rd4, %rd5, %r9, {tail};"
    end = f" tcgen05.ld.sync.aligned.32x32b.x16.b32 {registers(0, N)}, [%r6]; tcgen05.wait::ld.sync.aligned;" + words("%rd2", N, False)
    return copy + start + mma + WAIT + end


def product_inputs(rng):
    a, b = rng.standard_normal((M, K)).astype(np.float16), rng.standard_normal((N, K)).astype(np.float16)
    start = rng.standard_normal((M, N)).astype(np.float32)
    data = (matrices(a) + matrices(b)).ljust(128 * 48, b"\0") + start.tobytes()
    return a.astype(float), b.astype(float), start, np.frombuffer(data, np.uint8)


def test_product(device, rng, scale, mask):
    a, b, start, data = product_inputs(rng)
    head = " ".join(f"mov.b32 %r{20 + k}, {int(w)};" for k, w in enumerate(mask)) if mask is not None else ""
    lanes = "{%r20, %r21, %r22, %r23}, " if mask is not None else ""
    got = run(device, product_body(f"{lanes}%p5{'' if scale is None else f', {scale}'}", head), 128, data, np.zeros((M, N), np.float32))
    kept = start * 2.0 ** -(scale or 0)
    error, room = np.abs(got - (kept + a @ b.T)), 2.0 ** -23 * (np.abs(kept) + np.abs(a) @ np.abs(b).T)
    off = np.zeros(M, bool) if mask is None else np.array([int(mask[m // 32]) >> m % 32 & 1 for m in range(M)], bool)
    return (error[~off] <= room[~off]).all() and (got[off] == start[off]).all()


# The functions from here on test cp, also with elements of 4 and 6 bits.
COPIES = {  # Maps a shape to (rows, bytes of a row after unpacking, the row that each lane gets). Row -1 is none.
    "4x256b": (4, 32, lambda lane: -1 if lane % 32 else lane // 32),
    "128x128b": (128, 16, lambda lane: lane),
    "128x256b": (128, 32, lambda lane: lane),
    "32x128b.warpx4": (32, 16, lambda lane: lane % 32),
    "64x128b.warpx2::02_13": (64, 16, lambda lane: lane % 64),
    "64x128b.warpx2::01_23": (64, 16, lambda lane: lane // 64 * 32 + lane % 32),
}


def test_copy(device, rng, shape, bits):
    rows, size, row_of = COPIES[shape]
    codes = rng.integers(0, 1 << bits, (rows, size), dtype=np.uint8)
    packed = rng.integers(0, 256, (max(rows, 8), size), dtype=np.uint8)  # The bytes in the gaps are random.
    for row in range(rows):
        for unit in range(size // 16):
            text = sum(int(c) << bits * e for e, c in enumerate(codes[row, 16 * unit:16 * unit + 16]))
            packed[row, 16 * unit:16 * unit + 2 * bits] = np.frombuffer(text.to_bytes(2 * bits, "little"), np.uint8)
    count = 8
    data = np.frombuffer(matrices(packed).ljust(128 * 4 * count, b"\0"), np.uint8)
    copy = words("%rd1", count, True) + f" tcgen05.st.sync.aligned.32x32b.x{count}.b32 [%r6], {registers(0, count)};"
    copy += f" tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; mul.lo.u32 %r8, %r1, {4 * count}; add.u32 %r8, %r8, %r2;"
    copy += " ".join(f"st.shared.u32 [%r8+{4 * k}], %o{k};" for k in range(count)) + " fence.proxy.async.shared::cta; bar.sync 0; "
    copy += descriptor(4, 128, 8 * size)
    source = {4: ".b8x16.b4x16_p64", 6: ".b8x16.b6x16_p32", 8: ""}[bits]
    copy += f" tcgen05.fence::after_thread_sync; @%p1 tcgen05.cp.cta_group::1.{shape}{source} [%r5], %rd4;" + WAIT
    n = size // 4
    copy += f" tcgen05.ld.sync.aligned.32x32b.x{n}.b32 {registers(0, n)}, [%r6]; tcgen05.wait::ld.sync.aligned;" + words("%rd2", n, False)
    got = run(device, copy, 128, data, np.zeros((128, size), np.uint8))
    before = data[:128 * 4 * count].reshape(128, -1)[:, :size]  # Lanes without a row keep their contents.
    return all((got[lane] == (codes[row_of(lane)] if row_of(lane) >= 0 else before[lane])).all() for lane in range(128))


def refused(device, rng, tail, message, kind="f16", target="sm_100a"):
    try:
        run(device, product_body(tail).replace("kind::f16", f"kind::{kind}"), 128, product_inputs(rng)[3], np.zeros((M, N), np.float32), target)
        return False
    except driver.Error as error:
        return message in str(error)


def main():
    device, rng = driver.Device(sys.argv[1]), np.random.default_rng(5)
    results = {f"{shape} x{times} packed": test_pack(device, rng, shape, times) for shape in SHAPES for times in (1, 2, 4)}
    results |= {f"scale-input-d {s}": test_product(device, rng, s, None) for s in (None, 0, 1, 7, 15)}
    masks = [np.array(m, np.uint32) for m in ([0, 0, 0, 0], [1, 0, 0, 1 << 31], [2**32 - 1] * 4, rng.integers(0, 1 << 32, 4))]
    results |= {f"disable-output-lane {m}, scale-input-d {s}": test_product(device, rng, s, m) for m in masks for s in (None, 3)}
    results |= {f"cp {shape}, {bits} bits": test_copy(device, rng, shape, bits) for shape in COPIES for bits in (4, 6, 8)}
    results["scale-input-d 16"] = refused(device, rng, "%p5, 16", "scale-input-d is above 15")
    results["three words of lanes"] = refused(device, rng, "{%r1, %r1, %r1}, %p5", "disable-output-lane has 3 words, not 4")
    results["kind::i8 for sm_100f"] = refused(device, rng, "%p5", "kind::i8 is for the target sm_100a, not for sm_100f", "i8", "sm_100f")
    failed = [name for name, good in results.items() if not good]
    print("\n".join(failed))
    print(f"{len(results)} tests, {len(failed)} failed")
    sys.exit(bool(failed))


main()
