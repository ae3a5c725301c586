#!/usr/bin/env python3
"""Checks in the disassembly that the compiler has not rearranged the main loops of the MFMA
kernels. Between the first and the last matrix instruction of a loop there must be no spill to other
registers (v_accvgpr).

The kernels of FP8 groupwise also have no wait for memory, no barrier and no branch there. In the
kernels with tall tiles, one loop without branches has both halves of a step. The loop has one
barrier before the first matrix instruction and one barrier among the matrix instructions. It never
waits for all loads, and has at most 16 loads and LDS writes in a row without a matrix instruction.

bsmm_isa_touch (isa/memory.h) loads to v254 and v255 without the compiler's knowledge. In a kernel
that has such a load, no other instruction may name these registers, and the kernel must allocate
all 256 vector registers.

A kernel with e8m0 scales has two loops: one for plain steps (gemm_scaled.h) and one for the other
steps. Each step has one barrier among its matrix instructions, after the counted waits for memory
that the source has. In kernels with large tiles, the loop for plain steps has two steps. If A and B
both have 4-bit elements, the first two steps of a tile also have code of their own. Such a pair of
steps must have no branch before its last matrix instruction. In each of its steps, a matrix
instruction must stand ahead of each load from memory to LDS, after the load before it. LDS reads
must stand between matrix instructions, not all before the first one.

  usage: check-amdgpu-loops.py BUILD_FOLDER"""
import re
import subprocess
import sys
from pathlib import Path

ENGINE = re.compile(r"^(small|large|tall)_")
SPILL = re.compile(r"v_accvgpr|scratch_")
FORBIDDEN = re.compile(r"s_waitcnt.*vmcnt|s_barrier|v_accvgpr|scratch_|s_branch|s_cbranch")
STAGE_LOAD = re.compile(r"buffer_load_dwordx[34] .*\blds\b")
LARGE_TILES = 32  # A wave of a kernel with large tiles computes 8 x 4 tiles of 16 x 16 results.


def kernels(image):
    """Yields (name, lines of disassembly) for each function of a code object."""
    text = subprocess.run(["llvm-objdump-22", "-d", "--no-show-raw-insn", str(image)], check=True, capture_output=True, text=True).stdout
    name, lines = None, []
    for line in text.splitlines():
        if match := re.match(r"^[0-9a-f]+ <(\S+)>:", line):
            if name:
                yield name, lines
            name, lines = match[1], []
        elif line.startswith("\t"):
            lines.append(line.split("//")[0].strip())
    if name:
        yield name, lines


def check_promoted(loop):
    yield from (f"has \"{line}\" among its matrix instructions" for line in loop if FORBIDDEN.search(line))


def check_tall(lines):
    """Checks the main loop of a kernel with tall tiles. The loop ends with its only branch."""
    loop = lines[:next((i for i, line in enumerate(lines) if "branch" in line), len(lines))]
    for what, pattern, wanted in (("matrix instructions", r"v_mfma", 64), ("barriers", r"s_barrier", 1),
                                  ("waits for all loads", r"s_waitcnt vmcnt\(0\)", 0), ("spills", SPILL, 0)):
        if (count := sum(bool(re.match(pattern, line)) for line in loop)) != wanted:
            yield f"has {count} {what} in its loop; must be {wanted}"
    moves = "".join("m" if line.startswith("v_mfma") else "x" for line in loop if re.match(r"v_mfma|ds_write|buffer_load", line))
    longest = max(map(len, moves.split("m")))
    if longest > 16:
        yield f"has {longest} loads and writes to LDS without a matrix instruction between them; at most 16"


def named_registers(line):
    """Yields the vector registers that an instruction names, from first to last."""
    for match in re.finditer(r"\bv(\d+)\b|\bv\[(\d+):(\d+)\]", line):
        yield (int(match[1]), int(match[1])) if match[1] else (int(match[2]), int(match[3]))


def read_vector_registers(image):
    """Maps each kernel of a code object to the number of vector registers that a wave of it gets."""
    text = subprocess.run(["llvm-readelf-22", "--notes", str(image)], check=True, capture_output=True, text=True).stdout
    return {name: int(count) for name, count in re.findall(r"^    \.name: +(\S+)\n(?:    .*\n)*?    \.vgpr_count: +(\d+)", text, re.M)}


