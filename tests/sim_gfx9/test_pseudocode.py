"""Runs the tables' opcodes with random and extreme operands, and compares them with AMD's pseudocode.
usage: test_pseudocode.py ARCH"""
import ctypes
import re
import sys

import numpy as np

import assemble
import hip
import pseudocode

LANES, WORDS = 64, 16
# APPROXIMATE maps an instruction to its allowed relative error. Hardware only approximates these
# instructions, or the pseudocode does not define their results.
APPROXIMATE = {"v_exp_f32": 2e-7, "v_log_f32": 2e-7, "v_exp_f16": 1e-3, "v_log_f16": 1e-3, "v_rcp_f32": 2e-7, "v_rcp_iflag_f32": 2e-7, "v_rsq_f32": 2e-7,
               "v_sqrt_f32": 2e-7, "v_rcp_f64": 1e-8, "v_rsq_f64": 1e-8, "v_sqrt_f64": 1e-8, "v_rcp_f16": 1e-3, "v_rsq_f16": 1e-3, "v_sqrt_f16": 1e-3,
               "v_exp_legacy_f32": 2e-7, "v_log_legacy_f32": 2e-7}
# DISPUTED maps an instruction to the reason why its pseudocode is probably wrong.
DISPUTED = {
    "v_fract_f16": "LLVM takes it for min(x - floor(x), the number below 1)", "v_fract_f32": "as v_fract_f16", "v_fract_f64": "as v_fract_f16",
    "v_rndne_f32": "floor(x + 0.5) in f32 is wrong above 2^23", "v_rndne_f64": "as v_rndne_f32", "v_rndne_f16": "as v_rndne_f32",
    "v_sin_f32": "an approximation whose range the text leaves out; Triton's kernels check it", "v_cos_f32": "as v_sin_f32",
    "v_sin_f16": "as v_sin_f32", "v_cos_f16": "as v_sin_f32",
    "v_frexp_exp_i16_f16": "subnormals have an exponent of their own: LLVM folds it so", "v_frexp_exp_i32_f32": "as v_frexp_exp_i16_f16",
    "v_frexp_exp_i32_f64": "as v_frexp_exp_i16_f16", "v_cvt_pkrtz_f16_f32": "rounds toward zero, which NumPy cannot",
    "v_ashr_pk_i8_i32": "the text saturates to 0 to 255", "v_dot2_f32_bf16": "the text's bf16 is not translated",
    "v_dot2c_f32_bf16": "as v_dot2_f32_bf16", "v_cvt_f32_fp8": "needs SDWA; Triton's kernels check it",
    "v_ldexp_f16": "infinity times 0 in the text",
    "v_div_fmas_f32": "2^32 does not undo v_div_scale's 2^64; RDNA3's text has 2^64", "v_div_fmas_f64": "as v_div_fmas_f32",
}
# This is the least number of opcodes whose results must agree. If fewer agree, the translation of
# the pseudocode is broken.
LEAST = {"gfx942": 527, "gfx950": 558}


def read_pseudocode():
    from tinygrad.runtime.autogen.amd.cdna.str_pcode import PCODE
    table = {}
    for k, text in PCODE.items():
        table.setdefault(re.sub(r"_(e32|e64|vop3)$", "", k.name.lower()), (type(k).__name__, text))
    return table


def width(text, name):
    """Returns the number of registers of an operand, from the widest type of this operand in the
    pseudocode."""
    found = [int(m) for m in re.findall(name + r"(?:\[[^\]]*\])?\.[ufib](\d+)", text)] + [int(m) + 1 for m in re.findall(name + r"\[(\d+) :", text)]
    return 2 if any(w > 32 for w in found) else 1


def register(first, count):
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def scalar(first, count):
    return f"s{first}" if count == 1 else f"s[{first}:{first + count - 1}]"


