#!/usr/bin/env python3
"""Checks in the disassembly that the compiler has not rearranged the main loops of the MFMA
kernels. Between the first and the last matrix instruction of a loop there must be no wait for
memory, no barrier, and no spill to other registers (v_accvgpr). In the large tiles of the
kernels with e8m0 scales, LDS reads must stand between matrix instructions and not all ahead of
them.

  usage: check-amdgpu-loops.py BUILD_FOLDER"""
import re
import subprocess
import sys
from pathlib import Path

ENGINE = re.compile(r"^(small|large)_")
FORBIDDEN = re.compile(r"s_waitcnt.*vmcnt|s_barrier|v_accvgpr|scratch_")


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


def check(name, lines, is_scaled):
    """Yields a message for each violation in a kernel's main loop."""
    at = [i for i, line in enumerate(lines) if line.startswith("v_mfma")]
    if not at:
        yield "has no matrix instruction"
        return
    loop = lines[at[0]:at[-1] + 1]
    yield from (f"has \"{line}\" among its matrix instructions" for line in loop if FORBIDDEN.search(line))
    if any(line.startswith(("s_branch", "s_cbranch")) for line in loop):
        yield "branches between its matrix instructions"
    if name.startswith("large_") and is_scaled:
        reads = sum("ds_read" in line for line in loop)
        if reads < 4:
            yield f"reads LDS {reads} times between its matrix instructions; nearly all reads come ahead of them"


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