def check_touched(lines, allocated):
    touch = re.compile(r"buffer_load_dword v25[45], ")
    if not any(touch.match(line) for line in lines):
        return
    if allocated != 256:
        yield f"allocates {allocated} vector registers; bsmm_isa_touch needs v254 and v255"
    for line in lines:
        operands = touch.sub("", line)
        if any(last >= 254 for _, last in named_registers(operands)):
            yield f"uses a register of bsmm_isa_touch in \"{line}\""


def count_steps(image, name):
    """Returns how many steps of the main loop the code of a kernel with e8m0 scales has."""
    return 2 if not name.startswith("large_") else 5 if image.startswith("scaled_e2m1") and name == "large_e2m1" else 3


def check_scaled(image, name, loop):
    yield from (f"has \"{line}\" among its matrix instructions" for line in loop if SPILL.search(line))
    barriers = sum(line.startswith("s_barrier") for line in loop)
    if barriers != count_steps(image, name):
        yield f"has {barriers} barriers among its matrix instructions; must be {count_steps(image, name)}, one in each step"
    if not name.startswith("large_"):
        return
    reads = sum("ds_read" in line for line in loop)
    if reads < 4:
        yield f"reads LDS {reads} times between its matrix instructions; nearly all reads come ahead of them"
    yield from check_pairs(image, name, loop)


def without_branches(loop):
    """Yields the parts of a loop between branches, as lists of lines."""
    part = []
    for line in loop:
        if re.match(r"s_c?branch", line):
            yield part
            part = []
        else:
            part.append(line)
    yield part


def count_crowded(step):
    """Returns how many loads to LDS of a step have no matrix instruction between them and the load
    before them or the begin of the step."""
    crowded, multiplied = 0, False
    for line in step:
        if line.startswith("v_mfma"):
            multiplied = True
        elif STAGE_LOAD.search(line):
            crowded += not multiplied
            multiplied = False
    return crowded


def check_pairs(image, name, loop):
    """Checks the pairs of steps of a kernel with large tiles. A pair is code without branches that
    has the matrix instructions and barriers of two steps. The instructions after the barrier of a
    step count as the begin of the next step."""
    twice = image.startswith("scaled_e2m1") and name == "large_e2m1"
    wanted = (2 * LARGE_TILES * (2 if twice else 1), 2)
    counts = [tuple(sum(line.startswith(what) for line in part) for what in ("v_mfma", "s_barrier")) for part in without_branches(loop)]
    pairs = [part for part, count in zip(without_branches(loop), counts) if count == wanted]
    if len(pairs) != 1 + twice:
        yield f"has {len(pairs)} pairs of steps without branches; must be {1 + twice}"
    for pair in pairs:
        first = next(i for i, line in enumerate(pair) if line.startswith("s_barrier"))
        for number, step in enumerate((pair[:first], pair[first:])):
            if crowded := count_crowded(step):
                yield f"has no matrix instruction ahead of {crowded} loads to LDS in step {number} of a pair"


def check(image, name, lines, allocated):
    """Yields a message for each violation in a kernel's main loop."""
    at = [i for i, line in enumerate(lines) if line.startswith("v_mfma")]
    if not at:
        yield "has no matrix instruction"
        return
    yield from check_touched(lines, allocated)
    if name.startswith("tall_"):
        yield from check_tall(lines[at[0] - 1:])
        return
    loop = lines[at[0]:at[-1] + 1]
    yield from check_scaled(image, name, loop) if image.startswith("scaled_") else check_promoted(loop)


def main():
    wrong, count = [], 0
    for image in sorted((Path(sys.argv[1]) / "amdgpu").glob("*/*.image")):
        if not re.match(r"scaled_|groupwise", image.name):
            continue
        allocated = read_vector_registers(image)
        for name, lines in kernels(image):
            if ENGINE.match(name):
                count += 1
                wrong += [f"{image.name} {name}: {what}" for what in check(image.name, name, lines, allocated[name])]
    print("\n".join(wrong) if wrong else f"{count} main loops are as they are written")
    return bool(wrong) or not count


if __name__ == "__main__":
    sys.exit(main())
