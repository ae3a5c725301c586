"""Compares the time model of a simulated H200 with times that were measured on one, for products with each
tile of bsmm's Hopper kernels (tests/golden/data/h200_tiles.txt). Prints Kendall's tau and the median error
of each product, those of all products, and the same for a roofline. The roofline's time is the longer of
bytes / bandwidth and operations / peak, by the data sheet. The exit status is 1 if the model does not reach
the wanted figures, which its last lines name.

usage: compare_tiles.py BSMM [M N K]
BSMM is build/tests/bsmm_tiles. The products are those of at least five measured tiles and at most 1.5
billion multiply-adds, every second one in the order of their size, or those of M, N and K."""
import concurrent.futures
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

MEASURED = pathlib.Path(__file__).resolve().parents[1] / "golden/data/h200_tiles.txt"
LEAST_TILES, MOST_MULTIPLIES = 5, 1.5e9
LEAST_PRODUCTS, LEAST_TAU, MOST_ERROR = 6, 0.6, 0.25
BANDWIDTH = 4.8e12  # bytes per second
# ROOFS maps a format to its peak in operations per second, and to the bytes of an element of A and
# B in memory.
ROOFS = {"bf16": (989.4e12, 2), "fp8_group128": (1978.9e12, 1)}


def read_products():
    """Reads the file of measured times. Returns a list of (formats, (M, N, K), {(tile, parts of K,
    whole tiles): microseconds})."""
    products = []
    for line in MEASURED.read_text().splitlines():
        words = line.split()
        if words[0] == "gemm":
            products.append((words[1:3], tuple(map(int, words[3:])), {}))
        elif words[0] != "#":
            products[-1][2][words[0], int(words[1]), int(words[2])] = float(words[3])
    return products


def sample(products, only):
    chosen = {}  # A few products occur twice in the file.
    for formats, shape, ways in products:
        if len({tile for tile, *_ in ways}) >= LEAST_TILES and math.prod(shape) <= MOST_MULTIPLIES:
            chosen.setdefault((*formats, *shape), (formats, shape, ways))
    ordered = sorted(chosen.values(), key=lambda p: (math.prod(p[1]), p[1]))
    return [p for p in ordered if p[1] == only] if only else ordered[::2]


def model(bsmm, formats, shape, tile):
    """Runs a product with this tile. Returns how bsmm divides it, and the modelled time in
    microseconds. The simulator runs with one thread, because waiting thread blocks otherwise
    load a flag a different number of times in each run."""
    command = [bsmm, "bench", "--device", "sim:sm_90a", "--sampled", "--repeats", "1", "--json", "--format", ":".join(formats)]
    command += [word for name, n in zip("MNK", shape) for word in (f"-{name}", str(n))]
    settings = {"BSMM_TEST_TILE": tile, "BSMM_TEST_SHOW_DEAL": "1", "BSMM_SIM_THREADS": "1"}
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **settings})
    if result.returncode:
        sys.exit(f"{' '.join(command)}, tile {tile}: {result.stderr}")
    deals = [line.split()[1:] for line in result.stderr.splitlines() if line.startswith("deal ")]
    if not deals:
        sys.exit(f"{' '.join(command)}: the kernel does not use tile {tile}")
    return (deals[0][0], *map(int, deals[0][1:])), 1e6 * json.loads(result.stdout)["seconds"]


def roofline(formats, shape):
    (m, n, k), (peak, width) = shape, ROOFS[formats[0]]
    return 1e6 * max((width * (m + n) * k + 2 * m * n) / BANDWIDTH, 2 * m * n * k / peak)


def tau(x, y):
    """Returns Kendall's tau-b. It is the fraction of pairs with the same order in x and y, minus
    the fraction with opposite orders, corrected for ties. It is 0 if all of x or all of y are
    equal."""
    pairs = [(i, j) for i in range(len(x)) for j in range(i)]
    sign = [[(v[i] > v[j]) - (v[i] < v[j]) for i, j in pairs] for v in (x, y)]
    differ = math.prod(sum(map(abs, s)) for s in sign)
    return sum(a * b for a, b in zip(*sign)) / math.sqrt(differ) if differ else 0.0


def main():
    bsmm, only = sys.argv[1], tuple(map(int, sys.argv[2:5]))
    workers = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    results = {"model": ([], []), "roofline": ([], [])}  # the products' taus, the errors of all tiles
    fewest = math.inf
    for formats, shape, ways in sample(read_products(), only):
        measured, found, times = [], [], {"model": [], "roofline": []}
        tiles = sorted({tile for tile, *_ in ways})
        for way, time in workers.map(lambda tile: model(bsmm, formats, shape, tile), tiles):
            if way not in ways:
                print(f"{' x '.join(formats)} {shape}: {way} was not measured")
                continue
            measured.append(ways[way])
            found.append(way)
            times["model"].append(time)
            times["roofline"].append(roofline(formats, shape))
        fewest = min(fewest, len(measured))
        texts = []
        for name, (taus, errors) in results.items():
            own = [abs(t / m - 1) for t, m in zip(times[name], measured)]
            taus.append(tau(times[name], measured))
            errors += own
            texts.append(f"{name}: tau {taus[-1]:5.2f}, median error {100 * statistics.median(own):3.0f}%")
        print(f"{' x '.join(formats):29}{' x '.join(map(str, shape)):20}{len(measured)} tiles  {'  '.join(texts)}", flush=True)
        names = [f"{tile.split('_')[-1]}/{parts}" for tile, parts, _ in found]
        print("   ", ", ".join(f"{name} {t:.1f} of {m:.1f}" for name, t, m in zip(names, times["model"], measured)), "us", flush=True)
    if fewest == math.inf:
        sys.exit(f"no product of {only} in {MEASURED}")
    (model_tau, model_error), (roof_tau, roof_error) = [(statistics.mean(t), statistics.median(e)) for t, e in results.values()]
    products, tiles = len(results["model"][0]), len(results["model"][1])
    print(f"{products} products, {tiles} times: tau of the model {model_tau:.2f} on average, of the roofline {roof_tau:.2f}; "
          f"median error {100 * model_error:.0f}% and {100 * roof_error:.0f}%")
    wanted = {f"at least {LEAST_TILES} tiles in each product": fewest >= LEAST_TILES,
              f"tau is at least {LEAST_TAU} on average": model_tau >= LEAST_TAU,
              f"the median error is at most {100 * MOST_ERROR:.0f}%": model_error <= MOST_ERROR,
              "the model's tau and error are better than the roofline's": model_tau > roof_tau and model_error < roof_error}
    if not only:
        wanted[f"at least {LEAST_PRODUCTS} products"] = products >= LEAST_PRODUCTS
    for text, holds in wanted.items():
        print(f"{'holds' if holds else 'does not hold'}: {text}")
    sys.exit(not all(wanted.values()))


if __name__ == "__main__":
    main()
