#!/usr/bin/env python3
"""Measures the figures of docs/notes/cpu-avx512.md or cpu-avx2.md and prints them as Markdown. This
takes less than ten minutes.

usage: reproduce.py [--bsmm BSMM] [--only SECTION] [--json FILE] [--update DOCUMENT]
--only    measures one section: products, shapes, decode, conversions or avx2
--json    also writes every line that bsmm bench prints to FILE
--update  replaces a part of DOCUMENT by the new figures. The part begins after the line
          `<!-- measured avx512 -->`, or `<!-- measured avx2 -->` on a processor without AVX-512. It
          ends before the line `<!-- measured end -->`.

No other program may keep the processors busy; `nice -n -20 bench/reproduce.py` gives the script a
high priority. The script refuses to run under a real-time policy, because a thread that busy-waits
would then block the thread that it waits for. A share is the fraction of a ceiling that was measured
beside the figure, so that runs on different machines can be compared. If a cell has two figures, the
first is for one thread and the second for two threads. A figure that is below the wanted one is
bold."""
import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
THREADS = (1, 2)
NO_PEERS = {"BSMM_BENCH_OPENBLAS": "", "BSMM_BENCH_ONEDNN": ""}

# PRODUCTS lists the GEMMs to measure: the formats, and the wanted rate as a fraction of the peak.
# None means that no rate is wanted.
PRODUCTS = (
    ("mxfp4", 0.80),
    ("mxfp6_e2m3", 0.80),
    ("nvfp4", 0.63),
    ("mxfp8", 0.93),
    ("mxfp6_e3m2", 0.93),
    ("mixed", 0.93),
    ("bf16:mxfp4", 0.93),
    ("bf16:nvfp4", 0.93),
    ("fp8_groupwise", 0.92),
    ("f32:mxfp4", None),
    ("f32", None),
)
BASE = (2048, 2048, 2048)
PRODUCT_SHAPES = (BASE, (512, 4096, 4096))

# SHAPE_FORMATS lists the formats that are measured for many shapes. There is one for each kind of
# kernel.
SHAPE_FORMATS = ("mxfp4", "nvfp4", "mxfp8", "fp8_groupwise")
SHAPES = (
    *(((size, size, size), 0.75) for size in (128, 256, 512, 1024, 4096, 8192)),
    *(((m, 4096, 4096), 0.75 if m >= 64 else None) for m in (16, 32, 64, 128)),
    ((2047, 2049, 2050), 0.85),
)
# OVER_SGEMM is the wanted ratio of the rate of mxfp4 to the rate of OpenBLAS's sgemm, for at least
# 64 rows of A.
OVER_SGEMM = {"avx512": 2.8, "avx2": 1.5}

# DECODE lists the GEMMs with few rows of A: the formats, the wanted fraction of the memory
# bandwidth, and the numbers of rows.
DECODE = (
    ("mxfp4", 0.90, (1, 2, 4, 8, 16)),
    ("nvfp4", 0.85, (1, 2, 4, 8, 16)),
    ("mxfp8", 0.85, (1, 2, 4, 8, 16)),
    ("fp8_groupwise", 0.85, (1, 2, 4, 8, 16)),
    ("bf16:mxfp4", 0.90, (1,)),
    ("bf16:nvfp4", 0.85, (1,)),
)

CONVERSIONS = tuple(
    (work, plain, wide, *scaled)
    for work, plain, formats in (
        # Without --amax, quantizing to nvfp4 reads the values twice, because it must first find the
        # largest magnitude of the tensor.
        ("--quantize", "--from", (("mxfp4",), ("nvfp4",), ("nvfp4", "--amax"), ("mxfp8",))),
        ("--dequantize", "--out", (("mxfp4",), ("nvfp4",), ("mxfp8",))),
    )
    for wide in ("f32", "bf16")
    for scaled in formats
)
CONVERSION_SHARE = 0.60


# UNKNOWN sets the kernels of OpenBLAS on a processor that it does not know. OpenBLAS would
# otherwise use its SSE kernels there, although the processor has AVX-512.
UNKNOWN = {"OPENBLAS_CORETYPE": "SapphireRapids"}
peer_environment = {}


def environment(changes=None):
    """Returns the environment variables for bench without OPENBLAS_CORETYPE of the user, so that
    only this script selects OpenBLAS's kernels."""
    own = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    return own | peer_environment | (changes or {})


