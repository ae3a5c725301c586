#!/usr/bin/env python3
"""Checks the code that nvcc generated for the CUDA kernels, and prints one line per kernel.

No kernel may spill registers or have a stack frame. It may use at most the registers that
src/cuda/limits.txt allows, and its SASS must contain the instructions named there. In PTX for
Blackwell, no instruction may read a register that tcgen05.ld loads before tcgen05.wait::ld.

usage: check-cuda-code.py BUILD_FOLDER [LIMITS]"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\S+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
LOAD = re.compile(r"tcgen05\.ld[^{]*\{([^}]*)\}")
COMPLAINT = re.compile(r"potential performance loss|warning", re.IGNORECASE)


def read_limits(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = line.split("#")[0].split()
        if fields:
            module, kernel, registers, needs = fields
            yield module, kernel, int(registers), [] if needs == "-" else needs.split(",")


def read_report(path):
    """Reads a file of ptxas messages. Returns a map from (kernel, architecture) to the numbers in
    it, and the list of warnings."""
    kernels, complaints, entry = {}, [], None
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := ENTRY.search(line):
            entry = kernels.setdefault((match[1], match[2]), {})
        elif entry is not None and (match := STACK.search(line)):
            # The first such line is the kernel's. Lines of the functions that it calls may follow.
            entry.setdefault("stack", int(match[1]))
            entry.setdefault("spilled", int(match[2]) + int(match[3]))
        elif entry is not None and (match := USED.search(line)):
            entry["registers"] = int(match[1])
        elif COMPLAINT.search(line):
            complaints.append(line)
    return kernels, complaints


def extend_path():
    """Adds the CUDA toolkit and NVIDIA's Python packages to PATH, because cuobjdump looks for
    nvdisasm in PATH."""
    packages = (ROOT / ".cache/.venv").glob("lib/python3*/site-packages/nvidia/cu*/bin")
    folders = ["/usr/local/cuda/bin", *map(str, packages)]
    os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *folders])


def read_sass(image):
    """Maps each kernel of an image to the set of its SASS instructions without modifiers, e.g.
    HGMMA for HGMMA.64x128x16.F32."""
    text = subprocess.run(["cuobjdump", "-sass", image], check=True, capture_output=True,
                          text=True).stdout
    found, current = {}, None
    for line in text.splitlines():
        if match := re.search(r"Function : (\S+)", line):
            current = found.setdefault(match[1], set())
        elif current is not None and (match := re.search(r"\*/\s+(?:@!?U?P\w+ +)?([A-Z][A-Z0-9]*)", line)):
            current.add(match[1])
    return found


def find_images(build):
    """Yields (name, cubin) for every kernel source, also for those that the build generates from a
    table. The cubin is None if it was not compiled."""
    sources = [(ROOT / "src/cuda", path) for path in (ROOT / "src/cuda").glob("*/*.cu")]
    sources += [(build / "cuda", path) for path in (build / "cuda").glob("*/*.cu")]
    for folder, path in sorted(sources, key=lambda pair: pair[1].parts[-2:]):
        name = path.relative_to(folder).with_suffix("").as_posix()
        yield name, next((build / "cuda").glob(f"{name}.sm_*.image"), None)


def check_kernel(name, kernel, figures, limits, mnemonics):
    if figures.get("spilled"):
        yield f"spills {figures['spilled']} bytes"
    if figures.get("stack"):
        yield f"has a stack frame of {figures['stack']} bytes"
    for module, pattern, registers, needs in limits:
        if not (fnmatchcase(name, module) and fnmatchcase(kernel, pattern)):
            continue
        if figures["registers"] > registers:
            yield f"uses {figures['registers']} registers; at most {registers}"
        for need in needs:
            if not mnemonics & set(need.split("|")):
                yield f"has no {need}"


def early_reads(path):
    """Returns the lines of PTX that name a register of tcgen05.ld before the load's wait."""
    found, loading = [], set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        code = line.split("//")[0]
        if match := LOAD.search(code):
            loading.update(re.findall(r"%\w+", match[1]))
        elif "tcgen05.wait::ld" in code:
            loading.clear()
        elif loading.intersection(re.findall(r"%\w+", code)):
            found.append(f"{path.name}:{number}: reads before tcgen05.wait::ld: {code.strip()}")
    return found


def main():
    build = Path(sys.argv[1])
    limits = list(read_limits(Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "src/cuda/limits.txt")))
    extend_path()
    if not (shutil.which("cuobjdump") and shutil.which("nvdisasm")):
        sys.exit("check-cuda-code: no cuobjdump or no nvdisasm; run tools/install-deps.sh cuda")
    wrong, seen = [], set()
    images = list(find_images(build))
    # Both the disassembler and the search in its text take long, so each core reads an image at a time.
    with concurrent.futures.ProcessPoolExecutor() as pool:
        found = list(pool.map(read_sass, [image for _, image in images if image]))
    sass_of = dict(zip([name for name, image in images if image], found))
    for name, image in images:
        if not image:
            wrong.append(f"{name}: was not compiled")
            continue
        kernels, complaints = read_report(image.with_name(image.name + ".txt"))
        wrong += [f"{name}: {line}" for line in complaints]
        sass = sass_of[name]
        for (kernel, arch), figures in kernels.items():
            seen.add((name, kernel))
            print(f"{name} {kernel} {arch}: {figures.get('registers')} registers, "
                  f"{figures.get('stack', 0)} stack, {figures.get('spilled', 0)} spilled")
            wrong += [f"{name} {kernel}: {what}" for what in
                      check_kernel(name, kernel, figures, limits, sass.get(kernel, set()))]
    for path in sorted(build.glob("cuda/sm100f/*.compute_100f.image")):
        wrong += early_reads(path)
    wrong += [f"limits: {module} {kernel} matches no kernel" for module, kernel, *_ in limits
              if not any(fnmatchcase(m, module) and fnmatchcase(k, kernel) for m, k in seen)]
    print("\n".join(wrong) if wrong else f"{len(seen)} kernels: every limit kept")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