def result_bits(name, text):
    """Returns how many bits of the result are compared. If the result has 16 bits, only the low
    half of the register is compared, because the pseudocode leaves the high half undefined."""
    if name.startswith("v_cvt_scalef32_f16_") or name.startswith("v_cvt_sr_"):
        return 16
    sizes = [int(m) for m in re.findall(r"D0\.[ufib]+p?(\d+)", text)]
    if not name.startswith("s_") and sizes and max(sizes) == 16:
        return 16
    return 64 if width(text, "D0") == 2 else 32


def forms(name, text):
    """Returns several forms of the instruction in assembly. D is register 8, and the sources are
    registers 10, 12 and 14."""
    make = scalar if name.startswith("s_") else register
    d = make(24 if name.startswith("s_") else 8, width(text, "D0"))
    base = 26 if name.startswith("s_") else 10
    s = [make(base + 2 * k, width(text, f"S{k}")) for k in range(3)]
    used = [k for k in range(3) if re.search(rf"\bS{k}\b", text)]
    count = used[-1] + 1 if used else 0
    if name.startswith("v_cmp"):
        return [f"{name} vcc, {s[0]}, {s[1]}"]
    if name.startswith(("s_cmp", "s_bitcmp")):
        return [f"{name} {s[0]}, {s[1]}"]
    middle = "" if "_co_u32" not in name and "mad_u64" not in name and "mad_i64" not in name else " vcc,"
    tail = ", vcc" if re.match(r"v_(addc|subb|subbrev)_co|v_cndmask", name) else ""
    lines = [f"{name} {d},{middle} {', '.join(s[:n])}{tail}" for n in (count, count - 1, 1) if n > 0]
    return [x for line in lines for x in (line.replace(name, name + "_e64", 1), line)] if "fmac" not in name else lines


def kernel(line, is_scalar):
    load = """s_load_dwordx4 s[4:7], s[0:1], 0
v_lshlrev_b32 v1, 6, v0
s_waitcnt lgkmcnt(0)
global_load_dwordx4 v[8:11], v1, s[4:5]
global_load_dwordx4 v[12:15], v1, s[4:5] offset:16
s_load_dwordx4 s[8:11], s[4:5], 0x1000
s_waitcnt vmcnt(0) lgkmcnt(0)
s_mov_b64 vcc, s[8:9]
s_mov_b64 s[14:15], exec
"""
    if is_scalar:
        load += "".join(f"v_readlane_b32 s{24 + k}, v{8 + k}, s12\n" for k in range(8)).replace("v_readlane", "s_mov_b32 s12, s10\nv_readlane", 1)
        load += "s_cmp_eq_u32 s11, 1\ns_nop 4\n"
    store = "s_cselect_b32 s11, 1, 0\ns_mov_b64 s[16:17], exec\ns_mov_b64 exec, s[14:15]\n" + ("v_mov_b32 v8, s24\nv_mov_b32 v9, s25\n" if is_scalar else "")
    store += "v_mov_b32 v10, vcc_lo\nv_mov_b32 v11, vcc_hi\nv_mov_b32 v12, s11\nv_mov_b32 v13, s16\nv_mov_b32 v14, s17\n"
    store += "s_nop 4\nglobal_store_dwordx4 v1, v[8:11], s[6:7]\nglobal_store_dwordx4 v1, v[12:15], s[6:7] offset:16"
    return load + line + "\n" + store


def operands(rng, text, names):
    """Returns four 64-bit operands for each of 64 lanes: the old value of D, then the sources. Some
    are random, some small and some extreme."""
    out = np.zeros((LANES, 4), np.uint64)
    for k, name in enumerate(names):
        kinds = re.findall(name + r"(?:\[[^\]]*\])?\.([ufib])(\d+)", text) or [("u", "32")]
        kind, size = max(kinds, key=lambda x: (x[0] == "f", int(x[1])))
        out[:, k] = values(rng, kind, int(size))
    return out