class Bench:
    """Runs bsmm bench. The script ends if a GEMM or kernel cannot run."""

    def __init__(self, program, log):
        self.program, self.log = program, log
        self.ceilings = ceilings(program)
        self.vectors = "avx512" if "avx512" in "".join(self.ceilings) else "avx2"
        if "Prescott" in "".join(self.ceilings) and self.vectors == "avx512":
            peer_environment.update(UNKNOWN)
            self.ceilings = ceilings(program)

    def __call__(self, *arguments, env=None, prefix=()):
        words = [*prefix, self.program, "bench", "--json", *map(str, arguments)]
        done = subprocess.run(words, env=environment(env), stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}: exit status {done.returncode}")
        if self.log:
            self.log.write(done.stdout)
            self.log.flush()
        return json.loads(done.stdout)

    def product(self, formats, shape, threads, *options, env=None):
        m, n, k = shape
        return self("--format", formats, "-M", m, "-N", n, "-K", k, "--threads", threads, *options,
                    env=env)


def shape_name(shape):
    return " x ".join(map(str, shape)) if len(set(shape)) > 1 else f"{shape[0]}^3"


def against(value, wanted):
    """Formats a value. It is bold if it is less than wanted."""
    text = f"{value:.2f}"
    return text if wanted is None or value >= wanted else f"**{text}**"


def aim(wanted):
    return f"{wanted:.2f}" if wanted else "-"


def over(row, peer, wanted=None):
    rate = row["peers"].get(peer)
    return against(row["gflops"] / rate, wanted) if rate else "-"


def packing(row):
    """Formats the time of packing B once as a multiple of the time of one GEMM, or "-" if B is not
    packed."""
    return f"{row['pack_b_seconds'] / row['seconds']:.3f}" if row["b_packed"] else "-"


def both(rows, cell):
    """Makes one cell of a table. `rows` are the results for each number of threads. If all results
    are equal, the cell has one of them."""
    cells = [cell(row) for row in rows]
    return cells[0] if len(set(cells)) == 1 else " / ".join(cells)


def kernels(rows):
    return both(rows, lambda r: f"`{r['kernel']}`")


def table(heads, rows):
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def products(bench):
    """Products beside the peak of their arithmetic unit and beside other libraries"""
    heads = ["product", "shape", "kernel", "GFLOP/s", "ceiling", "share", "wanted", "over sgemm",
             "over oneDNN bf16", "packing B"]
    rows = []
    for formats, share in PRODUCTS:
        # The wanted fraction holds for arithmetic units that a processor with only AVX2 lacks.
        wanted = share if bench.vectors == "avx512" else None
        for shape in PRODUCT_SHAPES:
            r = [bench.product(formats, shape, threads) for threads in THREADS]
            rows.append([formats, shape_name(shape), kernels(r),
                         both(r, lambda x: f"{x['gflops']:.0f}"),
                         both(r, lambda x: f"{x['ceiling_gflops']:.0f}"),
                         both(r, lambda x: against(x["share"], wanted)), aim(wanted),
                         both(r, lambda x: over(x, "openblas")),
                         both(r, lambda x: over(x, "onednn_bf16")), both(r, packing)])
    return table(heads, rows)


def shape_cells(bench, formats, shape, wanted, bases):
    """Makes the cells of a table for one shape: the GFLOP/s, the fraction of the rate at BASE and,
    for mxfp4, the ratio to sgemm."""
    repeats = 1 if shape[0] >= 8192 else 3 if shape[0] >= 4096 else 5
    peers = {"BSMM_BENCH_ONEDNN": ""} if formats == "mxfp4" else NO_PEERS
    r = [bench.product(formats, shape, threads, "--repeats", repeats, env=peers) | {"base": base}
         for threads, base in zip(THREADS, bases)]
    cells = [both(r, lambda x: f"{x['gflops']:.0f}"),
             both(r, lambda x: against(x["gflops"] / x["base"], wanted))]
    if formats == "mxfp4":
        least = OVER_SGEMM[bench.vectors] if shape[0] >= 64 else None
        cells.append(both(r, lambda x: over(x, "openblas", least)))
    return cells


def shapes(bench):
    """Each shape relative to the throughput at 2048^3"""
    heads, columns = ["shape", "wanted"], []
    for formats in SHAPE_FORMATS:
        bases = [bench.product(formats, BASE, t, env=NO_PEERS)["gflops"] for t in THREADS]
        heads += [formats, "part"] + (["over sgemm"] if formats == "mxfp4" else [])
        columns.append([shape_cells(bench, formats, shape, wanted, bases)
                        for shape, wanted in SHAPES])
    return table(heads, ([shape_name(shape), aim(wanted),
                          *(cell for column in columns for cell in column[i])]
                         for i, (shape, wanted) in enumerate(SHAPES)))


