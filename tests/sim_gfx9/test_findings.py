"""Tests kernels with exactly one mistake. The simulator must name the mistake, and the corrected
kernel must run. usage: test_findings.py ARCH"""
import ctypes
import os
import re
import sys

import numpy as np

import assemble
import hip

ARGS = "s_load_dwordx4 s[4:7], s[0:1], 0\nv_lshlrev_b32 v1, 2, v0\n"
LOAD = ARGS + "s_waitcnt lgkmcnt(0)\nglobal_load_dword v2, v1, s[4:5]\n"
STORE = "global_store_dword v1, v2, s[6:7]\n"
SWAP = """v_xor_b32 v4, 0x100, v1
ds_read_b32 v2, v4
s_waitcnt lgkmcnt(0)
"""
WRITTEN = LOAD + "s_waitcnt vmcnt(0)\nds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\ns_barrier\n"
# MISTAKES maps a name to (kernel body with a mistake, part of the expected message, corrected body,
# number of threads).
MISTAKES = {
    "vector_wait": (LOAD + "v_add_u32 v2, 1, v2\n" + STORE, "used before the s_waitcnt", LOAD + "s_waitcnt vmcnt(0)\nv_add_u32 v2, 1, v2\n" + STORE, 64),
    "too_few_waited": (LOAD + "global_load_dword v3, v1, s[4:5]\ns_waitcnt vmcnt(1)\nv_add_u32 v2, v2, v3\n" + STORE, "used before the s_waitcnt",
                       LOAD + "global_load_dword v3, v1, s[4:5]\ns_waitcnt vmcnt(0)\nv_add_u32 v2, v2, v3\n" + STORE, 64),
    "scalar_wait": (ARGS + "global_load_dword v2, v1, s[4:5]\ns_waitcnt vmcnt(0)\n" + STORE, "used before the s_waitcnt", LOAD + "s_waitcnt vmcnt(0)\n" + STORE, 64),
    "store_wait": (LOAD + STORE, "used before the s_waitcnt", LOAD + "s_waitcnt vmcnt(0)\n" + STORE, 64),
    "lds_wait": (LOAD + "s_waitcnt vmcnt(0)\nds_write_b32 v1, v2\nds_read_b32 v3, v1\nv_mov_b32 v2, v3\n" + STORE, "used before the s_waitcnt",
                 LOAD + "s_waitcnt vmcnt(0)\nds_write_b32 v1, v2\nds_read_b32 v3, v1\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v2, v3\n" + STORE, 64),
    "race": (WRITTEN + "v_add_u32 v2, 1, v2\nds_write_b32 v1, v2\n" + SWAP + STORE, "without a barrier between",
             WRITTEN + "v_add_u32 v2, 1, v2\nds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\ns_barrier\n" + SWAP + STORE, 128),
    "race_after_read": (LOAD + "s_waitcnt vmcnt(0)\nds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\ns_barrier\n" + SWAP + "v_add_u32 v2, 1, v2\nds_write_b32 v1, v2\n" + STORE,
                        "without a barrier between",
                        LOAD + "s_waitcnt vmcnt(0)\nds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)\ns_barrier\n" + SWAP + "s_barrier\nv_add_u32 v2, 1, v2\nds_write_b32 v1, v2\n" + STORE, 128),
    "lds_unwritten": (LOAD + "s_waitcnt vmcnt(0)\nds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)\n" + STORE, "was never written",
                      LOAD + "s_waitcnt vmcnt(0)\nds_write_b32 v1, v2\nds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)\n" + STORE, 64),
    "register_unwritten": (ARGS + "s_waitcnt lgkmcnt(0)\n" + STORE, "was never written", ARGS + "v_mov_b32 v2, 0\ns_waitcnt lgkmcnt(0)\n" + STORE, 64),
    # A spill saves lanes that were possibly never written, which is allowed. Only its address must
    # have been written.
    "spill": ("scratch_store_dword v2, v0, off\n", "v2 was never written", "scratch_store_dword off, v2, off\n", 64),
    "outside": (LOAD.replace("s[4:5]\n", "s[4:5] offset:4\n") + "s_waitcnt vmcnt(0)\n" + STORE, "lie outside every allocation", LOAD + "s_waitcnt vmcnt(0)\n" + STORE, 64),
    "lds_outside": (LOAD + "s_waitcnt vmcnt(0)\nds_write_b32 v1, v2 offset:1024\ns_waitcnt lgkmcnt(0)\n" + STORE, "outside the workgroup's",
                    LOAD + "s_waitcnt vmcnt(0)\nds_write_b32 v1, v2 offset:512\ns_waitcnt lgkmcnt(0)\n" + STORE, 64),
    "endless": ("1: s_branch 1b\n", "endless loop", "s_nop 0\n", 64),
    "divergent": (ARGS + "v_readfirstlane_b32 s8, v0\ns_cmp_eq_u32 s8, 0\ns_cbranch_scc1 2f\ns_endpgm\n2: s_barrier\n", "divergent barrier", "s_barrier\n", 128),
    "own_trap": ("s_trap 2\n", "stopped itself", "s_nop 0\n", 64),
    "jump": (ARGS + "s_mov_b64 s[8:9], 0\ns_setpc_b64 s[8:9]\n", "no instruction", "s_nop 0\n", 64),
    "unknown": ("s_rfe_b64 s[2:3]\n", "no row of the tables", "s_nop 0\n", 64),
}
MATRIX = ARGS + "".join(f"v_mov_b32 v{r}, 0\n" for r in range(4, 12)) + "v_mov_b32 v2, 0\ns_waitcnt lgkmcnt(0)\nv_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], v[4:7]\n"
MISTAKES["wait_states"] = (MATRIX + "s_nop 3\nv_mov_b32 v2, v4\n" + STORE, "wait states too early", MATRIX + "s_nop 7\nv_mov_b32 v2, v4\n" + STORE, 64)
MISTAKES["wait_states_of_a"] = (MATRIX + "v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[10:11], v[8:11]\n", "wait states too early",
                                MATRIX + "s_nop 7\nv_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[10:11], v[8:11]\n", 64)
