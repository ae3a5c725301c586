#!/usr/bin/env python3
"""Rewrites the generated parts of documents, whose text comes from the program, the examples or
docs/figures.json.

A generated part stands between `<!-- KIND: ... -->` and `<!-- end -->`. Each KIND is one of the
functions below.

  usage: update-docs.py [--check] BSMM FILE...
--check changes nothing and fails if a file is not current."""
import difflib
import json
import re
import shlex
import string
import subprocess
import sys
import textwrap
from pathlib import Path

import figures
import house_picture
import layout_picture

ROOT = Path(__file__).resolve().parent.parent
PART = re.compile(r"(<!-- (\w+): (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def run(bsmm, command):
    words = shlex.split(command)
    if words[0] != "bsmm":
        raise SystemExit(f"{command}: only bsmm may be run")
    return subprocess.run([bsmm, *words[1:]], check=True, capture_output=True, text=True).stdout


def output(bsmm, argument):
    """The kind `output: COMMAND` inserts what the command prints."""
    return f"```text\n{run(bsmm, argument).rstrip()}\n```\n"


def lines(_bsmm, argument):
    """The kind `lines: FILE /FIRST/ /LAST/` inserts the lines of a file from the first match of
    FIRST to the next match of LAST."""
    path, first, last = re.fullmatch(r"(\S+) /(.*)/ /(.*)/", argument).groups()
    text = (ROOT / path).read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(text) if re.search(first, line))
    stop = next(i for i in range(start, len(text)) if re.search(last, text[i]))
    return "```c\n" + textwrap.dedent("\n".join(text[start : stop + 1])) + "\n```\n"


class Cell(string.Formatter):
    """Formats {field}, or {field:T} in units of 10^12 (tera).

    Tera values below 100 get three significant digits, larger ones at most one decimal."""

    def format_field(self, value, spec):
        if value is None:
            return "-"
        if spec != "T":
            return format(value, spec)
        return f"{value / 1e12:.3g}" if value < 1e14 else f"{round(value / 1e12, 1):g}"


def table(bsmm, argument):
    """The kind `table: COMMAND | KIND | HEAD=CELL | ...` inserts a table with a row for each JSON
    object of that kind."""
    command, kind, *columns = (part.strip() for part in argument.split("|"))
    heads, cells = zip(*(column.split("=", 1) for column in columns))
    rows = [json.loads(line) for line in run(bsmm, command).splitlines()]
    rows = [row for row in rows if row["kind"] == kind]
    if not rows:
        raise SystemExit(f"{command}: no rows of kind {kind}")
    body = [[Cell().format(cell, **row) for cell in cells] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in [heads, ["---"] * len(heads), *body])


def picture(bsmm, argument):
    """The kind `picture: LAYOUT ROWS COLS` draws a scale layout in docs/layouts/LAYOUT.svg and
    inserts a link to it."""
    name, rows, cols = argument.split()
    command = f"bsmm layouts {name} --rows {rows} --cols {cols} --all --json"
    cells = [json.loads(line) for line in run(bsmm, command).splitlines()]
    layouts = [json.loads(line) for line in run(bsmm, "bsmm layouts --json").splitlines()]
    tile = next((layout["tile_rows"], layout["tile_cols"]) for layout in layouts if layout["name"] == name)
    pictures[ROOT / "docs" / "layouts" / f"{name}.svg"] = layout_picture.draw(name, cells, tile)
    return f"![{name}: {rows} x {cols} scales and their buffer](layouts/{name}.svg)\n"


def house(_bsmm, argument):
    """The kind `house: TITLE` draws docs/house.svg, which shows the folders of the source tree and
    which of them include which others, and inserts a link to it."""
    pictures[ROOT / "docs" / "house.svg"] = house_picture.draw()
    return f"![{argument}](house.svg)\n"


def figure(_bsmm, argument):
    """The kind `figure: MACHINE` inserts the table of a machine's measurements from
    docs/figures.json, draws its chart, and inserts a link to the chart."""
    pictures[ROOT / "docs" / "figures" / f"{argument}.svg"] = figures.peak_chart(argument)
    return f"{figures.table(argument)}\n![{figures.load(argument)['title']}](figures/{argument}.svg)\n"


def peers(_bsmm, argument):
    """The kind `peers: MACHINE INDEX, ...` draws a chart that compares rows of docs/figures.json
    with their peers, i.e. other libraries."""
    pictures[ROOT / "docs" / "figures" / "peers.svg"] = figures.peer_chart(argument.split(", "))
    return "![Bar chart: bsmm's speed divided by that of the fastest other library, for each product](docs/figures/peers.svg)\n"


KINDS = {"figure": figure, "peers": peers, "output": output, "lines": lines, "table": table, "picture": picture, "house": house}
pictures = {}  # `pictures` maps the path of each drawn picture to its content.


def current(bsmm, text):
    return PART.sub(lambda m: m[1] + KINDS[m[2]](bsmm, " ".join(m[3].split())) + m[4], text)


def replace(path, new, check):
    """Writes a file or, with `check`, only prints how it would change. Returns True if the
    content differs."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    if check:
        sys.stdout.writelines(difflib.unified_diff(
            old.splitlines(True), new.splitlines(True), str(path), "as it should be"))
    elif new != old:
        path.write_text(new, encoding="utf-8")
    return new != old


def main(arguments):
    check = arguments[:1] == ["--check"]
    bsmm, *paths = arguments[check:]
    contents = {path: current(bsmm, path.read_text(encoding="utf-8")) for path in map(Path, paths)}
    contents.update(pictures)
    stale = [path for path, new in contents.items() if replace(path, new, check)]
    if check and stale:
        print("`make docs` brings these up to date")
    return int(bool(check and stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
