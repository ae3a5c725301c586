#!/usr/bin/env python3
"""Applies additions to a copy of the tree. README.md describes the files. usage: add.py TREE
NAME.add..."""
import re
import sys
from pathlib import Path


def place(lines, where, path):
    """Returns the index of the line before which a section is inserted. `where` describes the
    place, as in "between X and Y"."""
    if between := re.fullmatch(r"between (.+) and (.+)", where):
        first = next(i for i, line in enumerate(lines) if between[1] in line)
        return next(i for i in range(first + 1, len(lines)) if between[2] in lines[i])
    anchor = where.removeprefix("before ")
    found = [i for i, line in enumerate(lines) if anchor in line]
    if not found:
        sys.exit(f"{path}: no line contains {anchor!r}")
    return found[-1]


def add(tree, path, where, text):
    target = tree / path
    if where:
        lines = target.read_text().splitlines(keepends=True)
        at = place(lines, where, path)
        lines[at:at] = text
        text = lines
    elif target.exists():
        sys.exit(f"{path} is there already")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(text))


def main():
    tree = Path(sys.argv[1])
    for addition in map(Path, sys.argv[2:]):
        sections = re.split(r"^== (\S+) ?(.*)\n", addition.read_text(), flags=re.MULTILINE)
        for path, where, text in zip(sections[1::3], sections[2::3], sections[3::3]):
            add(tree, path, where, text.splitlines(keepends=True))


if __name__ == "__main__":
    main()
