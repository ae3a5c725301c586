#!/usr/bin/env python3
"""Tests bench/surface.py on made-up results: which shapes it picks, how it resumes, and its report."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SURFACE = Path(sys.argv[1]) / "bench" / "surface.py"
MACHINE = {"machine": "a device", "copy": 4e12, "fp8": 1.5e15, "bf16": 8e14}
# This program takes the place of the benchmark program bsmm_surface. It prints the machine, then a
# result for each shape that it reads.
PROGRAM = """#!/usr/bin/env python3
import json, sys
print(json.dumps(%r), flush=True)
for line in sys.stdin:
    print(json.dumps({"cell": line.strip(), "kernel": "k", "why": "", "bytes": 4000000, "packed_bytes": 0,
                      "burst": 8e-6, "steady": 9e-6, "bf16_burst": 4e-6, "bf16_steady": 4e-6}), flush=True)
""" % MACHINE


def surface(*words):
    return subprocess.run([sys.executable, SURFACE, *map(str, words)], capture_output=True, text=True, check=True).stdout


def test_cells():
    first = surface("cells", "--sample", 300, "--seed", 7, "--date", "2026-01-02")
    assert first == surface("cells", "--sample", 300, "--seed", 7, "--date", "2026-01-02")
    assert first != surface("cells", "--sample", 300, "--seed", 8, "--date", "2026-01-02")
    cells = [line.split() for line in first.splitlines()]
    assert 290 <= len(cells) <= 300, len(cells)
    known = {tuple(line.split()[4:]) for line in surface("cells", "--all").splitlines()}
    fresh = [c for c in cells if tuple(c[4:]) not in known]
    assert len(fresh) == 64, len(fresh)
    assert len({(c[0], c[1]) for c in cells}) == 23, "each pair of formats has a cell"


def test_program_refuses_cpu():
    done = subprocess.run([sys.argv[2], "cpu"], input="", capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "this device has no queues\n"), done


def test_run_goes_on(folder):
    program, cells, results = folder / "program", folder / "cells", folder / "results"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    cells.write_text("bf16 mxfp4 bf16 1 512 512\nmxfp4 mxfp4 bf16 1024 512 512\n")
    surface("run", program, "cuda:0", cells, results)
    cells.write_text(cells.read_text() + "bf16 bf16 bf16 64 512 512\n")
    surface("run", program, "cuda:0", cells, results)
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    assert [r["cell"].split()[3] for r in rows if "cell" in r] == ["1", "1024", "64"]
    assert all(r["commit"] for r in rows if "cell" in r)
    return results


def test_report(results):
    text = surface("report", results)
    # Each made-up result moves 4 MB, which take 1 us at 4 TB/s. The launch adds 3 us, so the least
    # possible time is 4 us, half of the measured 8 us.
    assert "| 1 to 64 | 2 | 2.00 | 1.45 | 2.0 | 2.2 | 2 |" in text, text
    assert "| mxfp4 x mxfp4 | 1024 | 512 | 512 | k | 8.0 | 9.0 | 4.0 | 2.00 | 2.00 |" in text, text


test_cells()
test_program_refuses_cpu()
with tempfile.TemporaryDirectory() as folder:
    test_report(test_run_goes_on(Path(folder)))
print("4 passed, 0 failed")
