#!/usr/bin/env python3
"""Compares the binary interface of the library with that of its last release, by libabigail.

The last release is the newest tag vMAJOR.MINOR.PATCH of the repository that the present commit
contains. Without such a tag, as in a source archive, it is tests/abi/bsmm-MAJOR.MINOR.abi, which
describes the functions and types of a release. The script makes the
same description of bsmm.h and cmake/exports.map as they are now, and abidiff compares the two. The
description is made from a library of empty functions with the header's declarations, because
libabigail needs debug information, which the real library lacks. check-exports.sh shows that the
real library exports the same functions with the same versions.

A struct that begins with struct_size may grow at its end, so such a change is accepted. The script
also accepts new functions and enumerators. Every other change fails, and the output names the
function or the field.

  usage: check-abidiff.py [--write] [HEADER [EXPORTS [STORED]]]

--write stores the description of a new release. It refuses to replace a description with which the
present one is not compatible. $CC or cc compiles."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
FUNCTION = re.compile(r"^BSMM_API (?P<type>[^;(]*?)(?P<name>bsmm_\w+)\((?P<parameters>[^;]*)\);", re.MULTILINE)
GROWS = re.compile(r"typedef struct (\w+) \{\s*uint32_t struct_size;")


def source_of(text):
    """Returns C that defines each function of the header. The bodies do nothing."""
    lines = ['#include "bsmm.h"']
    for function in FUNCTION.finditer(text):
        result = function["type"].strip()
        body = "" if result == "void" else f"return ({result})0;"
        parameters = function["parameters"]
        lines.append(f"{function['type']}{function['name']}({parameters}) {{ {body} }}")
    return "\n".join(lines) + "\n"


def describe(header, exports, path):
    """Writes libabigail's description of the header's functions and types to `path`."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "stub.c"), Path(folder, "libbsmm.so.0")
        source.write_text(source_of(COMMENT.sub(" ", header.read_text())))
        subprocess.run([os.environ.get("CC", "cc"), "-g", "-gdwarf-4", "-w", "-shared", "-fPIC", "-fvisibility=hidden",
                        "-fno-eliminate-unused-debug-types", f"-fdebug-prefix-map={folder}=.", "-I", header.parent,
                        f"-Wl,--version-script={exports}",
                        "-Wl,-soname,libbsmm.so.0", source, "-o", library], check=True)
        subprocess.run(["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--out-file", path, library],
                       check=True)


def sizes(description):
    """Returns the size in bits of each struct of a description."""
    return {m[1]: int(m[2]) for m in re.finditer(r"<class-decl name='(\w+)' size-in-bits='(\d+)'", description.read_text())}


def suppressions(stored, present, header):
    """Returns abidiff's suppression rules for structs that may grow at their end and have grown.
    Other structs must have no rule, because such a rule also hides changed fields. In structs with
    a rule, check-abi.py finds changed fields."""
    before, now = sizes(stored), sizes(present)
    return "\n".join("[suppress_type]\ntype_kind = struct\n"
                     f"name = {name}\nhas_data_member_inserted_at = end\n"
                     for name in GROWS.findall(COMMENT.sub(" ", header.read_text()))
                     if now.get(name, 0) > before.get(name, 0) > 0)


def differences(stored, present, header):
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder, "rules.ini")
        rules.write_text(suppressions(stored, present, header))
        result = subprocess.run(["abidiff", "--no-added-syms", "--suppressions", rules, stored, present],
                                capture_output=True, text=True)
    return result.returncode, (result.stdout if result.returncode else "") + result.stderr


def release_of(header):
    numbers = dict(re.findall(r"#define BSMM_VERSION_(\w+) (\d+)", header.read_text()))
    return f"{numbers['MAJOR']}.{numbers['MINOR']}"


def last_tag(root):
    """Returns the newest tag of a release that the present commit contains, or None."""
    command = ["git", "-C", root, "tag", "--list", "v[0-9]*", "--merged", "HEAD", "--sort=-version:refname"]
    result = subprocess.run(command, capture_output=True, text=True) if (root / ".git").exists() else None
    return result.stdout.split()[0] if result and result.returncode == 0 and result.stdout.split() else None


def describe_tag(root, tag, path, folder):
    """Writes libabigail's description of the release with this tag to `path`."""
    files = Path(folder, "bsmm.h"), Path(folder, "exports.map")
    for file, name in zip(files, ("include/bsmm.h", "cmake/exports.map")):
        file.write_bytes(subprocess.run(["git", "-C", root, "show", f"{tag}:{name}"], check=True, capture_output=True).stdout)
    describe(*files, path)


def main(arguments):
    write = "--write" in arguments
    given = [Path(a).resolve() for a in arguments if a != "--write"]
    header = given[0] if given else ROOT / "include/bsmm.h"
    exports = given[1] if len(given) > 1 else ROOT / "cmake/exports.map"
    stored = given[2] if len(given) > 2 else ROOT / f"tests/abi/bsmm-{release_of(header)}.abi"
    with tempfile.TemporaryDirectory() as folder:
        present = Path(folder, "present.abi")
        describe(header, exports, present)
        tag = None if given or write else last_tag(ROOT)
        if tag:
            stored = Path(folder, "tag.abi")
            describe_tag(ROOT, tag, stored, folder)
        code, report = differences(stored, present, header) if stored.exists() else (0, "")
        if code == 0 and write:
            stored.write_text(present.read_text())
        if code == 0 and not stored.exists():
            code, report = 1, f"{stored}: not found; --write makes it for a new release\n"
    if tag:
        print(f"compared with the tag {tag}")
    print(report, end="")
    return 1 if code else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
