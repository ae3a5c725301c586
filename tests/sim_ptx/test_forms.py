"""Tests how the simulator decodes the instruction descriptors of tcgen05.mma that CUTLASS returns
(tests/golden/data/instruction_descriptors.txt). Each descriptor multiplies operands whose bytes are all equal, so
that the results tell the types, the sizes, the signs and the scales that the simulator has decoded. Values that a
field may not have must be refused by the name of the field. usage: test_forms.py ARCH FOLDER"""
import pathlib
import sys

import driver
import numpy as np

STORED = pathlib.Path(__file__).resolve().parents[1] / "golden/data/instruction_descriptors.txt"
COLUMNS, POISON = 256, 0x7FFFFFFF  # The columns of tensor memory for D, and the word that fills them.
A_FILL, B_FILL, B_FILL_I8 = 0xAA, 0x55, 0x95  # These bytes fill A and B. Each byte has another value in each type.
# KINDS maps a kind to (elements of K of an instruction, the kind's name in PTX).
KINDS = {"f16": (16, "kind::f16"), "tf32": (8, "kind::tf32"), "i8": (32, "kind::i8"), "f8f6f4": (32, "kind::f8f6f4"),
         "mxf8f6f4": (32, "kind::mxf8f6f4.block_scale"), "mxf4": (64, "kind::mxf4.block_scale.scale_vec::2X"),
         "mxf4nvf4_2X": (64, "kind::mxf4nvf4.block_scale.scale_vec::2X"), "mxf4nvf4_4X": (64, "kind::mxf4nvf4.block_scale.scale_vec::4X")}
FLOATS = {"f16": (16, 5, 10), "bf16": (16, 8, 7), "tf32": (19, 8, 10), "e4m3": (8, 4, 3), "e5m2": (8, 5, 2), "e2m3": (6, 2, 3),
          "e3m2": (6, 3, 2), "e2m1": (4, 2, 1), "ue8m0": (8, 8, 0), "ue4m3": (8, 4, 3)}
