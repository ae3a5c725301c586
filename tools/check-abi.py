#!/usr/bin/env python3
"""Compares the public header with the layout that earlier versions promised to callers.

  usage: check-abi.py [--write] [HEADER [STORED]]

The stored text has one line for each struct, field, enumerator and numeric constant. A header
may add fields at the end of a struct that begins with struct_size. It may add enumerators,
constants and structs, and it may rename a field called `reserved`. The script reports every
other difference as an error. --write adds new lines to the stored text and never removes a line.
The script compiles and runs a C program that prints the offsets, with $CC or cc."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = ROOT / "include/bsmm.h"
STORED = ROOT / "tests/abi/abi.txt"

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
RECORD = re.compile(r"typedef (struct|enum) (\w+) \{(.*?)\} \2;", re.DOTALL)
CONSTANT = re.compile(r"^#define (BSMM_\w+)\s+(?:\d\w*|UINT64_MAX|\(-?\d+\))\s*$", re.MULTILINE)
VERSION = re.compile(r"BSMM_VERSION_")
DECLARATOR = re.compile(r"(\**)\s*(\w+)\s*(\[\w+\])?$")


def fields_of(body):
    """Yields (type, name) of each field, in order. `const void *a, *b;` declares two fields."""
    for declaration in filter(None, (text.strip() for text in body.split(";"))):
        base, rest = re.match(r"((?:const )?\w+)\s*(.*)$", declaration, re.DOTALL).groups()
        for part in rest.split(","):
            stars, name, extent = DECLARATOR.match(part.strip()).groups()
            yield (base + (" " + stars if stars else "") + (extent or ""), name)


def enumerators_of(body):
    return [part.split("=")[0].strip() for part in body.split(",") if part.strip()]


def program_of(text):
    """Returns a C program that prints one line for each struct, field, enumerator and constant."""
    lines = []
    for kind, name, body in RECORD.findall(text):
        if kind == "enum":
            lines += [f'printf("enum {name} {e} = %lld\\n", (long long){e});'
                      for e in enumerators_of(body)]
            continue
        lines.append(f'printf("struct {name}: %zu bytes\\n", sizeof({name}));')
        lines += [f'printf("field {name}.{field}: at %zu, %zu bytes, {kind}\\n", '
                  f"offsetof({name}, {field}), sizeof((({name} *)0)->{field}));"
                  for kind, field in fields_of(body)]
    lines += [f'printf("constant {name} = %lld\\n", (long long){name});'
              for name in CONSTANT.findall(text) if not VERSION.match(name)]
    body = "\n    ".join(lines)
    return f'#include "bsmm.h"\n#include <stdio.h>\nint main(void) {{\n    {body}\n    return 0;\n}}\n'


def describe(header):
    text = COMMENT.sub(" ", header.read_text())
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "abi.c"), Path(folder, "abi")
        source.write_text(program_of(text))
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-I", header.parent, source, "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


FIELD = re.compile(r"field (\w+)\.(\w+): (at \d+, \d+ bytes, .*)$")
STRUCT = re.compile(r"struct (\w+): (\d+) bytes$")


def struct_sizes(lines):
    return {m[1]: int(m[2]) for m in map(STRUCT.match, lines) if m}


def may_replace(old, lines):
    """Tells whether a stored line may be missing now, because a reserved field has got a name or a
    struct has grown at its end."""
    field, struct = FIELD.match(old), STRUCT.match(old)
    if field and field[2].startswith("reserved"):
        return any(m and m[1] == field[1] and m[3] == field[3] for m in map(FIELD.match, lines))
    if struct:
        begins = f"field {struct[1]}.struct_size: at 0, 4 bytes, uint32_t"
        return begins in lines and struct_sizes(lines).get(struct[1], 0) > int(struct[2])
    return False


def misplaced(line, stored, lines):
    """Tells whether a new field overlaps the fields of a struct that an earlier version already had."""
    field = FIELD.match(line)
    if not field or field[1] not in struct_sizes(stored):
        return False
    offset = int(re.match(r"at (\d+)", field[3])[1])
    named = any(m and m[1] == field[1] and m[3] == field[3] and m[2].startswith("reserved")
                for m in map(FIELD.match, stored))
    return offset < struct_sizes(stored)[field[1]] and not named


def compare(stored, lines):
    """Returns the errors, and the lines that the stored text lacks."""
    errors = [f"gone or changed: {old}" for old in stored
              if old not in lines and not may_replace(old, lines)]
    new = [line for line in lines if line not in stored]
    errors += [f"not at the end of its struct: {line}" for line in new
               if misplaced(line, stored, lines)]
    return errors, new


def main(arguments):
    write = "--write" in arguments
    paths = [Path(a).resolve() for a in arguments if a != "--write"]
    header, path = (paths + [HEADER, STORED][len(paths):])[:2]
    lines = describe(header)
    stored = path.read_text().splitlines() if path.exists() else []
    errors, new = compare(stored, lines)
    if not errors and write:
        path.write_text("\n".join(lines) + "\n")
    elif not errors:
        errors = [f"new, tools/check-abi.py --write stores it: {line}" for line in new]
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
