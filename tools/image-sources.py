#!/usr/bin/env python3
"""Lists the files that decide what the GPU images are, one per line, as paths below the root: the
kernels' sources, every file that they include, the tables of tiles and the build's rules.

  usage: image-sources.py"""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ("src/cuda/*/*.cu", "src/cuda/*/*_body.h", "src/cuda/sm*/*.def", "src/cuda/*/*_kernels.h",
           "src/amdgpu/cdna/*.c", "src/amdgpu/gfx*/*.c")
RULES = ("cmake/cuda.cmake", "cmake/amdgpu.cmake", "cmake/images.cmake", "cmake/*.sh")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


def included(source):
    """Yields the files of the source tree that a file includes. System headers are not among them."""
    for name in INCLUDE.findall(source.read_text(encoding="utf-8")):
        for folder in (source.parent, ROOT / "src", ROOT / "include"):
            if (folder / name).is_file():
                yield (folder / name).resolve()
                break


def closure(files):
    found, open_files = set(), list(files)
    while open_files:
        source = open_files.pop()
        if source not in found:
            found.add(source)
            open_files += included(source)
    return found


def main():
    files = closure(path for pattern in KERNELS for path in ROOT.glob(pattern))
    files |= {path for pattern in RULES for path in ROOT.glob(pattern)}
    print("\n".join(sorted(path.relative_to(ROOT).as_posix() for path in files)))


main()