# SCALES maps a type of scales to the four scales in a word of tensor memory, for A and for B.
SCALES = {"ue8m0": ((126, 127, 128, 129), (125, 127, 130, 134)), "ue4m3": ((0x30, 0x38, 0x40, 0x48), (0x28, 0x38, 0x50, 0x58))}
# CODES maps a type to its code in the descriptor (arch/mma_sm100_desc.hpp:422-437 and 451-470 of
# CUTLASS).
CODES = {"f16": 0, "bf16": 1, "tf32": 2, "u8": 0, "s8": 1, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
D_CODES, SCALE_CODES = {"f16": 0, "f32": 1, "s32": 2}, {"ue4m3": 0, "ue8m0": 1}
PLAIN, SCALED = ("f16", "tf32", "i8", "f8f6f4"), ("mxf8f6f4", "mxf4", "mxf4nvf4_2X", "mxf4nvf4_4X")
FP4 = SCALED[1:]
# REFUSED lists values that the simulator must refuse: (kinds, first bit of the field, number of
# bits, value, name of the field in the message).
REFUSED = [
    (PLAIN + SCALED, 0, 2, 1, "sparsity selector"), (PLAIN + SCALED, 2, 1, 1, "sparsity"), (PLAIN + SCALED, 6, 1, 1, "reserved (bits 6"),
    (("f16", "tf32", "f8f6f4") + SCALED, 3, 1, 1, "saturation"), (("f16", "f8f6f4"), 4, 2, 2, "type of D"), (("tf32",), 4, 2, 0, "type of D"),
    (("i8",), 4, 2, 1, "type of D"), (("f16", "i8"), 7, 3, 2, "type of A"), (("f16", "i8"), 10, 3, 3, "type of B"), (("tf32",), 7, 3, 0, "type of A"),
    (("tf32",), 10, 3, 1, "type of B"), (("f8f6f4", "mxf8f6f4"), 7, 3, 2, "type of A"), (("f8f6f4", "mxf8f6f4"), 10, 3, 6, "type of B"),
    (FP4, 7, 3, 5, "type of A"), (FP4, 10, 2, 0, "type of B"), (FP4, 12, 1, 1, "reserved (bits 12"), (("i8",), 13, 1, 1, "negation of A"),
    (("i8",), 14, 1, 1, "negation of B"), (FP4, 15, 1, 1, "order of A"), (FP4, 16, 1, 1, "order of B"), (PLAIN, 23, 1, 1, "reserved (bits 23"),
    (("mxf8f6f4", "mxf4"), 23, 1, 0, "type of scales"), (SCALED, 24, 3, 4, "reserved (bits 24"), (PLAIN, 29, 1, 1, "reserved (bits 29"),
    (("mxf4", "mxf4nvf4_2X"), 29, 2, 1, "scale id of A"), (("mxf4", "mxf4nvf4_2X"), 4, 2, 3, "scale id of B"),
    (("mxf4nvf4_4X",), 29, 2, 2, "scale id of A"), (("mxf4nvf4_4X",), 4, 2, 2, "scale id of B"), (PLAIN, 30, 2, 1, "largest shift"),
    (SCALED, 31, 1, 1, "size of K"),
]
FIELDS = "kind a b d m n a_order b_order a_sign b_sign a_id b_id".split()


def cases():
    for line in STORED.read_text().splitlines():
        if not line.startswith("#"):
            *words, descriptor = line.split()
            yield dict(zip(FIELDS, words[:4] + [int(w) for w in words[4:]])), int(descriptor, 16)


def made(c):
    """Returns the descriptor made from its fields as the PTX ISA documents them."""
    fp4 = c["kind"].startswith("mxf4")
    codes = [1 if fp4 else CODES[c[o]] for o in "ab"]
    value = codes[0] << 7 | codes[1] << 10 | c["a_sign"] << 13 | c["b_sign"] << 14 | c["a_order"] << 15 | c["b_order"] << 16
    value |= c["n"] // 8 << 17 | c["m"] // 16 << 24
    if c["kind"] in PLAIN:
        return value | D_CODES[c["d"]] << 4
    return value | c["b_id"] << 4 | SCALE_CODES[c["d"]] << 23 | c["a_id"] << 29


def number(name, fill):
    """Returns the value of an element of the type `name`, all bytes of which are `fill`."""
    if name in ("u8", "s8"):
        return fill - (256 if name == "s8" and fill > 127 else 0)
    width, exponent, mantissa = FLOATS[name]
    word = int.from_bytes(bytes([fill] * 4), "little")
    bits = word >> 13 if name == "tf32" else word & (1 << width) - 1
    sign = -1 if not name.startswith("u") and bits >> width - 1 else 1
    e, m = bits >> mantissa & (1 << exponent) - 1, bits & (1 << mantissa) - 1
    assert e  # no subnormals here
    return sign * 2.0 ** (e - (1 << exponent - 1) + 1) * (1 + m / (1 << mantissa))


def expected(c, b_fill):
    """Returns the expected words of D in 128 lanes and COLUMNS columns of tensor memory."""
    k, product = KINDS[c["kind"]][0], number(c["a"], A_FILL) * number(c["b"], b_fill) * (-1) ** (c["a_sign"] + c["b_sign"])
    value, d = k * product, c["d"]
    if c["kind"] in SCALED:
        blocks, d = {"mxf8f6f4": 1, "mxf4nvf4_4X": 4}.get(c["kind"], 2), "f32"
        a, b = ([number(c["d"], s) for s in scales] for scales in SCALES[c["d"]])
        value = sum(k // blocks * product * a[c["a_id"] + s] * b[c["b_id"] + s] for s in range(blocks))
    word = {"f16": lambda v: np.float16(v).view(np.uint16), "f32": lambda v: np.float32(v).view(np.uint32), "s32": lambda v: v & 0xFFFFFFFF}[d](value)
    out = np.full((128, COLUMNS), POISON, np.uint32)
    rows = np.arange(c["m"])
    out[rows // 16 * 32 + rows % 16 if c["m"] == 64 else rows, :c["n"]] = int(word)
    return out


def kernel(kind):
    """Returns a kernel. Its arguments are the address of the results, the descriptor, the bytes of
    A and of B, the words of the scales of A and of B, and 1 if the product is added to D. In
    tensor memory, D begins at column 0 and the scales at columns 256 and 288."""
    registers = ", ".join(f"%o{k}" for k in range(32))
    store = "".join(f"add.u32 %r8, %r7, {c}; tcgen05.st.sync.aligned.32x32b.x32.b32 [%r8], {{{', '.join([r] * 32)}}};\n"
                    for c, r in [(32 * n, "%r10") for n in range(8)] + [(256, "%r13"), (288, "%r14")])
    load = "".join(f"add.u32 %r8, %r7, {32 * n}; tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{registers}}}, [%r8]; tcgen05.wait::ld.sync.aligned;\n"
                   + "".join(f"st.global.u32 [%d3+{128 * n + 4 * k}], %o{k};\n" for k in range(32)) for n in range(8))
    fill = "".join(f"st.shared.u32 [%r3+{512 * n}], %r{11 + n // 4};\n" for n in range(8))
    scales = ", [%r15], [%r16]" if "block_scale" in kind else ""
    return f""".version 8.7
.target sm_100a
.address_size 64
.visible .entry kernel(.param .u64 to, .param .u32 form, .param .u32 a, .param .u32 b, .param .u32 sa, .param .u32 sb, .param .u32 adds) {{
.reg .pred %p<6>; .reg .b32 %r<20>; .reg .b32 %o<32>; .reg .b64 %d<8>;
.shared .align 1024 .b8 tile[4096];
.shared .align 8 .b8 bar[16];
ld.param.u64 %d1, [to]; ld.param.u32 %r11, [a]; ld.param.u32 %r12, [b]; ld.param.u32 %r13, [sa]; ld.param.u32 %r14, [sb];
mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r4, bar; mov.u32 %r10, {POISON};
setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32; ld.param.u32 %r17, [adds]; setp.ne.u32 %p4, %r17, 0;
shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %r2;
{fill}@%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4+8], 512; @%p1 mbarrier.init.shared::cta.b64 [%r4], 1;
fence.proxy.async.shared::cta; bar.sync 0;
ld.shared.u32 %r5, [%r4+8]; and.b32 %r7, %r1, 96; shl.b32 %r7, %r7, 16; add.u32 %r7, %r7, %r5;
{store}tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
shr.u32 %r6, %r2, 4; cvt.u64.u32 %d4, %r6; or.b64 %d4, %d4, {1 << 46 | 1 << 16 | 1 << 32}; add.u64 %d5, %d4, 128;
ld.param.u32 %r9, [form]; add.u32 %r15, %r5, 256; add.u32 %r16, %r5, 288;
@%p1 tcgen05.mma.cta_group::1.{kind} [%r5], %d4, %d5, %r9{scales}, %p4;
@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];
$W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], 0; @!%p3 bra $W; tcgen05.fence::after_thread_sync;
mul.wide.u32 %d3, %r1, {4 * COLUMNS}; add.s64 %d3, %d3, %d1;
{load}bar.sync 0; @%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 512;
ret; }}
"""


def run(device, functions, kind, descriptor, b_fill, scales, adds=0):
    to = device.upload(np.zeros((128, COLUMNS), np.uint32))
    words = [descriptor] + [int.from_bytes(bytes(s), "little") for s in ([A_FILL] * 4, [b_fill] * 4, *scales)]
    try:
        device.launch(functions[kind], (1,), (128,), 0, [to, *map(driver.ctypes.c_uint32, words + [adds])])
        return device.download(to, np.zeros((128, COLUMNS), np.uint32))
    finally:
        device.free(to)


def check(device, functions, c, descriptor):
    if made(c) != descriptor:
        return f"the fields make {made(c):#010x}"
    b_fill = B_FILL_I8 if c["kind"] == "i8" else B_FILL
    try:
        got = run(device, functions, c["kind"], descriptor, b_fill, SCALES.get(c["d"], ((0,) * 4,) * 2))
    except driver.Error as error:
        return str(error)
    wrong = np.argwhere(got != expected(c, b_fill))
    if not len(wrong):
        return None
    lane, column = wrong[0]
    return f"{len(wrong)} words, first lane {lane}, column {column}: {got[lane, column]:#010x}, not {expected(c, b_fill)[lane, column]:#010x}"


def check_refused(device, functions, kind, descriptor, row):
    _, first, bits, value, name = row
    try:
        run(device, functions, kind, descriptor & ~((1 << bits) - 1 << first) | value << first, B_FILL, SCALES["ue8m0"])
        return "is not refused"
    except driver.Error as error:
        return None if name in str(error) and f"is {value}: instruction descriptor" in str(error) else str(error)


def check_saturation(device, functions, descriptor, saturates):
    """Adds a positive product of u8 to the largest int32, with or without saturation (bit 3 of the
    descriptor)."""
    d = run(device, functions, "i8", descriptor | saturates << 3, B_FILL_I8, ((0,) * 4,) * 2, adds=1)
    product = 32 * A_FILL * B_FILL_I8
    wanted = POISON if saturates else (POISON + product) & 0xFFFFFFFF
    return None if (d[:128, :32] == wanted).all() and (d[:, 32:] == POISON).all() else f"{d[0, 0]:#010x}, not {wanted:#010x}"


def main():
    device = driver.Device(sys.argv[1])
    modules = {name: device.load(kernel(kind)) for name, (_, kind) in KINDS.items()}
    functions = {name: device.function(module, "kernel") for name, module in modules.items()}
    results, first = {}, {}
    for c, descriptor in cases():
        first.setdefault(c["kind"], descriptor)
        results[f"{descriptor:#010x} {c}"] = check(device, functions, c, descriptor)
    for saturates in 0, 1:
        results[f"i8 with saturation {saturates}"] = check_saturation(device, functions, first["i8"], saturates)
    taken = len(results)
    for row in REFUSED:
        for kind in row[0]:
            results[f"{kind}, {row[4]} {row[3]}"] = check_refused(device, functions, kind, first[kind], row)
    failed = [f"{name}: {text}" for name, text in results.items() if text]
    print("\n".join(failed))
    print(f"{taken} descriptors and {len(results) - taken} refused values, {len(failed)} failed")
    sys.exit(bool(failed) or set(first) != set(KINDS))


main()
