#!/usr/bin/env python3
"""Checks the source files of a build with clang-tidy.

usage: check-tidy.py BUILD [FILE...]   (a finished build by clang; all of its files unless given)

Some files are compiled for several programs, with the same macros and headers. Such a file is
checked once. A file that passed is checked again only if something changed: the file, a header that
it includes, .clang-tidy, clang-tidy or the compiler's options. The folder .cache/tidy has one empty
file for each check that passed."""
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

TIDY = "clang-tidy-14"
# A check that passed is forgotten if no run has needed it for 30 days.
KEPT_SECONDS = 30 * 86400
# These options change neither what the parser sees nor a warning.
IRRELEVANT = {"-c", "-fPIC", "-fPIE", "-fvisibility=hidden"}


def options_of(command):
    """Returns the options of a compile command without those that do not matter for clang-tidy.
    Folders of headers do not matter if the headers found there are the same."""
    words = shlex.split(command)[1:]
    at = words.index("-o")
    del words[at:at + 2]
    return tuple(w for w in words
                 if w not in IRRELEVANT and not re.match(r"-I|-D\w+_EXPORTS$", w))


def object_of(command):
    words = shlex.split(command)
    return words[words.index("-o") + 1]


def headers_of(build):
    """Returns for each object of the build the files that the compiler read for it."""
    found, current = {}, None
    for line in subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, text=True,
                               capture_output=True).stdout.splitlines():
        if line.startswith("    "):
            found[current].append(line.strip())
        elif ": #deps" in line:
            current = line.split(": #deps")[0]
            found[current] = []
    return found


def main():
    build = Path(sys.argv[1]).resolve()
    root = Path(__file__).resolve().parent.parent
    database = json.loads((build / "compile_commands.json").read_text())
    headers = headers_of(build)
    version = subprocess.run([TIDY, "--version"], check=True, capture_output=True).stdout
    fixed = version + (root / ".clang-tidy").read_bytes()
    digests = {}

    def digest(path):
        path = build / path
        if path not in digests:
            digests[path] = hashlib.sha256(path.read_bytes()).digest()
        return digests[path]

    # Each file has the compile commands that differ in an option or header that matters.
    commands = {}
    for entry in database:
        read = frozenset(headers.get(object_of(entry["command"]), ()))
        commands.setdefault(entry["file"], {})[options_of(entry["command"]), read] = entry
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(
        json.dumps([e for of_file in commands.values() for e in of_file.values()]))
    passed_before = root / ".cache" / "tidy"
    passed_before.mkdir(parents=True, exist_ok=True)

    def key_of(file):
        """Returns the name of the file in .cache/tidy, or None if the build did not compile the
        source file."""
        text = hashlib.sha256(fixed)
        for options, read in sorted((o, sorted(r)) for o, r in commands[file]):
            if not read:
                return None
            text.update(repr(options).encode())
            for path in read:
                text.update(path.encode() + digest(path))
        return text.hexdigest()

    def check(file):
        """Returns what clang-tidy prints about a file, or "" if it finds nothing."""
        done = subprocess.run([TIDY, "-quiet", "-p", folder, file], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            return done.stdout or f"{file}: {TIDY} fails\n"
        if key := keys[file]:
            (passed_before / key).touch()
        return ""

    files = [str(Path(f).resolve()) for f in sys.argv[2:]] or list(commands)
    keys = {file: key_of(file) for file in files}
    todo = [f for f in files if not keys[f] or not (passed_before / keys[f]).exists()]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [text for text in pool.map(check, todo) if text]
    for key in passed_before.iterdir():
        if key.name in keys.values():
            os.utime(key)
        elif key.stat().st_mtime < time.time() - KEPT_SECONDS:
            key.unlink()
    print("".join(failures), end="")
    print(f"{len(todo)} files checked, {len(files) - len(todo)} unchanged since a check that passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
