#!/usr/bin/env python3
"""Measures how far the times of GEMMs are above their floor, over the shapes that models have. A floor
is the least time that a GEMM can take. A cell is one GEMM, i.e. three formats and three sizes.

usage: surface.py cells [--all | --sample 300] [--seed N] [--date YYYY-MM-DD] [--rows LO HI] [--host]
       surface.py run PROGRAM DEVICE CELLS RESULTS [--seconds 300]
       surface.py report RESULTS... [--worst 50] [--maps FOLDER]

cells   prints one line for each cell: the formats of A, B and D, then M, N, K. N and K are those of
        the linear layers in models.json, whole and split for 2, 4 and 8 ranks. M is one of ROWS. A
        sample takes equally many cells from each pair of formats and each band of M. It also has up to 64
        random shapes that are in no list; the date is their seed. --host limits M to 512 and N x K
        to 2^26, and uses the bands of M for the host.
run     times with bsmm_surface those cells that RESULTS does not contain yet. It appends each result
        with the commit. It ends after the given number of seconds. The next call continues there.
report  prints for each band of M the geometric mean of time / floor, the worst cell, and the number of
        cells that are slower than the peer's GEMM. It then prints the worst cells of all. --maps
        draws a heat map of each pair of formats as SVG, with gnuplot.

The floor of a cell is 3 us for the launch plus the larger of two times. One is the number of bytes of
A, B as stored and D, divided by the speed of copying device memory. The other is the number of
operations, divided by the peak of the arithmetic unit. The peak is the rate that the peer's unscaled
GEMM of 8192 x 8192 x 8192 reached in the same run. It is the FP8 rate for pairs of mxfp4 and mxfp6
and for fp8 with scales per group or per token, and the bf16 rate for all other pairs.

On the host, the floor of a cell is 0.5 us plus the larger of two times: the bytes at the best speed of
reading memory, and the operations at the best rate of the arithmetic unit, both of all cells of the
run. The peer is oneDNN's bf16 GEMM for up to 16 rows of A, and sgemm for more. There "burst" is the
shortest time of a run and "steady" is the median, which also has the time of other programs."""
import argparse
import datetime
import json
import math
import random
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 17, 24, 32, 33, 48, 64, 65, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192)
BANDS = ((1, 64), (65, 512), (513, 8192))
HOST_BANDS = ((1, 16), (17, 512))
# HOST_WEIGHTS is the largest N x K of a cell on the host.
HOST_WEIGHTS = 1 << 26
# WANTED gives the wanted ratios of measured time to the floor for each range of M: the geometric
# mean of all cells, and the ratio of the worst cell.
WANTED = {
    (1, 64): (1.45, 2.2),
    (65, 512): (1.45, 2.0),
    (513, 8192): (1.15, 1.5),
    (1, 16): (1.6, 2.5),
    (17, 512): (1.4, 2.2),
}
# LAUNCH is the time in seconds that a launch takes on a GPU. It is part of the floor of every
# product.
LAUNCH = 3e-6
# CALL is the time in seconds that a call of the library takes on the host. It is part of the floor
# of every product there.
CALL = 0.5e-6
# TOKEN and CHANNEL have one fp32 scale for each row: a scale per token for A, and per channel for
# B.
TOKEN, CHANNEL = "e4m3/f32/1x0", "e4m3/f32/1x0"
WEIGHTS = ("mxfp4", "nvfp4", "mxfp8", "mxfp6_e2m3", "mxfp6_e3m2", "fp8_block128", CHANNEL)
PAIRS = (
    *(("bf16", b, "bf16") for b in WEIGHTS),
    *(("f16", b, "f16") for b in WEIGHTS),
    ("fp8_group128", "fp8_block128", "bf16"),
    *((TOKEN, b, "bf16") for b in (CHANNEL, "mxfp4", "fp8_block128")),
    ("mxfp8", "mxfp8", "bf16"),
    ("mxfp8", "mxfp4", "bf16"),
    ("mxfp4", "mxfp4", "bf16"),
    ("nvfp4", "nvfp4", "bf16"),
    ("bf16", "bf16", "bf16"),
)
FP8_WEIGHTS = ("fp8_block128", CHANNEL, "mxfp4")


