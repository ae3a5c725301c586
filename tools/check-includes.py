#!/usr/bin/env python3
"""Checks who includes whom: base <- format <- recipe, core; ref, quantize, cpu, gpu, sol and io see base,
format and core's four headers for backends, never each other; cuda sees gpu; backends never see each other;
cli, bench and examples see bsmm.h only.

usage: check-includes.py [ROOT]"""
import re
import sys
from pathlib import Path

HEADER = "include/bsmm.h"
CORE_HEADERS = tuple(f"src/core/{name}.h" for name in ("backend", "kernel", "recipe", "epilogue"))
KERNEL_ROOM = (HEADER, "src/base/", "src/format/", *CORE_HEADERS)

# Folder -> what its files may include besides its own files. The longest folder wins.
MAY_SEE = {
    "include/": (),
    "src/base/": (HEADER,),
    "src/format/": (HEADER, "src/base/"),
    "src/recipe/": (HEADER, "src/base/", "src/format/"),
    "src/core/": (HEADER, "src/base/", "src/format/"),
    "src/ref/": KERNEL_ROOM,
    "src/quantize/": KERNEL_ROOM + ("src/recipe/",),
    "src/cpu/": KERNEL_ROOM,
    "src/gpu/": KERNEL_ROOM + ("src/recipe/",),
    "src/cuda/": KERNEL_ROOM + ("src/recipe/", "src/gpu/"),
    "src/sol/": KERNEL_ROOM + ("src/core/describe.h",),
    "src/io/": KERNEL_ROOM,
    "cli/": (HEADER, "bench/"),  # one program: the command runs what bench measures
    "bench/": (HEADER, "cli/"),
    "examples/": (HEADER,),
    "fuzz/": (HEADER, "src/"),
    "tests/": (HEADER, "src/", "bench/", "cli/"),
    "tests/consumer/": (HEADER,),
}
SEARCHED = ("include", "src", "cli", "bench", "tests/support")
SOURCES = {".c", ".h", ".cpp", ".def", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<(bsmm\.h)>)', re.MULTILINE)


def room_of(path):
    return max((room for room in MAY_SEE if path.startswith(room)), key=len, default=None)


def resolve(root, source, name):
    """The included file's path below root, as the compiler would find it; None if it is not there."""
    for folder in (source.parent, *(root / folder for folder in SEARCHED)):
        candidate = (folder / name).resolve()
        if candidate.is_file() and candidate.is_relative_to(root):
            return candidate.relative_to(root).as_posix()
    return None


def violations(root):
    tops = sorted({room.split("/")[0] for room in MAY_SEE})
    files = (path for top in tops for path in sorted((root / top).rglob("*")))
    for source in files:
        if source.suffix not in SOURCES:
            continue
        path = source.relative_to(root).as_posix()
        room = room_of(path)
        if room is None:
            yield f"{path}: its folder has no rule in MAY_SEE"
            continue
        for match in INCLUDE.finditer(source.read_text(encoding="utf-8")):
            name = match[1] or match[2]
            target = resolve(root, source, name)
            if target is None:
                yield f"{path}: includes {name}, which is not in this repository"
            elif room_of(target) != room and not target.startswith(MAY_SEE[room]):
                allowed = ", ".join((room, *MAY_SEE[room]))
                yield f"{path}: includes {target}; {room} sees {allowed}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    found = list(violations(root))
    print("\n".join(found) if found else "includes: every one goes the allowed way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