def values(rng, kind, size):
    raw = rng.integers(0, 1 << 64, LANES, dtype=np.uint64)
    if kind == "f" and size in (16, 32, 64):
        f, u = pseudocode.FLOATS[size]
        near = (rng.standard_normal(LANES) * np.exp2(rng.integers(-6, 7, LANES))).astype(f).view(u).astype(np.uint64)
        info = np.finfo(f)
        extreme = np.array([0, -0.0, 1, -1, 0.5, 2, np.inf, -np.inf, np.nan, info.max, -info.max, info.tiny, info.smallest_subnormal, 3.5, -2.5, 1e4], f).view(u)
        if size == 16:
            near |= (rng.standard_normal(LANES).astype(f).view(u).astype(np.uint64) << np.uint64(16))
    else:
        near = rng.integers(0, 256, LANES, dtype=np.uint64)
        top = (1 << size) - 1
        extreme = np.array([0, 1, 2, 7, 31, 32, 63, 64, 255, 65535, top, top >> 1, (top >> 1) + 1, 0xAAAAAAAA, 0x0C0D0703, 0x80008000], np.uint64)
    pick = rng.integers(0, 3, LANES)
    return np.where(pick == 0, raw, np.where(pick == 1, near, extreme[rng.integers(0, len(extreme), LANES)].astype(np.uint64)))


def same(name, text, got, expect, bits):
    """Tells whether the low `bits` bits of two results agree. All NaNs count as equal, and an
    approximate result may have the allowed error."""
    mask = (1 << bits) - 1
    if (got ^ expect) & mask == 0:
        return True
    kinds = {int(w) for w in re.findall(r"D0(?:\[[^\]]*\])?\.f(\d+)", text)}
    if not kinds and name.endswith("_f16") and (got ^ expect) >> 16 & (mask >> 16) == 0:
        kinds = {16}
    packed = "v_pk_" in name and "f16" in name or "tmp[31 : 16].f16" in text
    for size in (16,) if packed else (32,) if re.match("v_pk_.*f32", name) else kinds & {16, 32, 64}:
        f, u = pseudocode.FLOATS[size]
        pairs = [((got >> s) & ((1 << size) - 1), (expect >> s) & ((1 << size) - 1)) for s in range(0, bits if packed or (size == 32 and "v_pk_" in name) else size, size)]
        good = True
        for a, b in pairs:
            x, y = (np.array(v, np.uint64).astype(u).view(f)[()] for v in (a, b))
            close = a == b or (np.isnan(x) and np.isnan(y)) or abs(float(x) - float(y)) <= APPROXIMATE.get(name, 0) * abs(float(y)) + (1e-37 if name in APPROXIMATE else 0)
            good &= bool(close)
        return good
    return False


def main():
    arch = sys.argv[1]
    table = read_pseudocode()
    pseudocode.set_arch(arch)
    rows = [line for line in hip.row_names() if not line.startswith("v_mfma")]
    candidates = [(n, table[n][1], f) for n in rows if n in table and n.startswith(("v_", "s_")) and n not in DISPUTED and not re.search("mfma|readlane|readfirst|writelane|permlane|swap|_load|memtime|pc_b64|s_set|s_get|barrier|waitcnt|endpgm|branch|sleep|trap|accvgpr", n)
                  for f in forms(n, table[n][1])]
    good = assemble.accepted(arch, [f for _, _, f in candidates])
    chosen, skipped = {}, {}
    for (name, text, form), ok in zip(candidates, good):
        if ok and name not in chosen:
            try:
                chosen[name] = (text, form, pseudocode.compile_text(text))
            except (SyntaxError, NotImplementedError, AttributeError, TypeError, IndexError) as error:
                skipped[name] = f"pseudocode is not translated: {error}"
    code = assemble.assembly(arch, {"t_" + n: kernel(form, n.startswith("s_")) for n, (_, form, _) in chosen.items()})
    device = hip.Device(arch)
    module = device.load(code)
    rng = np.random.default_rng(int(sys.argv[-1]) if sys.argv[-1].isdigit() else 1)
    failed, passed = [], []
    for name, (text, form, run) in chosen.items():
        try:
            wrong, compared = check(device, module, rng, name, text, run)
        except (NameError, TypeError, NotImplementedError, AttributeError, KeyError, ValueError, OverflowError) as error:
            skipped[name] = f"{type(error).__name__}: {error}"
            continue
        if wrong:
            failed.append(f"{name}: {wrong}")
        else:
            passed.append(name)
    hip.vouch(passed)
    print("\n".join(failed))
    if "-v" in sys.argv:
        print("\n".join(f"skipped {n}: {why}" for n, why in skipped.items()))
    print(f"{arch}: {len(passed)} opcodes agree with AMD's pseudocode, {len(failed)} do not, {len(skipped)} are not translated")
    if len(passed) < LEAST[arch]:
        print(f"at least {LEAST[arch]} opcodes agreed before: -v prints why opcodes are not translated")
    sys.exit(bool(failed) or len(passed) < LEAST[arch])


