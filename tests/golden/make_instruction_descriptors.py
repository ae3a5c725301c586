# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/data/instruction_descriptors.txt: instruction descriptors of tcgen05.mma as CUTLASS's
make_instr_desc and make_instr_desc_block_scaled (include/cute/arch/mma_sm100_desc.hpp) return them. DeepGEMM calls
the same functions, and then stores the scale ids as make_runtime_instr_desc_with_sf_id does
(deep_gemm/include/deep_gemm/mma/sm100.cuh:135).

usage: make_instruction_descriptors.py CUTLASS [CUDA] > data/instruction_descriptors.txt
CUTLASS is a clone of github.com/NVIDIA/cutlass; CUDA is /usr/local/cuda unless given. Needs g++."""
import itertools
import pathlib
import subprocess
import sys
import tempfile

CUTLASS, CUDA = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "/usr/local/cuda")
TYPES = {"f16": "cute::half_t", "bf16": "cute::bfloat16_t", "tf32": "cute::tfloat32_t", "f32": "float", "s32": "int32_t", "u8": "uint8_t",
         "s8": "int8_t", "e4m3": "cute::float_e4m3_t", "e5m2": "cute::float_e5m2_t", "e2m3": "cute::float_e2m3_t",
         "e3m2": "cute::float_e3m2_t", "ue8m0": "cute::float_ue8m0_t", "ue4m3": "cute::float_ue4m3_t"}
UNPACKED = {"e2m1": "cute::detail::float_e2m1_unpacksmem_t"}  # The kinds f8f6f4 and mxf8f6f4 use it.
PACKED = {"e2m1": "cute::float_e2m1_t"}  # The kinds mxf4 and mxf4nvf4 use it.
SMALL = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
BYTES = ("e4m3", "e5m2")  # The other small types cannot have M or N contiguous.


def cases():
    """Yields the fields of each descriptor: kind, A, B, D or scale, M, N, order of A, order of B,
    negation of A, of B, scale id of A, of B."""
    def vary(kind, a, b, d, signs=True):
        yield kind, a, b, d, 128, 32, 0, 0, 0, 0, 0, 0
        yield kind, a, b, d, 64, 8, 0, 0, 0, 0, 0, 0
        yield kind, a, b, d, 128, 256, 0, 1, 0, 0, 0, 0
        yield kind, a, b, d, 64, 80, 1, 0, 0, 0, 0, 0
        for sign in ((1, 0), (0, 1), (1, 1)) if signs else ():
            yield kind, a, b, d, 128, 64, 1, 1, *sign, 0, 0

    for a, d in itertools.product(("f16", "bf16"), ("f32", "f16")):
        if (a, d) != ("bf16", "f16"):
            yield from vary("f16", a, a, d)
    yield from vary("tf32", "tf32", "tf32", "f32")
    for a, b in itertools.product(("u8", "s8"), repeat=2):
        yield from vary("i8", a, b, "s32", False)
    for a, b in itertools.product(SMALL, repeat=2):
        for d in "f32", "f16":
            yield "f8f6f4", a, b, d, 128, 48, int(a in BYTES), int(b in BYTES), 0, 1, 0, 0
        for ids in (0, 0), (1, 2), (2, 1), (3, 3):
            yield "mxf8f6f4", a, b, "ue8m0", 128, 48, int(a in BYTES), int(b in BYTES), 1, 0, *ids
    yield "mxf8f6f4", "e4m3", "e5m2", "ue8m0", 128, 256, 0, 0, 0, 0, 0, 3
    for ids in itertools.product((0, 2), repeat=2):
        yield "mxf4", "e2m1", "e2m1", "ue8m0", 128, 40, 0, 0, 0, 0, *ids
        yield "mxf4nvf4_2X", "e2m1", "e2m1", "ue8m0", 128, 16, 0, 0, 1, 0, *ids
    for n, signs in (8, (0, 0)), (256, (0, 1)), (32, (1, 1)):
        yield "mxf4nvf4_4X", "e2m1", "e2m1", "ue4m3", 128, n, 0, 0, *signs, 0, 0


def expression(case):
    kind, a, b, d, m, n, a_order, b_order, a_sign, b_sign, a_id, b_id = case
    types = TYPES | (PACKED if kind.startswith("mxf4") else UNPACKED)
    orders = ", ".join(f"UMMA::Major::{('K', 'MN')[o]}" for o in (a_order, b_order))
    signs = ", ".join(f"UMMA::ScaleIn::{('One', 'Neg')[s]}" for s in (a_sign, b_sign))
    if kind.startswith("mx"):
        made = f"UMMA::make_instr_desc_block_scaled<{types[a]}, {types[b]}, float, {types[d]}, {m}, {n}, {orders}, {signs}>()"
        return f"with_ids({made}, {a_id}, {b_id})"
    return f"uint32_t(UMMA::make_instr_desc<{types[a]}, {types[b]}, {types[d]}, {m}, {n}, {orders}, {signs}>())"


def main():
    lines = "".join(f'    std::printf("{" ".join(map(str, c))} 0x%08x\\n", {expression(c)});\n' for c in cases())
    source = f"""#include <cstdio>
#include <cute/arch/mma_sm100_desc.hpp>
using namespace cute;
static uint32_t with_ids(UMMA::InstrDescriptorBlockScaled d, uint32_t a, uint32_t b) {{
    d.a_sf_id_ = a, d.b_sf_id_ = b;
    return uint32_t(d);
}}
int main() {{
{lines}}}
"""
    commit = subprocess.run(["git", "-C", CUTLASS, "rev-parse", "--short=9", "HEAD"], capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "main.cpp")
        file.write_text(source)
        includes = [f"-I{CUTLASS / 'include'}", f"-I{CUDA / 'include'}", f"-I{CUDA / 'include/cccl'}"]
        subprocess.run(["g++", "-std=c++17", "-w", *includes, file, "-o", file.with_suffix("")], check=True)
        values = subprocess.run([file.with_suffix("")], capture_output=True, text=True, check=True).stdout
    print(f"# Instruction descriptors of tcgen05.mma that CUTLASS {commit} returns; make_instruction_descriptors.py made this file.")
    print("# kind, types of A, of B, of D or of the scales, M, N, then 1 if M or N is contiguous in A, in B, 1 if A is negated, if B is,")
    print("# the scale ids of A and B, and the descriptor")
    print(values, end="")


main()