def decode(bench):
    """Few rows of A by 4096 x 4096 weights, which are read from memory"""
    heads = ["product", "rows", "kernel", "GFLOP/s", "GB/s of B", "ceiling is", "share", "wanted",
             "over sgemm", "over oneDNN bf16"]
    rows = []
    for formats, share, counts in DECODE:
        for m in counts:
            env = {} if formats == "mxfp4" else NO_PEERS
            wanted = share if m == 1 else None
            r = [bench.product(formats, (m, 4096, 4096), t, "--cold", env=env) for t in THREADS]
            rows.append([formats, str(m), kernels(r), both(r, lambda x: f"{x['gflops']:.0f}"),
                         both(r, lambda x: f"{x['b_gbs']:.1f}"),
                         both(r, lambda x: f"`{x['ceiling']}`"),
                         both(r, lambda x: against(x["share"], wanted)),
                         aim(wanted), both(r, lambda x: over(x, "openblas")),
                         both(r, lambda x: over(x, "onednn_bf16"))])
    return table(heads, rows)


def convert(bench, threads, work, plain, wide, *scaled):
    # bsmm dequantize uses all processors on which the process may run. taskset limits their number.
    prefix = ("taskset", "-c", f"0-{threads - 1}")
    return bench(work, plain, wide, "--format", *scaled, "-M", 8192, "-K", 8192, "--threads",
                 threads, "--repeats", 3, prefix=prefix)


def conversions(bench):
    """Quantize and dequantize, 8192 x 8192"""
    heads = ["work", "from", "to", "GB/s", "ceiling", "share", "wanted"]
    rows = []
    for conversion in CONVERSIONS:
        r = [convert(bench, threads, *conversion) for threads in THREADS]
        work = r[0]["work"] + (", amax given" if r[0]["amax"] else "")
        rows.append([work, r[0]["from"], r[0]["to"], both(r, lambda x: f"{x['gbs']:.1f}"),
                     both(r, lambda x: f"{x['ceiling_gbs']:.1f}"),
                     both(r, lambda x: against(x["share"], CONVERSION_SHARE)),
                     aim(CONVERSION_SHARE)])
    return table(heads, rows)


def avx2(bench):
    """AVX2 alone: mxfp4 against sgemm's AVX2 kernels (OPENBLAS_CORETYPE=Haswell)"""
    heads = ["shape", "kernel", "GFLOP/s", "over sgemm", "wanted"]
    env = {"OPENBLAS_CORETYPE": "Haswell", "BSMM_BENCH_ONEDNN": ""}
    rows = []
    for shape in PRODUCT_SHAPES:
        r = [bench.product("mxfp4", shape, threads, "--kernel", "cpu_avx2_int8dot", env=env)
             for threads in THREADS]
        rows.append([shape_name(shape), kernels(r), both(r, lambda x: f"{x['gflops']:.0f}"),
                     both(r, lambda x: over(x, "openblas", OVER_SGEMM["avx2"])),
                     aim(OVER_SGEMM["avx2"])])
    return table(heads, rows)


SECTIONS = (products, shapes, decode, conversions, avx2)


def output_of(*words):
    done = subprocess.run(words, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def ceilings(program):
    text = output_of(program, "bench", "-M", "64", "-N", "64", "-K", "64", "--repeats", "1")
    return text.split("\n\n")[0].splitlines()


def heading(bench):
    """Describes the measured commit and the machine."""
    cpu = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    family = re.search(r"cpu family\s*: (\d+)", cpu)
    model = re.search(r"model\s*: (\d+)", cpu)
    commit = output_of("git", "rev-parse", "--short", "HEAD")
    processor = f", processor family {family[1]}, model {model[1]}" if family and model else ""
    yield (f"These figures are those of commit {commit} on {platform.machine()}{processor}. "
           "`bsmm bench` printed:")
    yield ""
    yield from (f"    {line}" for line in bench.ceilings)


def report(bench, only):
    yield from heading(bench)
    for section in SECTIONS:
        if section.__name__ != only if only else section is avx2 and bench.vectors == "avx2":
            continue  # Without AVX-512 every section already measures AVX2.
        started = time.monotonic()
        yield ""
        yield f"### {section.__doc__}"
        yield ""
        yield from section(bench)
        print(f"{section.__name__}: {time.monotonic() - started:.0f} s", file=sys.stderr)


def update(document, vectors, text):
    part = re.compile(rf"(<!-- measured {vectors} -->\n).*?(<!-- measured end -->)", re.DOTALL)
    old = document.read_text(encoding="utf-8")
    if not part.search(old):
        raise SystemExit(f"{document}: no <!-- measured {vectors} --> ... <!-- measured end -->")
    document.write_text(part.sub(lambda m: m[1] + text + m[2], old), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bsmm", default=str(ROOT / "build" / "bsmm"))
    parser.add_argument("--only", choices=[section.__name__ for section in SECTIONS])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--update", type=Path)
    options = parser.parse_args()
    if os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR):
        raise SystemExit("under a real-time policy threads that spin hold up others: use nice")
    log = options.json.open("w", encoding="utf-8") if options.json else None
    bench = Bench(options.bsmm, log)
    text = "\n".join(report(bench, options.only)).rstrip() + "\n"
    print(text, end="")
    if options.update:
        update(options.update, bench.vectors, text)


if __name__ == "__main__":
    main()
