#!/usr/bin/env python3
"""Tests bench/surface.py on made-up results: which shapes it picks, how it resumes, and its report."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SURFACE = Path(sys.argv[1]) / "bench" / "surface.py"
MACHINE = {"machine": "a device", "copy": 4e12, "fp8": 1.5e15, "bf16": 8e14}
# PROGRAM takes the place of the benchmark program bsmm_surface. It prints a line for the machine,
# then a made-up result for each shape that it reads.
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


def test_program_on_host():
    """Times one small GEMM on the host, and an unknown device."""
    cells = "mxfp4 mxfp4 bf16 3 48 64\nmxfp4 nothing bf16 3 48 64\n"
    one = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.argv[2], "cpu"], input=cells, capture_output=True, text=True, env=one)
    assert (done.returncode, done.stderr) == (2, "no cell: mxfp4 nothing bf16 3 48 64\n"), done
    machine, row = map(json.loads, done.stdout.splitlines())
    assert machine["host"] is True
    # A and B consist of 4-bit codes and one scale byte for each 32 codes. D has 2 bytes for each
    # result.
    assert row["bytes"] == (3 + 48) * (32 + 2) + 3 * 48 * 2, row
    assert not row["why"] and 0 < row["burst"] <= row["steady"] and row["unit_rate"] > 0 and row["read"] > 0, row
    done = subprocess.run([sys.argv[2], "nothing:0"], input="", capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "nothing:0: no such device\n"), done


def test_cells_on_host():
    cells = [line.split() for line in surface("cells", "--sample", 300, "--host", "--date", "2026-01-02").splitlines()]
    assert 200 <= len(cells) <= 300, len(cells)
    assert all(int(m) <= 512 and int(n) * int(k) <= 2**26 for *_, m, n, k in cells)


def test_report_on_host(folder):
    """Tests the floors, i.e. the least times of products. The peak rates in them are the best of
    all cells. Memory limits the first cell, and the arithmetic unit limits the second one. The
    compared library is bf16 for few rows and sgemm for more."""
    row = {"kernel": "k", "why": "", "steady": 1, "unit": "u", "packed_bytes": 0}
    rows = (
        {"cell": "bf16 mxfp4 bf16 1 512 512", "bytes": 95000, "burst": 15e-6, "bf16_burst": 30e-6, "sgemm": 5e-6,
         "unit_rate": 1e9, "read": 1e10},
        {"cell": "bf16 mxfp4 bf16 100 100 1000", "bytes": 1000, "burst": 40.5e-6, "bf16_burst": 80e-6, "sgemm": 20e-6,
         "unit_rate": 1e12, "read": 1e9},
    )
    results = folder / "host"
    results.write_text("\n".join(map(json.dumps, ({"machine": "m", "host": True}, *(row | r for r in rows)))))
    text = surface("report", results)
    # Only bench/surface.py adds the commit to a result, and these results come from other programs.
    assert text.startswith("2 cells on m, commit unknown"), text
    assert "| 1 to 16 | 1 | 1.50 | 1.6 | 1.5 | 2.5 | 0 |" in text, text
    assert "| 17 to 512 | 1 | 1.98 | 1.4 | 2.0 | 2.2 | 1 |" in text, text


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
    # Each made-up result moves 4 MB, which takes 1 us at 4 TB/s. With 3 us for the launch, the
    # least possible time is 4 us, half of the measured 8 us.
    assert "| 1 to 64 | 2 | 2.00 | 1.45 | 2.0 | 2.2 | 2 |" in text, text
    assert "| mxfp4 x mxfp4 | 1024 | 512 | 512 | k | 8.0 | 9.0 | 4.0 | 2.00 | 2.00 |" in text, text


test_cells()
test_cells_on_host()
test_program_on_host()
with tempfile.TemporaryDirectory() as folder:
    test_report(test_run_goes_on(Path(folder)))
    test_report_on_host(Path(folder))
print("6 passed, 0 failed")
