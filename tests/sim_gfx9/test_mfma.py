"""Compares every matrix instruction of the simulator with NumPy. Operands are written to registers,
and D is read from them, by AMD's register layouts in tests/golden/mfma. An instruction without
such a file uses the formulas below. usage: test_mfma.py ARCH"""
import os
import pathlib
import re
import sys

import numpy as np

import assemble
import formats as F
import hip

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "mfma"
# The test passes 64 words to each lane. These are the indices of the first word of A, B, C and the
# scales.
A_AT, B_AT, C_AT, SCALE_AT = 0, 8, 16, 48
SEEDS = ["1", "2", "3"]  # BSMM_SIM_SEED varies the order in which an instruction adds.
SMALL = ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1"]


def golden(name, matrix):
    """Reads a golden file that has the register layout of a matrix. Returns a map (row, column) ->
    (register, lane, low bit), or None if there is no file."""
    path = GOLDEN / f"cdna3_{name}_{matrix}_reglayout.csv"
    if not path.exists():
        return None
    at = {}
    for line in path.read_text().splitlines()[4:]:
        row, *cells = line.split(",")
        for column, cell in enumerate(cells):
            m = re.match(r"v(\d+)\{(\d+)\}(?:\.\[\d+:(\d+)\])?$", cell)
            at[int(row), column] = int(m.group(1)), int(m.group(2)), int(m.group(3) or 0)
    return at