# HAZARDS lists (first instruction, second instruction, wait states that must lie between them).
# Matrix instructions have a list of their own below.
HAZARDS = {
    "sgpr_of_load": ("v_readfirstlane_b32 s8, v1", "buffer_load_dword v3, v1, s[8:11], 0 offen", 5),
    "dpp": ("v_mov_b32 v3, 1", "v_mov_b32_dpp v4, v3 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", 2),
    "dpp_exec": ("v_cmpx_eq_u32 vcc, v1, v1", "v_mov_b32_dpp v4, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", 5),
    "div_fmas": ("v_cmp_eq_u32 vcc, v1, v1", "v_div_fmas_f32 v4, v1, v1, v1", 4),
    "lane_number": ("v_readfirstlane_b32 s8, v12", "v_readlane_b32 s9, v1, s8", 4),
    "sgpr_of_valu": ("v_readfirstlane_b32 s8, v1", "v_add_u32 v4, s8, v1", 2),
    "readlane_exec": ("v_cmpx_eq_u32 vcc, v1, v1", "v_readfirstlane_b32 s9, v1", 4),
    "readlane": ("v_mov_b32 v3, 1", "v_readfirstlane_b32 s9, v3", 1),
    "trans": ("v_exp_f32 v3, v1", "v_add_f32 v4, v3, v1", 1),
    "part": ("v_mov_b32_sdwa v3, v1 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0", "v_add_u32 v4, v3, v1", 1),
    "store_data": ("global_store_dwordx4 v3, v[20:23], s[6:7]", "v_mov_b32 v21, 1", 2),
    "matrix_a": ("v_mov_b32 v8, 0", "v_mfma_f32_16x16x16_f16 v[24:27], v[8:9], v[10:11], v[16:19]", 2),
    "matrix_exec": ("v_cmpx_eq_u32 vcc, v1, v1", "v_mfma_f32_16x16x16_f16 v[24:27], v[8:9], v[10:11], v[16:19]", 4),
    "m0": ("s_mov_b32 m0, 0", "s_movrels_b32 s8, s9", 1),
    "getreg": ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0", "s_getreg_b32 s8, hwreg(HW_REG_MODE)", 2),
    "setreg": ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 15", 2),
}
GFX950_HAZARDS = {"swap": ("v_mov_b32 v3, 1", "v_permlane32_swap_b32 v3, v8", 2), "swap_exec": ("v_cmpx_eq_u32 vcc, v1, v1", "v_permlane32_swap_b32 v3, v8", 4)}
# The expected wait states after a matrix instruction of four passes are 4 + 1 before a matrix
# instruction that reads a part of the result as C (one more on gfx950), 4 + 3 before a VALU
# instruction that overwrites the result, and 4 - 1 before one that overwrites C. An accumulating
# instruction of two passes is also tested.
FOUR = "v_mfma_f32_16x16x16_f16 v[24:27], v[8:9], v[10:11], v[16:19]"
TWO = "v_mfma_f32_4x4x4_16b_f16 v[24:27], v[8:9], v[10:11], v[24:27]"
OVERLAP = (FOUR, "v_mfma_f32_16x16x16_f16 v[28:31], v[8:9], v[10:11], v[26:29]")
HAZARDS |= {"overwritten": (FOUR, "v_mov_b32 v25, 0", 7), "c_overwritten": (FOUR, "v_mov_b32 v17, 0", 3), "own_c": (TWO, TWO, 2)}


