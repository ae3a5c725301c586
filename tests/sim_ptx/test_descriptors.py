"""Compares how the simulator reads the descriptors of wgmma and tcgen05.mma with what CUTLASS and DeepGEMM
document. The tables have values that these projects' functions return, and the layouts that comments of CUTLASS
state for them. Line numbers are those of CUTLASS 7107b0553 (below include/cute) and DeepGEMM 54e2261 (below
deep_gemm/include/deep_gemm). usage: test_descriptors.py ARCH FOLDER"""
import sys

import driver
import numpy as np

TILE, ONES = 32768, 32768  # The operand that is tested has 32768 bytes; behind it is a matrix that selects elements.
BYTES = TILE + 4096
N = 32
# SWIZZLES maps a swizzle to (16-byte units in a row of the pattern, layout type of wgmma, of
# tcgen05): arch/mma_sm90_desc.hpp:124, arch/mma_sm100_desc.hpp:83-87.
SWIZZLES = {"none": (1, 0, 0), "32": (2, 3, 6), "64": (4, 2, 4), "128": (8, 1, 2)}
# FIELDS maps a field of a shared memory descriptor to (first bit, number of bits):
# arch/mma_sm90_desc.hpp:108-126, arch/mma_sm100_desc.hpp:105-115.
FIELDS = {"leading": (16, 14), "stride": (32, 14), "version": (46, 2)}
LAYOUT_TYPE = {"wgmma": (62, 2), "tcgen05": (61, 3)}

# Each entry lists the function that returns the descriptor, the instruction, the bytes of an
# element, the first byte of the operand, whether M or N is contiguous, the swizzle, the leading
# offset, the stride offset, and the descriptor without its address.
DESCRIPTORS = [
    ("DeepGEMM mma/sm90.cuh:199, the default", "wgmma", 2, 0, False, "128", 0, 1024, 0x4000004000000000),
    ("DeepGEMM mma/sm90.cuh:256-259, K-major, second K", "wgmma", 2, 32, False, "128", 0, 1024, 0x4000004000000000),
    ("DeepGEMM mma/sm90.cuh:256-259, K-major, last K", "wgmma", 1, 96, False, "128", 0, 1024, 0x4000004000000000),
    ("DeepGEMM mma/sm90.cuh:256-259, K-major, 64 bytes", "wgmma", 1, 32, False, "64", 0, 512, 0x8000002000000000),
    ("DeepGEMM mma/sm90.cuh:256-259, K-major, 32 bytes", "wgmma", 2, 0, False, "32", 0, 256, 0xC000001000000000),
    ("DeepGEMM mma/sm90.cuh:272-277, MN-major, BLOCK_K 64", "wgmma", 2, 0, True, "128", 8192, 1024, 0x4000004002000000),
    ("DeepGEMM mma/sm90.cuh:272-277, MN-major, 64 bytes, BLOCK_K 16", "wgmma", 2, 0, True, "64", 1024, 512, 0x8000002000400000),
    ("DeepGEMM mma/sm90.cuh:272-277, MN-major, interleaved, BLOCK_K 64", "wgmma", 2, 0, True, "none", 128, 1024, 0x0000004000080000),
    ("CUTLASS atom/mma_traits_sm90_gmma.hpp:199, K-major", "wgmma", 2, 256, False, "none", 128, 256, 0x0000001000080000),
    ("DeepGEMM mma/sm100.cuh:100-112, K-major", "tcgen05", 2, 0, False, "128", 0, 1024, 0x4000404000000000),
    ("DeepGEMM mma/sm100.cuh:100-112, K-major, third K", "tcgen05", 1, 64, False, "128", 0, 1024, 0x4000404000000000),
    ("DeepGEMM mma/sm100.cuh:100-112, K-major, 64 bytes", "tcgen05", 2, 32, False, "64", 0, 512, 0x8000402000000000),
    ("DeepGEMM mma/sm100.cuh:100-112, K-major, 32 bytes", "tcgen05", 1, 0, False, "32", 0, 256, 0xC000401000000000),
    ("DeepGEMM mma/sm100.cuh:125-131, MN-major, BLOCK_K 64", "tcgen05", 2, 0, True, "128", 8192, 1024, 0x4000404002000000),
    ("DeepGEMM mma/sm100.cuh:125-131, MN-major, BLOCK_K 128", "tcgen05", 1, 0, True, "128", 16384, 1024, 0x4000404004000000),
    ("DeepGEMM mma/sm100.cuh:125-131, MN-major, 32 bytes, BLOCK_K 32", "tcgen05", 2, 0, True, "32", 1024, 256, 0xC000401000400000),
    ("DeepGEMM mma/sm100.cuh:125-131, MN-major, interleaved, BLOCK_K 64", "tcgen05", 2, 0, True, "none", 128, 1024, 0x0000404000080000),
    ("CUTLASS arch/mma_sm100_desc.hpp:737, K-major", "tcgen05", 1, 1024, False, "none", 2048, 128, 0x0000400800800000),
]
# FORMS lists descriptors that make_instr_desc returns (arch/mma_sm100_desc.hpp:482-503), with fp32
# accumulators, M = 128 and N = 32. Each entry is (bits of the types by
# arch/mma_sm100_desc.hpp:422-437, type of the elements, whether A and B are negated, descriptor).
FORMS = [
    ({"a_format": 0, "b_format": 0}, "f16", 1, 0x08080010),
    ({"a_format": 1, "b_format": 1}, "bf16", 1, 0x08080490),
    ({"a_format": 0, "b_format": 0, "a_negate": 1}, "f16", -1, 0x08082010),
    ({"a_format": 0, "b_format": 0, "b_negate": 1}, "f16", -1, 0x08084010),
    ({"a_format": 0, "b_format": 0, "a_negate": 1, "b_negate": 1}, "f16", 1, 0x08086010),
]
FORM_FIELDS = {"c_format": 4, "a_format": 7, "b_format": 10, "a_negate": 13, "b_negate": 14, "a_major": 15, "b_major": 16, "n_dim": 17, "m_dim": 24}


