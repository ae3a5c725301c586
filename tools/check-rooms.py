#!/usr/bin/env python3
"""Checks which folders include and call which others. A "room" is a folder with its own rules in
MAY_SEE.

format includes base, and recipe and core include both. ref, quantize, cpu, gpu, sol and io include base,
format and core's four headers for backends, but none of these six rooms includes another. cuda and amdgpu
also include gpu, but not each other. From the library, cli, bench, examples and python include only bsmm.h.

With a build folder, the script also checks calls. nm lists the undefined symbols of the objects
of each room. Each of these symbols must be defined in a room that this room may include, or be
declared in one of core's headers that it may include.

  usage: check-rooms.py [ROOT] [--build FOLDER]"""
import argparse
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

HEADER = "include/bsmm.h"
CORE_HEADERS = tuple(f"src/core/{name}.h" for name in ("backend", "kernel", "recipe", "epilogue"))
KERNEL_ROOM = (HEADER, "src/base/", "src/format/", *CORE_HEADERS)

# Maps each room to the folders and headers that its files may include besides their own folder. For
# a file in nested rooms the longest room name counts.
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
    "src/amdgpu/": KERNEL_ROOM + ("src/recipe/", "src/gpu/"),
    "src/sol/": KERNEL_ROOM + ("src/core/describe.h",),
    "src/io/": KERNEL_ROOM,
    # cli and bench form one program: the command runs bench's measurements.
    "cli/": (HEADER, "bench/"),
    "bench/": (HEADER, "cli/"),
    "bench/llm/": (HEADER, "examples/llm/"),
    "bench/llm_speed/": (HEADER, "examples/llm/"),
    "examples/": (HEADER,),
    "examples/blackwell/": (HEADER, "src/cuda/ptx/", "src/cuda/runtime/tensor_map.h"),
    "python/": (HEADER,),
    "fuzz/": (HEADER, "src/"),
    "sim/": (),  # The simulators are separate drivers and include nothing of src/.
    "tests/": (HEADER, "src/", "bench/", "cli/", "sim/common/"),
    "tests/consumer/": (HEADER,),
}
SEARCHED = ("include", "src", "cli", "bench", "sim", "tests/support", "examples/llm")
SOURCES = {".c", ".h", ".cpp", ".def", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<(bsmm\.h)>)', re.MULTILINE)


def room_of(path):
    return max((room for room in MAY_SEE if path.startswith(room)), key=len, default=None)


def resolve(root, source, name):
    """Returns the path, below root, of the file that the compiler would include, or None if there
    is none."""
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



# Lists exceptions, i.e. symbols that a room may call although it may not include the room that
# defines them. Each entry is (calling room, defining room, symbol, reason). The defining room ""
# means any room.
LINKS = (
    ("src/core/", "", r"bsmm_kernel_\w+", "the rows of kernels.def, in core/registry.c"),
    ("src/core/", "", r"bsmm_backend_\w+", "the rows of backends.def, in core/backend.c"),
    ("src/core/", "src/quantize/", r"bsmm_recipe_find", "declared in core/recipe.h, for descriptions"),
    ("src/", "src/quantize/", r"bsmm_recipe_(set|store|pad)",
     "declared in core/recipe.h, for kernels that quantize D"),
)
BUILDS = ("bsmm_objects.dir", "bsmm_cli.dir", "bsmm_main_job.dir")


def symbols_of(build):
    """Yields for each object of the build the path of its source, the symbols that it defines, and
    the symbols that it needs from others."""
    for target in BUILDS:
        folder = build / "CMakeFiles" / target
        objects = sorted(path for path in folder.rglob("*.o") if room_of(path.relative_to(folder).as_posix()))
        if not objects:
            continue
        listing = subprocess.run(["nm", "--format=posix", "--print-file-name", *objects],
                                 check=True, capture_output=True, text=True).stdout
        found = {path: (set(), set()) for path in map(str, objects)}
        for line in listing.splitlines():
            path, _, rest = line.partition(": ")
            name, kind = rest.split()[:2]
            if kind in "Uw":
                found[path][1].add(name)
            elif kind.isupper():
                found[path][0].add(name)
        for path in objects:
            yield path.relative_to(folder).as_posix().removesuffix(".o"), *found[str(path)]


def is_declared(root, header, symbol, texts={}):
    if header not in texts:
        path = root / header
        texts[header] = path.read_text(encoding="utf-8") if path.is_file() else ""
    return re.search(rf"\b{re.escape(symbol)}\b", texts[header]) is not None


def may_call(root, room, definer, symbol):
    if definer == room or definer.startswith(tuple(seen for seen in MAY_SEE[room] if seen.endswith("/"))):
        return True
    headers = [seen for seen in MAY_SEE[room] if room_of(seen) == definer]
    if not room.startswith("src/"):
        # Users of the library may call the functions that its public header declares.
        headers.append(HEADER)
    return any(is_declared(root, header, symbol) for header in headers) or any(
        room.startswith(caller) and definer.startswith(defining) and re.fullmatch(name, symbol)
        for caller, defining, name, _ in LINKS)


def calls(root, build):
    objects = list(symbols_of(build))
    if not objects:
        yield f"{build}: no objects in {', '.join(BUILDS)}; build first"
    definers = defaultdict(set)
    for path, defined, _ in objects:
        for symbol in defined:
            definers[symbol].add(room_of(path))
    for path, _, lacking in objects:
        room = room_of(path)
        for symbol in sorted(lacking & definers.keys()):
            if not any(may_call(root, room, definer, symbol) for definer in definers[symbol]):
                yield f"{path}: refers to {symbol} of {', '.join(sorted(definers[symbol]))}, which {room} may not see"


def main():
    parser = argparse.ArgumentParser(description="Checks who includes and who calls whom.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parent.parent)
    parser.add_argument("--build", type=Path, help="a build folder, whose objects are looked at too")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    found = list(violations(root))
    if arguments.build:
        found += calls(root, arguments.build.resolve())
    what = "includes and calls" if arguments.build else "includes"
    print("\n".join(found) if found else f"{what}: every one goes the allowed way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