def unit(a, b):
    """Returns the name of the arithmetic unit that a pair of formats uses. The first line of the
    results has the peak rate of each unit by this name."""
    small = ("mxfp4", "mxfp6_e2m3", "mxfp6_e3m2")
    if a in small and b in small:
        return "fp8"
    return "fp8" if a in ("fp8_group128", TOKEN) and b in FP8_WEIGHTS else "bf16"


# The functions from here on make the list of cells, i.e. of products to measure.


def shapes():
    """Returns the distinct (N, K) of all layers of all models, whole and split for 2, 4 and 8
    ranks."""
    found = {}
    for model in json.loads((HERE / "models.json").read_text())["models"]:
        for name, n, k, cut in model["layers"]:
            for ranks in (1, 2, 4, 8) if cut else (1,):
                shape = (n // ranks if cut == "N" else n, k // ranks if cut == "K" else k)
                found.setdefault(shape, f"{model['name']} {name}/{ranks}")
    return found


def fresh_shapes(date, count=64):
    """Returns `count` random (M, N, K) that no list of layers contains. The date is the seed, so
    all runs of one day use the same ones."""
    draw = random.Random(date)
    size = lambda low, high, step: int(2 ** draw.uniform(math.log2(low), math.log2(high))) // step * step
    return [(size(1, 8192, 1), size(512, 32768, 16), size(512, 16384, 32)) for _ in range(count)]


def fits(n, k, host):
    return not host or n * k <= HOST_WEIGHTS


def sample(count, seed, date, rows, host):
    draw = random.Random(seed)
    known = [s for s in sorted(shapes()) if fits(*s, host)]
    fresh = [s for s in fresh_shapes(date) if rows[0] <= s[0] <= rows[1] and fits(*s[1:], host)]
    cells = [(draw.choice(PAIRS), *shape) for shape in fresh[: max(0, count // 4)]]
    limits = HOST_BANDS if host else BANDS
    bands = [[m for m in ROWS if low <= m <= high and rows[0] <= m <= rows[1]] for low, high in limits]
    strata = [(pair, band) for pair in PAIRS for band in bands if band]
    draw.shuffle(strata)
    for i in range(count - len(cells)):
        pair, band = strata[i % len(strata)]
        n, k = draw.choice(known)
        cells.append((pair, draw.choice(band), n, k))
    return cells


def command_cells(options):
    low, high = options.rows
    if options.host:
        high = min(high, HOST_BANDS[-1][1])
    if options.all:
        known = [s for s in sorted(shapes()) if fits(*s, options.host)]
        cells = [(pair, m, n, k) for pair in PAIRS for m in ROWS if low <= m <= high for n, k in known]
    else:
        cells = sample(options.sample, options.seed, options.date, (low, high), options.host)
    # The cells are sorted by shape. The time of the peer library's GEMM is then measured only once
    # for each shape.
    for pair, m, n, k in sorted(set(cells), key=lambda c: (c[1:], c[0])):
        print(*pair, m, n, k)


# The functions from here on time the cells (products) on a device.


def commit():
    answer = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return answer.stdout.strip() or "unknown"


def done_cells(path):
    if not path.exists():
        return set()
    return {row["cell"] for row in map(json.loads, path.read_text().splitlines()) if "cell" in row}


def command_run(options):
    results = Path(options.results)
    done = done_cells(results)
    cells = [line for line in Path(options.cells).read_text().splitlines() if line and line not in done]
    if options.shuffle:
        random.Random(len(done)).shuffle(cells)
    began, here = time.monotonic(), commit()
    with results.open("a") as out, subprocess.Popen(
        [options.program, options.device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        machine = program.stdout.readline()
        if not machine:
            sys.exit(program.wait() or 1)
        out.write(machine)
        for cell in cells:
            if time.monotonic() - began > options.seconds:
                break
            program.stdin.write(cell + "\n")
            program.stdin.flush()
            answer = program.stdout.readline()
            if not answer:
                sys.exit(f"{options.program} ended at: {cell}")
            out.write(json.dumps(json.loads(answer) | {"commit": here}) + "\n")
            out.flush()
        program.stdin.close()
    print(f"{len(done_cells(results))} cells in {results}")


# The functions from here on print the report of measured times.


def read(paths):
    """Reads the result files, and computes for each cell (product) the ratio of its time to its
    floor. The floor is a time that no kernel on that machine can beat."""
    rows, machine = [], None
    for path in paths:
        for row in map(json.loads, Path(path).read_text().splitlines()):
            if "machine" in row:
                machine = row
                continue
            a, b, d, *sizes = row["cell"].split()
            m, n, k = map(int, sizes)
            row |= {"pair": (a, b), "m": m, "n": n, "k": k, "machine": machine["machine"]}
            row |= {"host": machine.get("host", False), "ratio": None}
            # Results of `bsmm bench --surface` have no commit; the command `run` of this script
            # adds it.
            row.setdefault("commit", "unknown")
            if not row["host"]:
                set_floor(row, machine["copy"], machine[unit(a, b)], LAUNCH, "bf16_burst")
            rows.append(row)
    set_host_floors([r for r in rows if r["host"] and r["burst"]])
    return rows


def set_floor(row, speed, rate, call, peer):
    """Sets three fields of a cell (a product). The floor is the least time that its GEMM can take.
    The others are the ratio of its time to the floor, and the ratio of its time to that of the
    compared library."""
    row["floor"] = max(row["bytes"] / speed, 2.0 * row["m"] * row["n"] * row["k"] / rate) + call
    row["ratio"] = row["burst"] / row["floor"] if row["burst"] else None
    row["over_peer"] = row["burst"] / row[peer] if row["burst"] and row[peer] else None


def set_host_floors(rows):
    """Sets the floors of all cells, i.e. the least times of their products. The peak rates in a
    floor are the best ones that were measured on the same machine during the run."""
    best = defaultdict(float)
    for row in rows:
        for key, rate in ((row["unit"], row["unit_rate"]), ("read", row["read"])):
            best[row["machine"], key] = max(best[row["machine"], key], rate)
    for row in rows:
        rates = [best[row["machine"], key] for key in ("read", row["unit"])]
        set_floor(row, *rates, CALL, "bf16_burst" if row["m"] <= HOST_BANDS[0][1] else "sgemm")


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def name(pair):
    return " x ".join(pair).replace(TOKEN, "fp8_row")


def bands_of(rows):
    return HOST_BANDS if rows and rows[0]["host"] else BANDS


def print_bands(rows):
    print("| M | cells | time / floor, geometric mean | wanted | worst | wanted | slower than peer |")
    print("|---|---|---|---|---|---|---|")
    for band in bands_of(rows):
        ratios = [r for r in rows if band[0] <= r["m"] <= band[1] and r["ratio"]]
        if ratios:
            slower = sum(1 for r in ratios if r["over_peer"] and r["over_peer"] > 1)
            values = [r["ratio"] for r in ratios]
            print(
                f"| {band[0]} to {band[1]} | {len(ratios)} | {mean(values):.2f} | {WANTED[band][0]} "
                f"| {max(values):.1f} | {WANTED[band][1]} | {slower} |"
            )


def print_pairs(rows):
    print("\n| pair | " + " | ".join(f"M {low} to {high}" for low, high in bands_of(rows)) + " |")
    print("|---|" + "---|" * len(bands_of(rows)))
    by_pair = defaultdict(list)
    for row in rows:
        by_pair[row["pair"]].append(row)
    for pair, cells in sorted(by_pair.items()):
        columns = []
        for low, high in bands_of(rows):
            values = [r["ratio"] for r in cells if low <= r["m"] <= high and r["ratio"]]
            columns.append(f"{mean(values):.2f}, worst {max(values):.1f}" if values else "")
        print(f"| {name(pair)} | " + " | ".join(columns) + " |")


def print_worst(rows, count):
    print("\n| pair | M | N | K | kernel | us, burst | us, steady | floor | ratio | / peer |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for r in sorted((r for r in rows if r["ratio"]), key=lambda r: -r["ratio"])[:count]:
        over = f"{r['over_peer']:.2f}" if r["over_peer"] else ""
        print(
            f"| {name(r['pair'])} | {r['m']} | {r['n']} | {r['k']} | {r['kernel']} | {r['burst'] * 1e6:.1f} "
            f"| {r['steady'] * 1e6:.1f} | {r['floor'] * 1e6:.1f} | {r['ratio']:.2f} | {over} |"
        )


def draw_map(pair, cells, folder):
    """Draws a heat map of one pair of formats, with N x K on the x axis and M on the y axis. The
    color is the logarithm of time / floor."""
    shapes_of = sorted({(r["n"] * r["k"], r["n"], r["k"]) for r in cells})
    rows_of = sorted({r["m"] for r in cells})
    lines = [f"{shapes_of.index((r['n'] * r['k'], r['n'], r['k']))} {rows_of.index(r['m'])} {r['ratio']}" for r in cells]
    path = folder / (name(pair).replace(" ", "_").replace("/", "_") + ".svg")
    ticks = lambda values: ", ".join(f'"{v}" {i}' for i, v in enumerate(values))
    script = f"""set terminal svg size {200 + 14 * len(shapes_of)},{220 + 18 * len(rows_of)} background "white" font "sans,10"
set output "{path}"
set title "{name(pair)}: time / floor, {cells[0]['machine']}, commit {cells[0]['commit']}"
set xlabel "N x K"
set ylabel "M"
set cblabel "time / floor"
set logscale cb
set cbrange [1:8]
set palette defined (0 "#1a9850", 0.35 "#fee08b", 1 "#d73027")
set xtics rotate by 90 right ({ticks([f'{n} x {k}' for _, n, k in shapes_of])})
set ytics ({ticks(rows_of)})
set xrange [-0.5:{len(shapes_of)} - 0.5]
set yrange [-0.5:{len(rows_of)} - 0.5]
$cells << END
""" + "\n".join(lines) + """
END
plot $cells using 1:2:(0.5):(0.5):3 with boxxyerror fill solid noborder palette notitle
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def command_report(options):
    rows = read(options.results)
    refused = [r for r in rows if r["why"]]
    machines = sorted({r["machine"] for r in rows})
    commits = sorted({r["commit"] for r in rows})
    print(f"{len(rows)} cells on {', '.join(machines)}, commit {', '.join(commits)}\n")
    print_bands(rows)
    print_pairs(rows)
    print_worst(rows, options.worst)
    for r in refused:
        print(f"\nnot run: {r['cell']}: {r['why']}")
    if options.maps:
        folder = Path(options.maps)
        folder.mkdir(parents=True, exist_ok=True)
        for pair in sorted({r["pair"] for r in rows}):
            draw_map(pair, [r for r in rows if r["pair"] == pair and r["ratio"]], folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    cells = commands.add_parser("cells")
    cells.add_argument("--all", action="store_true")
    cells.add_argument("--sample", type=int, default=300)
    cells.add_argument("--seed", type=int, default=1)
    cells.add_argument("--date", default=datetime.date.today().isoformat())
    cells.add_argument("--rows", type=int, nargs=2, default=(1, 8192))
    cells.add_argument("--host", action="store_true")
    run = commands.add_parser("run")
    for word in ("program", "device", "cells", "results"):
        run.add_argument(word)
    run.add_argument("--seconds", type=float, default=300)
    run.add_argument("--shuffle", action="store_true")
    report = commands.add_parser("report")
    report.add_argument("results", nargs="+")
    report.add_argument("--worst", type=int, default=50)
    report.add_argument("--maps")
    options = parser.parse_args()
    {"cells": command_cells, "run": command_run, "report": command_report}[options.command](options)


if __name__ == "__main__":
    main()
