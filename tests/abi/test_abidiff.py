#!/usr/bin/env python3
"""Tests that tools/check-abidiff.py names each change that breaks programs linked with an earlier
library, and accepts additions. Also tests that tools/check-exports.sh names missing functions and
wrong symbol versions.

usage: test_abidiff.py ROOT LIBRARY"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT, LIBRARY = Path(sys.argv[1]), Path(sys.argv[2])
CHECK, EXPORTS_CHECK = ROOT / "tools/check-abidiff.py", ROOT / "tools/check-exports.sh"
HEADER, EXPORTS = ROOT / "include/bsmm.h", ROOT / "cmake/exports.map"
LAST = "BSMM_API void bsmm_writer_abort(bsmm_writer *writer);\n"

# Each row is (description of the change, edits of the header, edits of the list of exported
# symbols, text that the error message must contain). An edit is (text to replace, new text).
BREAKING = [
    ("a function that is gone", [(LAST, "")], [("bsmm_writer_abort;\n", "")], "bsmm_writer_abort"),
    ("a function with another parameter",
     [(LAST, LAST.replace("*writer)", "*writer, int keep)"))], [], "parameter 2 of type 'int' was added"),
    ("another type of result", [("BSMM_API uint32_t bsmm_version(void)", "BSMM_API uint64_t bsmm_version(void)")], [],
     "bsmm_version"),
    ("a field before others", [("int64_t ld;\nvoid *data;", "int64_t more;\nint64_t ld;\nvoid *data;")], [],
     "int64_t more"),
    ("a field of another type", [("float *global_scale;\n} bsmm_matrix;", "double *global_scale;\n} bsmm_matrix;")], [],
     "float* global_scale"),
    ("a struct that cannot grow and did", [("} bsmm_format;", "uint32_t more;\n} bsmm_format;")], [], "bsmm_format"),
    ("a function that moved to another version", [],
     [("bsmm_writer_abort;\n", ""), ("*;\n};\n", "*;\n};\nBSMM_0.2 { global: bsmm_writer_abort; } BSMM_0.1;\n")],
     "bsmm_writer_abort@@BSMM_0.1"),
]
ADDING = [
    ("a function of the next version", [(LAST, LAST + LAST.replace("_abort", "_more"))],
     [("*;\n};\n", "*;\n};\nBSMM_0.2 { global: bsmm_writer_more; } BSMM_0.1;\n")]),
    ("a field at the end of a struct that may grow", [("} bsmm_exec;", "uint64_t more;\n} bsmm_exec;")], []),
]


def changed(path, edits, target):
    """Writes the edited file without comments and indentation. The edits thus do not depend on
    them."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    text = "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines()))) + "\n"
    for old, new in edits:
        assert text.count(old) == 1, f"{path} holds {text.count(old)} times: {old}"
        text = text.replace(old, new)
    target.write_text(text)
    return target


def check(folder, header_edits, export_edits):
    header = changed(HEADER, header_edits, Path(folder, "bsmm.h"))
    exports = changed(EXPORTS, export_edits, Path(folder, "exports.map"))
    stored = next((ROOT / "tests/abi").glob("bsmm-*.abi"))
    return subprocess.run([CHECK, header, exports, stored], capture_output=True, text=True)


def check_exports(folder):
    """Tests that the tool names a function which the header declares but the library lacks."""
    header = changed(HEADER, [(LAST, LAST + LAST.replace("_abort", "_more"))], Path(folder, "bsmm.h"))
    result = subprocess.run(["bash", EXPORTS_CHECK, header, LIBRARY], capture_output=True, text=True)
    assert result.returncode == 1 and "< bsmm_writer_more" in result.stdout, result
    source, library = Path(folder, "plain.c"), Path(folder, "plain.so")
    source.write_text("void bsmm_only(void);\nvoid bsmm_only(void) {}\n")
    header.write_text("BSMM_API void bsmm_only(void);\n")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    result = subprocess.run(["bash", EXPORTS_CHECK, header, library], capture_output=True, text=True)
    assert result.returncode == 1 and "without a version: bsmm_only" in result.stdout, result


def check_tag(folder):
    """Tests that the tool compares with the newest tag of a release in the history of the present commit."""
    root = Path(folder, "repository")
    for name in ("tools/check-abidiff.py", "include/bsmm.h", "cmake/exports.map"):
        (root / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, root / name)

    def git(*words):
        subprocess.run(["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a", *words], check=True, capture_output=True)

    def compare():
        return subprocess.run([root / "tools/check-abidiff.py"], capture_output=True, text=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "a")
    assert "not found; --write makes it" in compare().stdout, compare()
    git("tag", "v0.1.0")
    assert (compare().returncode, compare().stdout) == (0, "compared with the tag v0.1.0\n"), compare()
    header = root / "include/bsmm.h"
    changed(header, [(LAST, LAST.replace("*writer)", "*writer, int keep)"))], header)
    assert compare().returncode == 1 and "parameter 2 of type 'int' was added" in compare().stdout, compare()
    git("commit", "-a", "-m", "b")
    git("tag", "v0.10.0")
    git("tag", "v0.9.0", "HEAD~1")
    assert (compare().returncode, compare().stdout) == (0, "compared with the tag v0.10.0\n"), compare()
    git("checkout", "HEAD~1")
    assert compare().stdout == "compared with the tag v0.9.0\n", compare()


def main():
    with tempfile.TemporaryDirectory() as folder:
        for what, header, exports, named in BREAKING:
            result = check(folder, header, exports)
            assert result.returncode == 1 and named in result.stdout, f"{what}: {result}"
        for what, header, exports in ADDING:
            result = check(folder, header, exports)
            assert result.returncode == 0 and not result.stdout, f"{what}: {result}"
        check_exports(folder)
        check_tag(folder)
    print(f"{len(BREAKING) + len(ADDING)} changes were judged rightly")


main()
