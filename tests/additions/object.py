#!/usr/bin/env python3
"""Compiles one source file of a build with the build's own options, but searches headers first in
another folder, the overlay.

usage: object.py BUILD SOURCE OVERLAY OUTPUT. SOURCE is a path below the build's source tree. If
the overlay has that file, the overlay's file is compiled."""
import json
import shlex
import subprocess
import sys
from pathlib import Path

build, source, overlay, output = sys.argv[1:]
tree = Path(build).parent.resolve()
entry = next(e for e in json.loads((Path(build) / "compile_commands.json").read_text())
             if Path(e["file"]) == tree / source and "bsmm_objects" in e["command"])
words = shlex.split(entry["command"])
words[words.index("-o") + 1] = output
words[1:1] = [f"-I{overlay}/include", f"-I{overlay}/src"]
if (Path(overlay) / source).exists():
    words[words.index("-c") + 1] = f"{overlay}/{source}"
sys.exit(subprocess.run(words, cwd=entry["directory"]).returncode)
