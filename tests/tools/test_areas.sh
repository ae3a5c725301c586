#!/bin/bash
# Tests that each test of this build belongs to an area of the summary that `make test` prints, and
# that each beginning in tools/test_areas.py still begins the name of a test in the sources.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export PYTHONDONTWRITEBYTECODE=1
ctest --test-dir "$(dirname "$BSMM")" -N | PYTHONPATH=$root/tools python3 -c '
import re, sys
from pathlib import Path
from test_areas import AREAS, area_of
tests = re.findall(r"^ *Test +#\d+: (\S+)", sys.stdin.read(), re.MULTILINE)
without = [name for name in tests if not area_of(name)]
# The names of tests in the sources are those of the files of tests and fuzzers, and the words after
# NAME in the CMake files.
files = [path for top in ("tests", "fuzz", "examples") for path in Path(sys.argv[1], top).rglob("*")]
named = [re.sub("^test_", "", path.stem) + "_" for path in files if re.match("test_|fuzz_", path.stem)]
for path in files:
    if path.name == "CMakeLists.txt":
        named += [name + "_" for name in re.findall(r"add_test\(NAME (?:test_)?(\w+)", path.read_text())]
unused = [first for firsts in AREAS.values() for first in firsts
          if not any(name.startswith(first + "_") for name in named)]
if not tests or without or unused:
    sys.exit(f"{len(tests)} tests; in no area: {without}; begin no test: {unused}")
' "$root"
