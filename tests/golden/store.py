# SPDX-License-Identifier: Apache-2.0
"""Writes golden arrays and their manifest. README.md in this folder describes both."""
import gzip
from pathlib import Path

DATA = Path(__file__).parent / "data"
COLUMNS = ("case", "kind", "format", "mode", "source", "count", "input", "expected")


class Manifest:
    """Collects the rows of one tab-separated table NAME.tsv, one case in each row. Arrays are
    appended to files NAME_PACK.gz."""

    def __init__(self, name):
        self.name = name
        self.rows = []
        self.packs = {}

    def put(self, pack, array):
        """Appends a little-endian array to one of the files of arrays. Returns its reference,
        FILE@BYTE."""
        content = self.packs.setdefault(f"{self.name}_{pack}.gz", bytearray())
        reference = f"{self.name}_{pack}.gz@{len(content)}"
        content += array.astype(array.dtype.newbyteorder("<")).tobytes()
        return reference

    def add(self, case, kind, format, mode, source, input, expected):
        reference = self.put(format, expected)
        row = (case, kind, format, mode, source, str(len(expected)), input, reference)
        assert all(cell and not any(c.isspace() for c in cell) for cell in row), row
        self.rows.append(row)

    def save(self):
        """Writes the table and the arrays. gzip gets no time stamp, so that a second run writes the
        same bytes."""
        DATA.mkdir(exist_ok=True)
        for file, content in self.packs.items():
            (DATA / file).write_bytes(gzip.compress(bytes(content), 9, mtime=0))
        lines = ["\t".join(row) for row in [COLUMNS, *self.rows]]
        (DATA / f"{self.name}.tsv").write_text("\n".join(lines) + "\n")
        print(f"{self.name}.tsv: {len(self.rows)} cases, {len(self.packs)} files")