def of_hazard(first, second, states):
    """Returns an entry for MISTAKES. The wrong body has one wait state too few between the two
    instructions, and the corrected body has enough."""
    start = ARGS + "s_waitcnt lgkmcnt(0)\n" + "".join(f"v_mov_b32 v{r}, 0\n" for r in (2, 3, *range(8, 32)))
    start += "s_mov_b32 s9, 0\ns_mov_b32 s10, 0\ns_mov_b32 s11, 0\ns_mov_b32 m0, 0\ns_nop 7\n"
    between = [f"s_nop {n - 1}\n" if n else "" for n in (states - 1, states)]
    end = "\ns_waitcnt vmcnt(0)\ns_nop 15\n"
    return [start + first + "\n" + between[0] + second + end, "wait states", start + first + "\n" + between[1] + second + end, 64]


LOADS_TO_LDS = ARGS + "s_mov_b32 m0, 0\ns_waitcnt lgkmcnt(0)\nglobal_load_lds_dword v1, s[4:5]\n{wait}v_mov_b32 v3, v1\nds_read_b32 v2, v3\ns_waitcnt lgkmcnt(0)\n" + STORE
MISTAKES["load_to_lds_wait"] = (LOADS_TO_LDS.format(wait=""), "before the s_waitcnt of its load to LDS", LOADS_TO_LDS.format(wait="s_waitcnt vmcnt(0)\n"), 64)
# gfx950 has an erratum: the scale of A must not be an SGPR (s8 here). The assembler refuses such an
# instruction, so it is given as numbers.
GFX950 = {"scale_in_sgpr": (".long 0xd3ac0000, 0x00022008, 0xd3ad0814, 0x04521100\n", "erratum",
                            "v_mov_b32 v17, 0x7f7f7f7f\ns_nop 1\nv_mfma_scale_f32_16x16x128_f8f6f4 v[20:23], v[0:7], v[8:15], v[20:23], v17, v16\n", 64)}


def run(device, module, name, threads):
    """Runs a kernel. Returns the simulator's message if it fails, or else its result."""
    x = np.arange(threads, dtype=np.uint32) * 3
    source, target = device.upload(x), device.upload(np.zeros_like(x))
    try:
        device.launch(device.function(module, name), (1,), (threads,), 0, [source, target])
        return device.download(target, np.zeros_like(x))
    except hip.Error as error:
        return str(error)
    finally:
        device.free(source), device.free(target)


def lines_not_named(device, text, code, names):
    """Returns the findings whose message names a wrong line for the instruction that it quotes. The
    code object has the line tables of its assembly text."""
    lines, module, missed = text.splitlines(), device.load(code), []
    for name in names:
        message = run(device, module, name, 128)
        number = re.search(r", k\.src:(\d+), wave \d+: *(\S+)", message) if isinstance(message, str) else None
        source = re.sub(r"^\d+:", "", lines[int(number[1]) - 1]).split() if number else []
        if not source or not number[2].startswith(source[0]):
            missed.append(f"{name}: its line is not named: {message}")
    device.unload(module)
    return missed