def operand_places(m, k, blocks, width, b):
    """Returns the register layout of A or B by a formula: each lane holds consecutive k of one row.
    Lanes are numbered by row first, then by block, then by k."""
    each = m * k * blocks // 64
    return {(i, j): (j % each * width // 32, i + m * (b + blocks * (j // each)), j % each * width % 32) for i in range(m) for j in range(k)}


def mixed_places(m, k, width):
    """Returns the register layout of A or B of an f8f6f4 instruction with m rows. The 64 lanes form
    64 / m groups, and lane i of each group holds elements of row i. Elements of 8 bits are dealt
    to the groups 16 consecutive k at a time, in turn. Of narrower elements, each group gets 32
    consecutive k."""
    groups, at = 64 // m, {}
    for i in range(m):
        for j in range(k):
            lane, item = (m * (j // 16 % groups) + i, j // 16 // groups * 16 + j % 16) if width == 8 else (m * (j // 32) + i, j % 32)
            at[i, j] = item * width // 32, lane, item * width % 32
    return at


def result_places(m, b, f64):
    at = {}
    for i in range(m):
        for j in range(m):
            if f64:
                at[i, j] = (2 * (i // 4), 16 * (i % 4) + j, 0) if m == 16 else (0, 16 * i + 4 * b + j, 0)
            elif m == 32:
                at[i, j] = 16 * b + 4 * (i // 8) + i % 4, 32 * (i // 4 % 2) + j, 0
            elif m == 16:
                at[i, j] = 4 * b + i % 4, 16 * (i // 4) + j, 0
            else:
                at[i, j] = i, 4 * b + j, 0
    return at


def put(words, base, places, bits, width):
    for (i, j), (reg, lane, low) in places.items():
        v = int(bits[i, j]) << low
        for k in range(3):
            if v >> 32 * k & 0xFFFFFFFF:
                words[lane, base + reg + k] |= v >> 32 * k & 0xFFFFFFFF


def random_matrix(rng, shape, kind, arch):
    """Returns a random matrix as bits, with the width of an element, and as values. The values are
    small integers, so dot products are exact."""
    fnuz = "fnuz" if arch == "gfx942" else ""
    kind = {"fp8": "e4m3" + fnuz, "bf8": "e5m2" + fnuz}.get(kind, kind)
    v = rng.integers(-4, 5, shape).astype(np.float64)
    if kind == "i8":
        v = rng.integers(-128, 128, shape).astype(np.float64)
        return v.astype(np.int64) & 255, 8, v
    if kind in F.FORMATS:
        e, m, _, _ = F.FORMATS[kind]
        codes = rng.integers(0, 1 << (1 + e + m), shape) if kind in SMALL[2:] else F.encode(v, kind)
        return codes, 1 + e + m, F.decode(codes, kind)
    if kind == "bf16":
        return F.to_bf16(v), 16, v
    types = {"f16": (np.float16, np.uint16, 16), "f32": (np.float32, np.uint32, 32), "xf32": (np.float32, np.uint32, 32), "f64": (np.float64, np.uint64, 64)}
    f, u, width = types[kind]
    return v.astype(f).view(u), width, v


def parse(name):
    m = re.match(r"v_mfma_(scale_)?(f32|i32|f64)_(\d+)x\d+x(\d+)_(?:(\d+)b_)?(\w+)$", name)
    scale, out, rows, k, blocks, kinds = m.groups()
    kinds = [kinds] * 2 if kinds in ("f8f6f4",) or "_" not in kinds else kinds.split("_")
    return bool(scale), out, int(rows), int(k), int(blocks or 1), kinds


def body(name, out, m, blocks, kinds, fmt, select):
    widths = {"f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "f64": 64}
    _, _, _, k, _, _ = parse(name)

    def span(first, count):
        return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"
    load = "s_load_dwordx4 s[4:7], s[0:1], 0\nv_lshlrev_b32 v1, 8, v0\ns_waitcnt lgkmcnt(0)\n"
    load += "".join(f"global_load_dwordx4 v[{10 + 4 * q}:{13 + 4 * q}], v1, s[4:5] offset:{16 * q}\n" for q in range(16)) + "s_waitcnt vmcnt(0)\n"
    if fmt is None:
        regs = [m * k * blocks // 64 * widths[x] // 32 for x in kinds]
    else:
        regs = [{8: 8, 6: 6, 4: 4}[1 + F.FORMATS[SMALL[f]][0] + F.FORMATS[SMALL[f]][1]] for f in fmt]
    d = span(10 + C_AT, m * m * blocks // 64 * (2 if out == "f64" else 1))
    line = f"{name} {d}, {span(10 + A_AT, regs[0])}, {span(10 + B_AT, regs[1])}, {d}"
    if "scale" in name:
        line += f", v{10 + SCALE_AT}, v{11 + SCALE_AT} op_sel:[{select[0] & 1},{select[1] & 1},0] op_sel_hi:[{select[0] >> 1},{select[1] >> 1},0]"
    if fmt is not None:
        line += f" cbsz:{fmt[0]} blgp:{fmt[1]}"
    store = "s_nop 15\ns_nop 15\n" + "".join(f"global_store_dwordx4 v1, v[{10 + C_AT + 4 * q}:{13 + C_AT + 4 * q}], s[6:7] offset:{16 * q}\n" for q in range(8))
    return load + line + "\n" + store


def cases(arch):
    names = [n for n in hip.row_names() if n.startswith("v_mfma")]
    lines = [re.search(r"v_mfma.*", body(n, *(parse(n)[1:3]), parse(n)[4], parse(n)[5], (0, 0) if "f8f6f4" in n else None, (0, 0))).group(0) for n in names]
    for name, ok in zip(names, assemble.accepted(arch, lines)):
        if ok and "f8f6f4" not in name:
            yield name, None, (0, 0)
        elif ok:
            yield from ((name, (a, b), ((a + b) % 4, (2 * a + b) % 4)) for a in range(5) for b in range(5))


def check(device, function, arch, name, fmt, select, rng):
    scaled, out, m, k, blocks, kinds = parse(name)
    words = np.zeros((64, 64), np.uint64)
    expect, bounds = {}, {}
    c_bits = rng.integers(-8, 9, (blocks, m, m))
    scales = rng.integers(120, 134, (2, m, max(k // 32, 1)))
    if scaled:
        for which in range(2):
            # An instruction selects one byte of a scale register. The other bytes are random, so
            # that reading a wrong byte gives a wrong result.
            for lane in range(64):
                words[lane, SCALE_AT + which] = int(rng.integers(0, 1 << 32)) & ~(255 << 8 * select[which]) & 0xFFFFFFFF
                words[lane, SCALE_AT + which] |= int(scales[which, lane % m, lane // m]) << 8 * select[which]
    for b in range(blocks):
        values = []
        for which, base in ((0, A_AT), (1, B_AT)):
            kind = kinds[which] if fmt is None else SMALL[fmt[which]]
            bits, width, v = random_matrix(rng, (m, k), kind, arch)
            layout = golden(name, "AB"[which]) if fmt is None else None
            if layout and which == 1:
                layout = {(j, i): place for (i, j), place in layout.items()}
            places = layout or (mixed_places(m, k, width) if fmt is not None else operand_places(m, k, blocks, width, b))
            put(words, base, places, bits, width)
            values.append(v * np.repeat(2.0 ** (scales[which] - 127.0), 32, axis=1) if scaled else v)
        expect[b] = values[0] @ values[1].T + c_bits[b]
        # The sum of the 32 products with a common scale is exact. The sums of all blocks and C are
        # then added with one rounding each.
        parts = [values[0][:, q:q + 32] @ values[1][:, q:q + 32].T for q in range(0, k, 32)]
        bounds[b] = 2.0 ** -24 * (len(parts) + 1) * (sum(map(np.abs, parts)) + np.abs(c_bits[b])) if scaled else np.zeros((m, m))
        raw = {"i32": lambda v: v & 0xFFFFFFFF, "f32": lambda v: v.astype(np.float32).view(np.uint32), "f64": lambda v: v.astype(np.float64).view(np.uint64)}[out](c_bits[b])
        put(words, C_AT, golden(name, "C") or result_places(m, b, out == "f64"), raw, 32)
    source, target = device.upload(words.astype(np.uint32)), device.upload(np.zeros((64, 64), np.uint32))
    device.launch(function, (1,), (64,), 0, [source, target])
    got = device.download(target, np.zeros((64, 64), np.uint32))
    device.free(source), device.free(target)
    for b in range(blocks):
        for (i, j), (reg, lane, _) in (golden(name, "D") or result_places(m, b, out == "f64")).items():
            raw = got[lane, reg:reg + 2].copy()
            value = float(raw.view(np.float64)[0]) if out == "f64" else float(raw[:1].view(np.int32 if out == "i32" else np.float32)[0])
            if not abs(value - expect[b][i, j]) <= bounds[b][i, j]:
                return f"block {b}, D[{i}][{j}] is {value}, not {expect[b][i, j]}"
    return None


def first_sums(device, function):
    """Returns D(0, 0) of v_mfma_f32_16x16x16_f16 for each seed, which varies the order of
    additions. Product 0 is 2^24 and the others are 1. A 1 that is added after product 0 is lost
    by rounding, so D shows the order."""
    words, sums = np.zeros((64, 64), np.uint64), []
    values = np.ones((16, 16))
    values[:, 0] = 4096
    for base in (A_AT, B_AT):
        put(words, base, operand_places(16, 16, 1, 16, 0), values.astype(np.float16).view(np.uint16), 16)
    for seed in SEEDS:
        os.environ["BSMM_SIM_SEED"] = seed
        source, target = device.upload(words.astype(np.uint32)), device.upload(np.zeros((64, 64), np.uint32))
        device.launch(function, (1,), (64,), 0, [source, target])
        sums.append(float(device.download(target, np.zeros((64, 64), np.uint32))[0, :1].view(np.float32)[0]))
        device.free(source), device.free(target)
    return sums


def main():
    arch = sys.argv[1]
    rows = list(cases(arch))
    kernels = {f"m{n}": body(name, *(parse(name)[1:3]), parse(name)[4], parse(name)[5], fmt, select) for n, (name, fmt, select) in enumerate(rows)}
    device = hip.Device(arch)
    module = device.load(assemble.assembly(arch, kernels))
    rng = np.random.default_rng(5)
    failed, by_amd = [], set()
    for n, (name, fmt, select) in enumerate(rows):
        function = device.function(module, f"m{n}")
        for seed in SEEDS:
            os.environ["BSMM_SIM_SEED"] = seed
            wrong = check(device, function, arch, name, fmt, select, rng)
            if wrong:
                failed.append(f"{name} {fmt or ''}, seed {seed}: {wrong}")
        if name == "v_mfma_f32_16x16x16_f16" and (sums := first_sums(device, function)) != [2.0 ** 24, 2.0 ** 24 + 8, 2.0 ** 24 + 4]:
            failed.append(f"{name}: the seeds {SEEDS} add to {sums}")
        if golden(name, "A"):
            by_amd.add(name)
    hip.vouch(by_amd)
    print("\n".join(failed))
    print(f"{arch}: {len({r[0] for r in rows})} matrix instructions in {len(rows)} forms, {len(by_amd)} of them by AMD's layouts; {len(failed)} are wrong")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
