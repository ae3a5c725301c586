#!/usr/bin/env python3
"""Checks in the disassembly that the compiler has not rearranged the main loops of the MFMA
kernels. Between the first and the last matrix instruction of a loop there must be no spill to other
registers (v_accvgpr).

The kernels of FP8 groupwise also have no wait for memory, no barrier and no branch there.

The loop of a kernel with e8m0 scales has one barrier among its matrix instructions, behind the
counted waits for memory that the source has. In the large tiles a matrix instruction must stand
between any two loads of a stage from memory to LDS, and LDS reads must stand between matrix
instructions and not all ahead of them.

  usage: check-amdgpu-loops.py BUILD_FOLDER"""
import re
import subprocess
import sys
from pathlib import Path

ENGINE = re.compile(r"^(small|large)_")
SPILL = re.compile(r"v_accvgpr|scratch_")
FORBIDDEN = re.compile(r"s_waitcnt.*vmcnt|s_barrier|v_accvgpr|scratch_|s_branch|s_cbranch")
STAGE_LOAD = re.compile(r"buffer_load_dwordx[34] .*\blds\b")


def kernels(image):
    """Yields (name, lines of disassembly) for each function of an image."""
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


def check_scaled(name, loop):
    yield from (f"has \"{line}\" among its matrix instructions" for line in loop if SPILL.search(line))
    barriers = sum(line.startswith("s_barrier") for line in loop)
    if barriers > 1:
        yield f"has {barriers} barriers among its matrix instructions; must be 1"
    if not name.startswith("large_"):
        return
    reads = sum("ds_read" in line for line in loop)
    if reads < 4:
        yield f"reads LDS {reads} times between its matrix instructions; nearly all reads come ahead of them"
    apart = loads = 0
    multiplied = False
    for line in loop:
        if line.startswith("v_mfma"):
            multiplied = True
        elif STAGE_LOAD.search(line):
            loads += 1
            apart += multiplied
            multiplied = False
    if apart < 4:
        yield f"has a matrix instruction ahead of only {apart} of its {loads} loads to LDS"


def check(name, lines, is_scaled):
    """Yields a message for each violation in a kernel's main loop."""
    at = [i for i, line in enumerate(lines) if line.startswith("v_mfma")]
    if not at:
        yield "has no matrix instruction"
        return
    loop = lines[at[0]:at[-1] + 1]
    yield from check_scaled(name, loop) if is_scaled else check_promoted(loop)


def main():
    wrong, count = [], 0
    for image in sorted((Path(sys.argv[1]) / "amdgpu").glob("*/*.image")):
        if not re.match(r"scaled_|groupwise", image.name):
            continue
        for name, lines in kernels(image):
            if ENGINE.match(name):
                count += 1
                wrong += [f"{image.name} {name}: {what}" for what in check(name, lines, image.name.startswith("scaled_"))]
    print("\n".join(wrong) if wrong else f"{count} main loops are as they are written")
    return bool(wrong) or not count


if __name__ == "__main__":
    sys.exit(main())
