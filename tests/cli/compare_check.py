"""Checks the output of bsmm compare --json. usage: compare_check.py A B <ROWS
The errors are computed from the two models without bsmm."""
import json
import math
import struct
import sys

from model_values import model_values


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def expected(a, b):
    signal = math.fsum(x * x for x in a.values)
    noise = math.fsum((x - q) ** 2 for x, q in zip(a.values, b.values))
    most = max(abs(x - q) for x, q in zip(a.values, b.values))
    clipped = sum(abs(x) > limit for x, limit in zip(a.values, b.limits)) / len(a.values)
    amax = f32(max(map(abs, a.values)))
    return 10 * math.log10(signal / noise) if noise else None, most, most / amax if most else 0, clipped


def close(value, wanted):
    if value is None or wanted is None:
        return value is wanted
    return math.isclose(value, wanted, rel_tol=1e-9, abs_tol=1e-12)


def main():
    models = [model_values(path) for path in sys.argv[1:]]
    rows = [json.loads(line) for line in sys.stdin]
    shared = [row for row in rows if row["a"] and row["b"]]
    assert rows[: len(shared)] == shared, "tensors of one model only are not at the end"
    for key, model in zip("ab", models):
        names = [row["name"] for row in rows if row[key]]
        assert sorted(names) == sorted(model), (key, set(names) ^ set(model))
    for row in shared:
        wanted = expected(*(model[row["name"]] for model in models))
        found = [row[key] for key in ("sqnr_db", "max_error", "relative", "clipped")]
        assert all(map(close, found, wanted)), (row, wanted)
    ranks = [math.inf if row["sqnr_db"] is None else row["sqnr_db"] for row in shared]
    assert ranks == sorted(ranks), "the worst is not the first"
    assert len(shared) < 2 or ranks[0] < ranks[-1]
    print(len(shared), len(rows) - len(shared), sum(row["clipped"] > 0 for row in shared))


main()
