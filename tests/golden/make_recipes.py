# SPDX-License-Identifier: Apache-2.0
"""Generates tests/golden/recipes/, the output of each project's quantizer on each input.

    python3 -m venv v && v/bin/pip install -r tests/golden/recipes/requirements.txt
    v/bin/python tests/golden/make_recipes.py

manifest.tsv lists one case per line. The arrays lie in GROUP.bin.gz at the byte offsets that
manifest.tsv gives (offsets count uncompressed bytes). RECIPES-NOTES.md says what each recipe
computes."""
import gzip
import os
import sys

import numpy as np

import recipe_codec as rc
import recipe_groups

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "recipes")
COLUMNS = ["case", "recipe", "format", "options", "dtype", "rows", "cols", "source",
           "file", "input_at", "data_at", "data_bytes", "scales_at", "scales_bytes", "global_at"]


class Blob:
    """Collects bytes. Equal arrays are stored only once."""

    def __init__(self):
        self.data, self.known = bytearray(), {}

    def add(self, array):
        raw = np.ascontiguousarray(array).tobytes()
        if raw not in self.known:
            self.data += bytes(-len(self.data) % 8)
            self.known[raw] = len(self.data)
            self.data += raw
        return self.known[raw], len(raw)


def entry(blob, group, case):
    """Returns one line of the manifest and appends the case's arrays to the blob."""
    data_at, data_bytes = blob.add(rc.pack(case.codes, case.elem))
    scales_at, scales_bytes = blob.add(case.scales)
    global_at = "-" if case.level2 is None else blob.add(np.float32(case.level2))[0]
    input_at, _ = blob.add(case.x)
    rows, cols = case.x.shape
    return [case.name, case.recipe, case.format, case.options, case.dtype, rows, cols, case.source,
            f"{group}.bin.gz", input_at, data_at, data_bytes, scales_at, scales_bytes, global_at]


def write_group(group, cases):
    blob = Blob()
    lines = [entry(blob, group, case) for case in cases]
    with open(os.path.join(OUT, f"{group}.bin.gz"), "wb") as raw:
        with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as z:
            z.write(blob.data)
    print(f"{group}: {len(lines)} cases, {len(blob.data)} bytes", file=sys.stderr)
    return lines


def main():
    os.makedirs(OUT, exist_ok=True)
    lines = [COLUMNS]
    for group, cases in recipe_groups.GROUPS.items():
        lines += write_group(group, cases())
    with open(os.path.join(OUT, "manifest.tsv"), "w") as f:
        f.writelines("\t".join(map(str, line)) + "\n" for line in lines)


if __name__ == "__main__":
    main()