C_KERNEL = """#define GLOBAL __attribute__((address_space(1)))
static inline int beside(const int GLOBAL *p) {
    return p[1 << 20];
}
__attribute__((amdgpu_kernel)) void far(const int GLOBAL *x, int GLOBAL *y) {
    y[0] = x[0] + 1;
    y[1] = beside(x);
}
"""


def inlined_line_is_named(device, arch):
    """Returns whether the message about a mistake in a C kernel names the line in the inlined
    function."""
    module = device.load(assemble.clang(arch, C_KERNEL, "c", "-O2", "-gline-tables-only"))
    message = run(device, module, "far", 64)
    return isinstance(message, str) and "k.src:3, wave 0: global_load" in message


def registers_are_counted(device, arch):
    """Returns whether a kernel with 8 VGPRs may use v7 but not v8."""
    code = assemble.assembly(arch, {"wrong": LOAD + "s_waitcnt vmcnt(0)\nv_mov_b32 v8, v2\n" + STORE,
                                    "mended": LOAD + "s_waitcnt vmcnt(0)\nv_mov_b32 v7, v2\n" + STORE}, vgprs=8)
    module = device.load(code)
    return "v8 lies outside the wave's 8 registers" in str(run(device, module, "wrong", 64)) and not isinstance(run(device, module, "mended", 64), str)


def fill_is_refused(device, words):
    """Returns whether hipMemsetD32 refuses to write `words` words to an allocation of 64 bytes."""
    at = device.upload(np.zeros(16, np.uint32))
    try:
        device.call("hipMemsetD32", at, 1, ctypes.c_size_t(words))
        return False
    except hip.Error:
        return True
    finally:
        device.free(at)


def main():
    arch = sys.argv[1]
    os.environ["BSMM_SIM_LIMIT"] = "100000"
    device = hip.Device(arch)
    hazards = HAZARDS | {"overlap": (*OVERLAP, 6 if arch == "gfx950" else 5)} | (GFX950_HAZARDS if arch == "gfx950" else {})
    mistakes = dict(MISTAKES, **(GFX950 if arch == "gfx950" else {}), **{name: of_hazard(*row) for name, row in hazards.items()})
    module = device.load(assemble.assembly(arch, {f"{kind}_{n}": row[k] for n, row in mistakes.items() for kind, k in (("wrong", 0), ("mended", 2))}, lds=1024, scratch=64))
    failed = []
    for name, (_, part, _, threads) in mistakes.items():
        for seed in ("1", "2", "3"):
            os.environ["BSMM_SIM_SEED"] = seed
            wrong, mended = run(device, module, "wrong_" + name, threads), run(device, module, "mended_" + name, threads)
            found = isinstance(wrong, str) and (part is None or part in wrong) and f"wrong_{name}" in wrong
            if not found:
                failed.append(f"{name}: not found: {str(wrong)[:200]}")
            if isinstance(mended, str):
                failed.append(f"{name}: mended, but found: {mended}")
    if fill_is_refused(device, 16) or not fill_is_refused(device, 17) or not fill_is_refused(device, 1 << 62):
        failed.append("hipMemsetD32: a fill beyond the allocation is not found, or one inside is refused")
    if not registers_are_counted(device, arch):
        failed.append("a register beyond the kernel's is not found, or one of them is refused")
    words = ("scale_in_sgpr", "divergent", "endless", "jump")  # Instructions that are given as words have no text, and the other excluded findings do not concern one line.
    kernels = {"wrong_" + name: row[0] for name, row in mistakes.items() if name not in words}
    text = assemble.assembly_text(kernels, lds=1024, scratch=64)
    for version in ("-gdwarf-4", "-gdwarf-5"):
        failed += lines_not_named(device, text, assemble.clang(arch, text, "assembler", version), kernels)
    if not inlined_line_is_named(device, arch):
        failed.append("a finding in C does not name its line")
    print("\n".join(failed))
    print(f"{arch}: {len(mistakes)} mistakes, {len(failed)} not told from right kernels")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
