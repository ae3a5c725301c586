#!/usr/bin/env python3
"""Checks the code that clang generated for the AMD kernels, and prints one line per kernel.

No kernel may spill registers or use scratch memory. Its registers and LDS must be within the
limits in src/amdgpu/limits.txt, and its disassembly must contain the instructions named there.

  usage: check-amdgpu-code.py BUILD_FOLDER [LIMITS]"""
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# These are fields of a kernel's metadata: those with limits, and those that must be 0.
LIMITED = ("vgpr_count", "agpr_count", "sgpr_count", "group_segment_fixed_size")
ZERO = ("vgpr_spill_count", "sgpr_spill_count", "private_segment_fixed_size")
FIELD = re.compile(r"^  +-? *\.(\w+): +(\S+)$")


def read_limits(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = line.split("#")[0].split()
        if fields:
            module, kernel, *most, needs = fields
            yield module, kernel, dict(zip(LIMITED, map(int, most))), [] if needs == "-" else needs.split(",")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read_metadata(image):
    """Maps each kernel of an image to the fields of its metadata. Each kernel begins with a dash in
    the list of kernels. Deeper indented fields belong to its list of arguments and are skipped."""
    kernels, current = {}, {}
    for line in run("llvm-readelf-22", "--notes", str(image)).splitlines():
        if re.match(r"^  - ", line):
            current = {}
        if not (match := FIELD.match(line)) or len(line) - len(line.lstrip()) > 4:
            continue
        current[match[1]] = match[2]
        if match[1] == "name":
            kernels[match[2]] = current
    return kernels


def read_mnemonics(image):
    """Maps each kernel of an image to the set of its instructions' mnemonics."""
    found, current = {}, None
    for line in run("llvm-objdump-22", "-d", "--no-show-raw-insn", str(image)).splitlines():
        if match := re.match(r"^[0-9a-f]+ <(\S+)>:", line):
            current = found.setdefault(match[1], set())
        elif current is not None and (match := re.match(r"^\s+([a-z]\w+)", line)):
            current.add(match[1])
    return found


def check_kernel(name, kernel, figures, limits, mnemonics):
    for field in ZERO:
        if int(figures.get(field, 0)):
            yield f"its {field} is {figures[field]}; must be 0"
    if figures.get("uses_dynamic_stack") == "true":
        yield "its stack has no known size"
    known = False
    for module, pattern, most, needs in limits:
        if not (fnmatchcase(name, module) and fnmatchcase(kernel, pattern)):
            continue
        known = True
        for field, limit in most.items():
            if int(figures[field]) > limit:
                yield f"its {field} is {figures[field]}; at most {limit}"
        for need in needs:
            if not any(fnmatchcase(m, one) for one in need.split("|") for m in mnemonics):
                yield f"has no {need}"
    if not known:
        yield "src/amdgpu/limits.txt has no line for it"


def main():
    build = Path(sys.argv[1])
    limits = list(read_limits(Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "src/amdgpu/limits.txt")))
    if not (shutil.which("llvm-readelf-22") and shutil.which("llvm-objdump-22")):
        sys.exit("check-amdgpu-code: no llvm-readelf-22 or no llvm-objdump-22; run tools/install-deps.sh amdgpu")
    wrong, seen, count = [], set(), 0
    images = sorted((build / "amdgpu").glob("*/*.image"))
    if not images:
        sys.exit(f"check-amdgpu-code: {build} has no AMD kernels; build with BSMM_AMDGPU=ON")
    for image in images:
        name, code = re.fullmatch(r"(.*)\.(\w+)\.image", image.relative_to(build / "amdgpu").as_posix()).groups()
        report = image.with_name(image.name + ".txt").read_text(encoding="utf-8")
        wrong += [f"{name} {code}: {line}" for line in report.splitlines() if "warning:" in line]
        mnemonics = read_mnemonics(image)
        for kernel, figures in read_metadata(image).items():
            seen.add((name, kernel))
            count += 1
            print(f"{name} {kernel} {code}:", ", ".join(f"{figures[f]} {f}" for f in LIMITED))
            wrong += [f"{name} {kernel} {code}: {what}" for what in
                      check_kernel(name, kernel, figures, limits, mnemonics.get(kernel, set()))]
    wrong += [f"limits: {module} {kernel} matches no kernel" for module, kernel, *_ in limits
              if not any(fnmatchcase(m, module) and fnmatchcase(k, kernel) for m, k in seen)]
    print("\n".join(wrong) if wrong else f"{count} kernels: every limit kept")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