def index(coordinate, modes):
    """Returns the index to which a CuTe mode maps a coordinate. The mode is a list of (extent,
    stride) pairs."""
    at = 0
    for extent, stride in modes:
        at += coordinate % extent * stride
        coordinate //= extent
    return at


def modes(mn_major, swizzle, t, leading, stride):
    """Returns the CuTe modes of M or N and of K, in elements. T elements have 16 bytes. The layouts
    are those of arch/mma_sm100_desc.hpp:701-704 and :724-727, and of
    atom/mma_traits_sm90_gmma.hpp:164-167 and :186-189."""
    w, many = SWIZZLES[swizzle][0], 1 << 20
    if not mn_major:
        return [(8, w * t), (many, stride)], [(t, 1), (2, leading if swizzle == "none" else t)]
    if swizzle == "none":
        return [(t, 1), (many, stride)], [(8, t), (many, leading)]
    return [(t, 1), (w, t), (many, leading)], [(8, w * t), (many, stride)]


def places(rows, k, size, first, mn_major, swizzle, leading, stride):
    """Returns the byte offset of each element (row, k). The swizzle of CuTe, Swizzle<B, 4, 3>, is
    applied to it."""
    of_row, of_k = modes(mn_major, swizzle, 16 // size, leading // size, stride // size)
    mask = SWIZZLES[swizzle][0] - 1 << 4
    at = np.array([[first + size * (index(r, of_row) + index(c, of_k)) for c in range(k)] for r in range(rows)])
    return at ^ (at >> 3 & mask)


def selection(k, size, rows):
    """Returns the bytes of an identity matrix. It is K-major without a swizzle, with 128 bytes
    between neighboring units along K."""
    one = {1: 0x38, 2: 0x3C00}[size]
    out = np.zeros((rows, k), f"u{size}")
    out[np.arange(min(rows, k)), np.arange(min(rows, k))] = one
    return out.view(np.uint8).reshape(rows // 8, 8, -1, 16).transpose(0, 2, 1, 3).tobytes()


def copy_in():
    rounds = "".join(f"ld.global.v4.u32 {{%r20, %r21, %r22, %r23}}, [%rd3+{2048 * n}]; st.shared.v4.u32 [%r3+{2048 * n}], {{%r20, %r21, %r22, %r23}};\n"
                     for n in range(BYTES // 2048))
    return f"mul.wide.u32 %rd3, %r1, 16; add.s64 %rd3, %rd3, %rd1; shl.b32 %r3, %r1, 4; add.u32 %r3, %r3, %r2;\n{rounds}fence.proxy.async.shared::cta; bar.sync 0;\n"


def kernel(instruction, body, out):
    """Returns a kernel that copies BYTES bytes from its first argument to shared memory and
    executes `body`. It then stores the registers %f0 to %f(out - 1) of each thread to its second
    argument."""
    store = "".join(f"st.global.f32 [%rd3+{4 * k}], %f{k}; " for k in range(out))
    alloc = "@%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4+8], 32; @%p1 mbarrier.init.shared::cta.b64 [%r4], 1;"
    free = "bar.sync 0; @%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 32;"
    tcgen05 = instruction == "tcgen05"
    return f""".version 8.7
.target {"sm_100a" if tcgen05 else "sm_90a"}
.address_size 64
.visible .entry kernel(.param .u64 a, .param .u64 b) {{
.reg .pred %p<6>; .reg .b32 %r<32>; .reg .f32 %f<32>; .reg .b64 %rd<8>;
.shared .align 1024 .b8 tile[{BYTES}];
.shared .align 8 .b8 bar[16];
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r4, bar;
setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32; setp.ne.u32 %p4, 0, 0;
{alloc if tcgen05 else ""}
{copy_in()}{body}
mul.wide.u32 %rd3, %r1, {4 * out}; add.s64 %rd3, %rd3, %rd2; {store}
{free if tcgen05 else ""}
ret; }}
"""


def descriptor(register, first, value):
    return f"add.u32 %r6, %r2, {first}; shr.u32 %r6, %r6, 4; cvt.u64.u32 %rd{register}, %r6; or.b64 %rd{register}, %rd{register}, {value};\n"


def multiply(instruction, size, a, b, a_major, b_major, form):
    """Returns a kernel that multiplies the operands with the descriptors a and b. Each is (first
    byte, descriptor)."""
    load = descriptor(4, *a) + descriptor(5, *b)
    if instruction == "wgmma":
        types, ends = ("f16.f16", f", {a_major:d}, {b_major:d}") if size == 2 else ("e4m3.e4m3", "")
        registers = ", ".join(f"%f{k}" for k in range(16))
        return kernel(instruction, load + f"wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n{N}k{32 // size}.f32.{types} "
                      f"{{{registers}}}, %rd4, %rd5, %p4, 1, 1{ends}; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;", 16)
    kind = {1: "f8f6f4", 2: "f16"}[size]
    registers = ", ".join(f"%r{k}" for k in range(32))
    moves = "".join(f"mov.b32 %f{k}, %o{k}; " for k in range(32))
    load += f".reg .b32 %o<32>; ld.shared.u32 %r5, [%r4+8]; mov.u32 %r7, {form | a_major << 15 | b_major << 16}; and.b32 %r8, %r1, 96; shl.b32 %r8, %r8, 16; add.u32 %r8, %r8, %r5;\n"
    load += f"@%p1 tcgen05.mma.cta_group::1.kind::{kind} [%r5], %rd4, %rd5, %r7, %p4; @%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];\n"
    load += "$W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], 0; @!%p3 bra $W; tcgen05.fence::after_thread_sync;\n"
    return kernel(instruction, load + f"tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{registers.replace('%r', '%o')}}}, [%r8]; tcgen05.wait::ld.sync.aligned; {moves}", 32)


def run(device, text, instruction, tile, selected):
    """Runs a kernel and returns D. It has 128 rows for tcgen05 and 64 rows for wgmma."""
    data = np.frombuffer((tile.tobytes() + selected).ljust(BYTES, b"\0"), np.uint8)
    count = 32 if instruction == "tcgen05" else 16
    module = device.load(text)
    at = [device.upload(data), device.upload(np.full((128, count), np.nan, np.float32))]
    device.launch(device.function(module, "kernel"), (1,), (128,), 0, at)
    got = device.download(at[1], np.zeros((128, count), np.float32))
    for p in at:
        device.free(p)
    device.unload(module)
    if instruction == "tcgen05":
        return got
    d = np.zeros((64, N), np.float32)
    for thread in range(128):
        for r in range(16):
            d[thread // 32 * 16 + thread % 32 // 4 + 8 * (r // 2 % 2), r // 4 * 8 + 2 * (thread % 4) + r % 2] = got[thread, r]
    return d


def read_places(device, case, operand):
    """Returns for each element of A or B the offset in shared memory from which the simulator reads
    it. Every element in memory contains its own number. e4m3 represents few integers exactly, so
    each launch finds only one digit of the number."""
    _, instruction, size, first, mn_major, *_, value = case
    k = 32 // size
    rows = N if operand == "b" else 128 if instruction == "tcgen05" else 64
    other = (ONES, 128 // 16 << 16 | 128 * k * size // 16 // 16 << 32 | (1 << 46 if instruction == "tcgen05" else 0))
    mine = (first, value)
    a, b, majors = (mine, other, (mn_major, False)) if operand == "a" else (other, mine, (False, mn_major))
    text = multiply(instruction, size, a, b, *majors, 1 << 4 | N // 8 << 17 | 128 // 16 << 24)
    selected = selection(k, size, N if operand == "a" else 128 if instruction == "tcgen05" else 64)
    numbers, base = np.arange(TILE // size), {1: 8, 2: 1024}[size]
    got = np.zeros((rows, k), np.int64)
    for digit in range({1: 5, 2: 2}[size]):
        digits = numbers // base ** digit % base
        tile = digits.astype(np.float16) if size == 2 else np.array([0, 0x38, 0x40, 0x44, 0x48, 0x4A, 0x4C, 0x4E], np.uint8)[digits]
        d = run(device, text, instruction, tile, selected)
        got += (d[:, :k] if operand == "a" else d[:k, :].T).astype(np.int64) * base ** digit
    return size * got


def check_descriptor(device, case, operand):
    name, instruction, size, first, mn_major, swizzle, leading, stride, value = case
    fields = {"leading": leading // 16, "stride": stride // 16, "version": int(instruction == "tcgen05")}
    at, _ = LAYOUT_TYPE[instruction]
    made = sum(v << FIELDS[n][0] for n, v in fields.items()) | SWIZZLES[swizzle][1 + (instruction == "tcgen05")] << at
    if made != value:
        return f"the fields make {made:#018x}, not {value:#018x}"
    try:
        got = read_places(device, case, operand)
    except driver.Error as error:
        return str(error)
    # The tile begins at a multiple of 1024 in shared memory. A swizzle of offsets in the tile is
    # therefore equal to one of addresses.
    expected = places(*got.shape, size, first, mn_major, swizzle, leading, stride)
    wrong = np.argwhere(got != expected)
    if len(wrong):
        r, k = wrong[0]
        return f"{len(wrong)} elements, first ({r}, {k}): byte {got[r, k]}, not {expected[r, k]}"
    return None


def check_form(device, fields, kind, sign, value):
    made = sum(v << FORM_FIELDS[n] for n, v in {"c_format": 1, "n_dim": N // 8, "m_dim": 128 // 16, **fields}.items())
    if made != value:
        return f"the fields make {made:#010x}, not {value:#010x}"
    bits = np.arange(TILE // 2, dtype=np.uint16) % 2048 + 0x3800
    values = bits.view(np.float16).astype(np.float64) if kind == "f16" else (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    selected = np.frombuffer(selection(16, 2, N), np.uint16).copy()
    if kind == "bf16":
        selected[selected != 0] = 0x3F80
    plain = 128 // 16 << 16 | 256 // 16 << 32 | 1 << 46
    d = run(device, multiply("tcgen05", 2, (0, plain), (ONES, plain), False, False, value), "tcgen05", bits, selected.tobytes())
    at = places(128, 16, 2, 0, False, "none", 128, 256) // 2
    return None if (d[:, :16] == sign * values[at]).all() else f"elements of {kind} with sign {sign} are not read"


def refused(device, value, message):
    """Checks that the simulator refuses descriptors with features that it does not support."""
    instruction = "tcgen05" if device.arch == "sm_100a" else "wgmma"
    try:
        read_places(device, ("", instruction, 2, 0, False, "128", 0, 1024, value), "a")
        return "is not refused"
    except driver.Error as error:
        return None if message in str(error) else str(error)


def main():
    device = driver.Device(sys.argv[1])
    tcgen05 = device.arch == "sm_100a"
    results = {f"{c[0]}, {'M or N' if c[4] else 'K'} contiguous, {c[2]} bytes, operand {o}": check_descriptor(device, c, o)
               for c in DESCRIPTORS if (c[1] == "tcgen05") == tcgen05 for o in "ab"}
    base = 0x4000404000000000 if tcgen05 else 0x4000004000000000
    results["a base offset"] = refused(device, base | 1 << 49, "base offset")
    if tcgen05:
        results |= {f"instruction descriptor {f[3]:#010x}": check_form(device, *f) for f in FORMS}
        results["128 bytes with a base of 32"] = refused(device, base & ~(7 << 61) | 1 << 61, "swizzle 1")
        results["absolute leading offsets"] = refused(device, base | 1 << 52, "bit 52")
    failed = [f"{name}: {text}" for name, text in results.items() if text]
    print("\n".join(failed))
    print(f"{len(results)} descriptors, {len(failed)} failed")
    sys.exit(bool(failed))


main()
