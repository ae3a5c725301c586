#!/usr/bin/env python3
"""Tests that tools/check-abi.py names each kind of change that breaks callers and accepts
additions.

usage: test_abi.py ROOT"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1])
CHECK, HEADER, STORED = ROOT / "tools/check-abi.py", ROOT / "include/bsmm.h", ROOT / "tests/abi/abi.txt"

# Each row is (description of the change, text to replace in the header without comments, new text,
# text that the error message must contain).
BREAKING = [
    ("another value", "BSMM_ELEM_E2M1 = 10", "BSMM_ELEM_E2M1 = 12", "BSMM_ELEM_E2M1 = 10"),
    ("an enumerator that is gone", "BSMM_E_RANGE = 7,\n", "", "BSMM_E_RANGE"),
    ("a field before others", "int64_t ld;\nvoid *data;", "int64_t ld;\nuint64_t more;\nvoid *data;",
     "field bsmm_matrix.more: at 48"),
    ("a field that is gone", "int64_t ld;\n", "", "field bsmm_matrix.ld"),
    ("fields that changed places", "uint32_t elem;\nuint32_t scale;", "uint32_t scale;\nuint32_t elem;",
     "field bsmm_format.elem: at 0"),
    ("a narrower field", "int64_t rows;\nint64_t cols;\nint64_t ld;",
     "int32_t rows, more_rows;\nint64_t cols;\nint64_t ld;", "field bsmm_matrix.rows"),
    ("another sign", "int32_t bias;", "uint32_t bias;", "bsmm_elem_info.bias"),
    ("a struct that cannot grow and did", "} bsmm_format;", "uint32_t more;\n} bsmm_format;",
     "struct bsmm_format: 16 bytes"),
    ("another constant", "#define BSMM_MAX_DIMS 8", "#define BSMM_MAX_DIMS 9", "BSMM_MAX_DIMS = 8"),
]
ADDING = [
    ("a field at the end", "} bsmm_exec;", "uint64_t more;\n} bsmm_exec;"),
    ("an enumerator", "BSMM_E_DEVICE = 8", "BSMM_E_DEVICE = 8, BSMM_E_MORE = 9"),
    ("a name for a reserved field", "uint32_t reserved;\nconst void *a, *a_scales;",
     "uint32_t named;\nconst void *a, *a_scales;"),
]


def declarations():
    """Returns the text of bsmm.h without comments and indentation. The replaced texts of this test
    thus do not depend on them."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines()))) + "\n"


def check(folder, old, new):
    text = declarations()
    assert text.count(old) == 1, f"the header holds {text.count(old)} times: {old}"
    changed, stored = Path(folder, "bsmm.h"), Path(folder, "abi.txt")
    changed.write_text(text.replace(old, new))
    stored.write_text(STORED.read_text())
    return subprocess.run([CHECK, "--write", changed, stored], capture_output=True, text=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for what, old, new, named in BREAKING:
            result = check(folder, old, new)
            assert result.returncode == 1 and named in result.stdout, f"{what}: {result}"
        for what, old, new in ADDING:
            result = check(folder, old, new)
            assert result.returncode == 0 and not result.stdout, f"{what}: {result}"
    print(f"{len(BREAKING) + len(ADDING)} changes were judged rightly")


main()
