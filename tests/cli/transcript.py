#!/usr/bin/env python3
"""Runs transcripts of the command line and compares output and exit status.

A transcript is a text file. bash runs the line "$ COMMAND", which lines with "> " continue. The lines
below it are the expected output: standard output, then standard error with "! " before each line,
then "[N]" for an exit status that is not 0. An empty line of output is written ".". Lines that start
with "#" and empty lines before a command are comments. The commands of a transcript run in one new
folder, into which inputs.py has written its files.

    transcript.py FILE...            compare; the exit status is 1 if anything differs
    transcript.py --update FILE...   write what the commands print now into the files
"""
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def read_blocks(lines):
    """Yields (kind, line) for every line except output. The kind is "text" (a comment), "command"
    or "continued"."""
    kind = "text"
    for line in lines:
        if line.startswith("$ "):
            kind = "command"
            yield kind, line
        elif kind == "command" and line.startswith("> "):
            yield "continued", line
        elif kind != "text" and not line:
            kind = "text"
            yield kind, line
        elif kind == "text":
            yield kind, line
        else:
            kind = "output"


def run(command, folder, environment):
    prelude = HERE / "prelude.sh"
    result = subprocess.run(
        ["bash", "-c", f"source '{prelude}'\n{command}"], cwd=folder, env=environment,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    text = [line or "." for line in result.stdout.decode().splitlines()]
    text += ["! " + line for line in result.stderr.decode().splitlines()]
    if result.returncode:
        text.append(f"[{result.returncode}]")
    return text


def play(path, environment):
    """Runs the commands of a transcript, and returns the transcript with their current output."""
    actual, command = [], []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, HERE / "inputs.py"], cwd=folder, check=True)

        def finish():
            if command:
                actual.extend(run("\n".join(command), folder, environment))
                command.clear()

        for kind, line in read_blocks(path.read_text().splitlines()):
            if kind != "continued":
                finish()
            if kind != "text":
                command.append(line[2:])
            actual.append(line)
        finish()
    return actual


def main(arguments):
    update = arguments[:1] == ["--update"]
    environment = dict(os.environ, LC_ALL="C", BSMM_ROOT=str(HERE.parent.parent))
    environment["PATH"] = os.path.dirname(os.environ["BSMM"]) + ":" + environment["PATH"]
    failures = 0
    for name in arguments[1:] if update else arguments:
        path = pathlib.Path(name)
        expected, actual = path.read_text().splitlines(), play(path, environment)
        if update:
            path.write_text("\n".join(actual) + "\n")
        elif expected != actual:
            failures += 1
            print("\n".join(difflib.unified_diff(expected, actual, name, "now", lineterm="")))
    return 1 if failures else 0


sys.exit(main(sys.argv[1:]))
