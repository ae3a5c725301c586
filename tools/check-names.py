#!/usr/bin/env python3
"""Checks names against the grammar in docs/ARCHITECTURE.md, "Names": kernels and their files, helpers
of the CPU rooms, and unit tests.

  usage: check-names.py [ROOT]"""
import re
import sys
from pathlib import Path

from test_areas import area_of

ISA = "avx2|avx512"  # instruction sets of CPUs
ROOMS = ("engine", "epilogue", "pack", "small_m")  # rooms of src/cpu whose files are helpers
# The files of a kernel stand in one folder for each device, and begin with the device's name.
FOLDERS = {"cpu": "src/cpu/kernels", "cuda": "src/cuda/host", "hip": "src/amdgpu/host"}
WITHOUT_DEVICE = "ref"


def engines(root):
    """Returns the words in the first columns of the tables of engines."""
    page = (root / "docs/ARCHITECTURE.md").read_text()
    tables = re.findall(r"^\| engine \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    return {word for table in tables for word in re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)}


def kernel_complaints(root):
    # Public names of kernels have the word f32 for the engines f32fma and f32seg.
    engine = "|".join(sorted(engines(root) | {"f32"}, key=len, reverse=True))
    gpus = "|".join(sorted(path.name for top in ("cuda", "amdgpu") for path in (root / "src" / top).iterdir()
                           if path.is_dir() and re.match(r"sm\d|gfx\d|cdna", path.name)) + ["sm90"])
    form = re.compile(rf"cpu(_({ISA}))?_({engine})(_small_m)?"
                      rf"|(cuda|hip)(_({gpus}))?(_({engine})|(?=_small_m))(_small_m)?")
    rows = re.findall(r"^KERNEL\((\w+)\)", (root / "src/core/kernels.def").read_text(), re.MULTILINE)
    for name in rows:
        if name != WITHOUT_DEVICE and not form.fullmatch(name):
            yield f"src/core/kernels.def: {name} is no DEVICE[_ISA][_ENGINE][_small_m]"
    for device, folder in FOLDERS.items():
        pattern = "*" if device == "cpu" else f"{device}_*"
        files = {path.name for path in (root / folder).glob(pattern)}
        named = {f"{name}.c" for name in rows if name.split("_")[0] == device}
        for name in sorted(files - named):
            yield f"{folder}/{name}: no row of kernels.def has this name"
        for name in sorted(named - files):
            yield f"{folder}/{name}: missing, but kernels.def has a row for it"


def helper_complaints(root):
    for room in ROOMS:
        form = re.compile(rf"{room}(_(?!{ISA})[a-z0-9]+)*(_({ISA}))?\.[ch]")
        for path in sorted((root / "src/cpu" / room).iterdir()):
            if not form.fullmatch(path.name):
                yield f"src/cpu/{room}/{path.name}: is no {room}[_ENGINE][_PART][_ISA].c or .h"


def test_complaints(root):
    for path in sorted((root / "tests/unit").iterdir()):
        if not re.fullmatch(r"test_[a-z0-9_]+\.c", path.name) or not area_of(path.stem):
            yield f"tests/unit/{path.name}: begins with no area of tools/test_areas.py"


root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
complaints = [*kernel_complaints(root), *helper_complaints(root), *test_complaints(root)]
print("\n".join(complaints))
sys.exit(bool(complaints))