def check(device, module, rng, name, text, run):
    is_scalar = name.startswith("s_")
    compared = 0
    for round_ in range(8 if is_scalar else 3):
        ops = operands(rng, text, ["D0", "S0", "S1", "S2"])
        if rng.integers(0, 2):
            ops[:, 2] = np.where(rng.integers(0, 4, LANES) == 0, ops[:, 1], ops[:, 2])
        data = np.zeros((LANES * WORDS + 16,), np.uint32)
        data[:LANES * WORDS].reshape(LANES, WORDS)[:, :8] = ops.view(np.uint32)
        vcc, lane, scc = int(rng.integers(0, 1 << 63)), int(rng.integers(0, 64)), int(rng.integers(0, 2))
        data[1024:1028] = [vcc & 0xFFFFFFFF, vcc >> 32, lane, scc]
        source, target = device.upload(data), device.upload(np.zeros((LANES, WORDS), np.uint32))
        device.launch(device.function(module, "t_" + name), (1,), (64,), 0, [source, target])
        out = device.download(target, np.zeros((LANES, WORDS), np.uint32))
        device.free(source), device.free(target)
        for l in [lane] if is_scalar else range(LANES):
            old, *s = (int(v) for v in ops[l])
            state = dict(S0=pseudocode.Bits(s[0]), S1=pseudocode.Bits(s[1]), S2=pseudocode.Bits(s[2]), D0=pseudocode.Bits(old), laneId=l,
                         D1=pseudocode.Bits(0), VCC=pseudocode.Bits(vcc), EXEC=pseudocode.Bits((1 << 64) - 1), SCC=pseudocode.Bits(scc, 1), tmp=pseudocode.Bits(0),
                         SIMM16=pseudocode.Bits(0), OPSEL=pseudocode.Bits(0))
            after = run(state)
            got = int(out[l, 0]) | int(out[l, 1]) << 32
            bits = result_bits(name, text)
            compared += 1
            if re.search(r"\bD0\b", text) and not name.startswith("v_cmp"):
                expect = after["D0"].value if isinstance(after["D0"], pseudocode.Bits) else int(after["D0"])
                if not same(name, text, got, expect, bits):
                    return f"lane {l} of {[hex(v) for v in (old, *s)]}: {got & ((1 << bits) - 1):#x}, not {expect & ((1 << bits) - 1):#x}", compared
            if name.startswith("v_cmp") or "VCC.u64[laneId] =" in text:
                key = "D0" if "D0.u64[laneId]" in text else "VCC"
                if "VCC.u64[laneId]" in text or "D0.u64[laneId]" in text:
                    got_bit = (int(out[l, 2]) | int(out[l, 3]) << 32) >> l & 1
                    if got_bit != after[key].value >> l & 1:
                        return f"lane {l} of {[hex(v) for v in s]}: bit {got_bit}", compared
            if "SCC =" in text and is_scalar and int(out[l, 4]) != int(after["SCC"].value if isinstance(after["SCC"], pseudocode.Bits) else after["SCC"]):
                return f"of {[hex(v) for v in s]}: SCC {out[l, 4]}", compared
    return None, compared


if __name__ == "__main__":
    main()
