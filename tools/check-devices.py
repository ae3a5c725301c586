#!/usr/bin/env python3
"""Checks that the command gets the kinds of devices (cuda, hip, ...) from one table only.

In cli/ and bench/, only devices.def, device_texts.h and the files device_KIND* may name a kind of
device. Only these files may name a library with which bench compares on that kind of device.

  usage: check-devices.py [ROOT]"""
import re
import sys
from pathlib import Path

ROW = re.compile(r"^DEVICE\((\w+)\)", re.MULTILINE)
PEER = re.compile(r'\.option = "(\w+)"')
TABLE = ("bench/devices.def", "bench/device_texts.h")


def rows(root):
    """Returns the kinds in the table except the first one. The first kind is the host, which all
    code may name."""
    return ROW.findall((root / TABLE[0]).read_text(encoding="utf-8"))[1:]


def row_files(root, kinds):
    return [p for kind in kinds for p in (root / "bench").glob(f"device_{kind}[_.]*")]


def violations(root):
    kinds = rows(root)
    own = row_files(root, kinds)
    peers = [name for p in own for name in PEER.findall(p.read_text(encoding="utf-8"))]
    # Names of driver functions begin with a kind (cudaMalloc). A short kind must not be followed by
    # a letter, because ordinary words begin with the same letters.
    names = [f"{name}(?![a-z])" if len(name) < 4 else name for name in kinds + peers]
    word = re.compile(rf"(?<![a-z])(?:lib)?({'|'.join(names)})", re.IGNORECASE)
    for kind in kinds:
        if not (root / "bench" / f"device_{kind}.c").is_file():
            yield f"bench/devices.def: {kind} has no bench/device_{kind}.c"
    for path in sorted(p for top in ("cli", "bench") for p in (root / top).rglob("*")):
        name = path.relative_to(root).as_posix()
        if not path.is_file() or path in own or name in TABLE or path.suffix == ".pyc":
            continue
        if word.search(path.name):
            yield f"{name}: is named after a kind of device; rows of the table are device_KIND*"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if match := word.search(line):
                yield f"{name}:{number}: names {match[0]}; only the table's rows may"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    found = list(violations(root))
    print("\n".join(found) if found else f"devices: only their rows name {', '.join(rows(root))}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
