#!/usr/bin/env python3
"""Mutation testing: changes one line of the library or the command at a time and checks whether a
test fails.

It works in copies of the tree in build-mutate, one for each worker. For each change a worker builds
the library and the command, then builds and runs the tests of the changed folder's area, then all
other tests, and stops at the first test that fails. A test is skipped if the change left its
program as it was, or if it does not execute the changed function (tools/mutate_reach.py). To find
the functions that a test executes, all tests run once before the first change. Tests that take
longer than --limit seconds do not run afterwards.

Only host code is changed. The GPU kernels, and the emulation of the NVIDIA kernels for the CPU, are
built once, before the first change. If a changed header is shared with the GPU kernels, only the
host's use of it is tested.

A change that no test finds is called a survivor. A survivor shows a gap in the tests, or it has no
effect that a test could notice. Changes without effect belong in tools/mutate-harmless.tsv with
the reason; they are not tried. The exit status is 1 if tests found less than 95% of the changes that are not listed
there.

All programs are linked with LeakSanitizer, which needs no other compilation. A test then also finds a
change that leaks memory.

Warnings are errors, as in CI. A change that the compiler warns about does not compile and does not
count.

The same seed gives the same changes of the same sources. A run that was stopped can be
continued: a change that a test found is not tried again while its file is the same, and
survivors are tried again after any change of the tree.

  usage: mutate.py [--mutants 100] [--seed 1] [--seconds 0] [--at FILE:LINE]... [--flags CMAKE_FLAGS]
                   [--workers 2] [--limit 60] [--quick] [--kernels BUILD_FOLDER]"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import mutations
from mutate_copy import ROOT, WORK, Copy, hash_of_tree, sha
from mutate_tests import QUICK, QUICK_NEAR, kills_of, order_tests

HARMLESS = ROOT / "tools" / "mutate-harmless.tsv"
WANTED = 0.95
FLAGS = "-DBSMM_WERROR=ON -DCMAKE_EXE_LINKER_FLAGS=-fsanitize=leak"

# The functions from here on build the unchanged sources.


def baseline(options, copies, tree_hash):
    """Builds the copies. Returns the changes to be tried, the seconds that each test takes, and the
    tests that execute the function of each changed line (see Copy.measure)."""
    store = WORK / "baseline.json"
    known = json.loads(store.read_text()) if store.exists() else {}
    print("building the copies", flush=True)
    for copy in copies:
        copy.prepare()
    chosen = choose(options, sources(copies[0]))
    asked = {"tree": tree_hash, "flags": options.flags,
             "lines": sorted({f"{name}:{index + 1}" for name, index, _ in chosen})}
    if {key: known.get(key) for key in asked} != asked:
        print("running the tests once", flush=True)
        times, reached = copies[0].measure(chosen)
        known = {**asked, "times": times,
                 "reached": {f"{name}:{index + 1}": tests for (name, index), tests in reached.items()}}
        store.write_text(json.dumps(known))
    long = {name: seconds for name, seconds in known["times"].items() if seconds > options.limit}
    for name, seconds in sorted(long.items()):
        print(f"left out, since it takes {seconds:.0f} s: {name}")
    times = {name: seconds for name, seconds in known["times"].items() if name not in long and name in copies[0].tests}
    return chosen, times, known["reached"]


def sources(copy):
    """Returns the files in src and cli from which the library and the command are built, according
    to ninja."""
    text = subprocess.run(["ninja", "-C", str(copy.build_folder), "-t", "deps"], capture_output=True, text=True,
                          check=True).stdout
    found, ours = set(), False
    for line in text.splitlines():
        if not line.startswith(" "):
            ours = re.match(r"CMakeFiles/bsmm(_\w+)?\.dir/|CMakeFiles/\w+\.dir/src/", line) is not None
        elif ours:
            path = (copy.build_folder / line.strip()).resolve()
            if path.is_relative_to(copy.root) and path.suffix in (".c", ".h", ".def"):
                found.add(str(path.relative_to(copy.root)))
    return sorted(f for f in found if f.startswith(("src/", "cli/")) and not f.endswith(".def"))


# The functions from here on try the changes.


def every_line(files):
    """Returns (file, index of a line) for each line that can be changed."""
    lines = []
    for name in files:
        for index, line in mutations.code_lines((ROOT / name).read_text()):
            if mutations.changes(line):
                lines.append((name, index))
    return lines


def choose(options, files):
    if options.at:
        wanted = [at.rsplit(":", 1) for at in options.at]
        return [(name, int(line) - 1, new) for name, line in wanted
                for new in mutations.changes((ROOT / name).read_text().split("\n")[int(line) - 1])]
    chance = random.Random(options.seed)
    lines = every_line(files)
    picked = chance.sample(lines, min(options.mutants, len(lines)))
    return [(name, index, chance.choice(mutations.changes((ROOT / name).read_text().split("\n")[index])))
            for name, index in picked]


def harmless_rows():
    return [line.split("\t") for line in HARMLESS.read_text().splitlines() if line and not line.startswith("#")]


def harmless():
    """Returns the reasons of single changes, by (file, line before, line after)."""
    return {(path, before.strip(), after.strip()): reason
            for path, before, after, reason in harmless_rows() if "*" not in path}


def harmless_classes():
    """Returns the rows for classes of changes: (pattern of files, of the line before, of the line after, reason)."""
    return [(path, re.compile(before), re.compile(after), reason)
            for path, before, after, reason in harmless_rows() if "*" in path]


def is_harmless(path, before, after, excused, classes):
    """Tells whether tools/mutate-harmless.tsv has the change or a class of it."""
    return (path, before, after) in excused or any(
        fnmatch.fnmatch(path, files) and old.fullmatch(before) and new.fullmatch(after)
        for files, old, new, _ in classes)


def show(record):
    after = record["after"].strip() or "(dropped)"
    return f"{record['file']}:{record['line']}\n      {record['before'].strip()}\n   -> {after}"


def read_log(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def remembered(records, tree_hash, quick):
    """Returns the results of earlier runs that are still valid, by (file, line, changed line)."""
    held = {}
    for r in records:
        same = (ROOT / r["file"]).exists() and sha(ROOT / r["file"]) == r["source"]
        if r["status"] == "survived" and r["tree"] != tree_hash or r["status"] == "undecided" and not quick:
            continue
        if same:
            held[r["file"], r["line"], r["after"]] = r
    return held


class Run:
    """Holds the changes of one run, their results so far, and the copies that are free."""

    def __init__(self, options, copies, tree_hash, chosen, times, reached):
        self.options, self.tree_hash, self.chosen = options, tree_hash, chosen
        self.times, self.reached = times, reached
        self.log = WORK / "results.jsonl"
        self.records = read_log(self.log)
        self.held = remembered(self.records, tree_hash, options.quick)
        self.excused, self.classes = harmless(), harmless_classes()
        self.results, self.copies, self.free = [], copies, list(copies)
        self.lock = threading.Lock()
        self.started = time.time()
        self.stopped = False

    def try_change(self, name, index, new):
        text = (ROOT / name).read_text()
        lines = text.split("\n")
        record = {"file": name, "line": index + 1, "before": lines[index], "after": new, "source": sha(ROOT / name),
                  "tree": self.tree_hash}
        reached = self.reached.get(f"{name}:{index + 1}", self.times)
        times = {test: seconds for test, seconds in self.times.items() if test in reached}
        record["reached"] = len(times)
        with self.lock:
            copy = self.free.pop()
            groups = order_tests(name, times, kills_of(self.records), self.options.quick)
        began = time.time()
        record["status"], record["test"] = copy.change(
            name, text, "\n".join(lines[:index] + [new] + lines[index + 1:]), groups, self.times)
        record["seconds"] = round(time.time() - began)
        if record["status"] == "survived" and self.options.quick:
            record["status"] = "undecided"
        with self.lock:
            self.free.append(copy)
            if self.stopped:
                return None
            self.records.append(record)
            with self.log.open("a") as out:
                out.write(json.dumps(record) + "\n")
        return record

    def note(self, record):
        self.results.append(record)
        tests = f" by {record['reached']} tests" if record["status"] == "survived" else ""
        print(f"{len(self.results):4}/{len(self.chosen)} {record['status']}{tests} {record['test']} {show(record)}",
              flush=True)

    def one(self, change):
        name, index, new = change
        before = (ROOT / name).read_text().split("\n")[index]
        record = self.held.get((name, index + 1, new))
        if is_harmless(name, before.strip(), new.strip(), self.excused, self.classes):
            record = {"file": name, "line": index + 1, "before": before, "after": new, "status": "harmless", "test": ""}
        if not record:
            if self.stopped or self.options.seconds and time.time() - self.started > self.options.seconds:
                return
            record = self.try_change(*change)
        if record:
            with self.lock:
                self.note(record)

    def stop(self):
        """Ends the changes that are being tried. Such changes do not count."""
        self.stopped = True
        for copy in self.copies:
            copy.kill()

    def all(self):
        with concurrent.futures.ThreadPoolExecutor(self.options.workers) as pool:
            try:
                for done in [pool.submit(self.one, change) for change in self.chosen]:
                    done.result()
            except BaseException:
                self.stop()
                raise
        if len(self.results) < len(self.chosen):
            print(f"stopped after {self.options.seconds} s; {len(self.chosen) - len(self.results)} changes are left")
        return self.results


def summarize(results):
    counts = {s: sum(r["status"] == s for r in results)
              for s in ("found", "survived", "undecided", "harmless", "same code", "does not compile")}
    left = [r for r in results if r["status"] in ("survived", "undecided")]
    print("\nsurvivors:" if left else "\nno survivors")
    for r in left:
        print(f"  {show(r)}")
    asked = counts["found"] + len(left)
    share = counts["found"] / asked if asked else 1
    print(f"found {counts['found']} of {asked} ({100 * share:.0f}%, wanted {100 * WANTED:.0f}%); harmless "
          f"{counts['harmless']}, same code {counts['same code']}, did not compile {counts['does not compile']}")
    return share >= WANTED


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=0, help="no change is begun after so many; 0: no limit")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of all workers together")
    parser.add_argument("--workers", type=int, default=2, help="changes that are tried at a time")
    parser.add_argument("--limit", type=int, default=60, help="in seconds; tests that take longer do not run")
    parser.add_argument("--quick", action="store_true", help=f"only the file's own tests, tests of the area of at most "
                        f"{QUICK_NEAR} s and other tests of at most {QUICK} s; the next call without --quick continues with the changes that are left")
    parser.add_argument("--at", action="append", metavar="FILE:LINE", help="all changes of this line instead")
    parser.add_argument("--flags", default=FLAGS, help="for CMake")
    parser.add_argument("--kernels", metavar="BUILD_FOLDER",
                        help="has the compiled CUDA kernels of this tree, so that nvcc is not needed")
    options = parser.parse_args()
    # After SIGTERM the program must end its child processes and undo the changes of the copies.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    WORK.mkdir(exist_ok=True)
    tree_hash = hash_of_tree()
    copies = [Copy(options, number) for number in range(options.workers)]
    run = Run(options, copies, tree_hash, *baseline(options, copies, tree_hash))
    sys.exit(0 if summarize(run.all()) else 1)


if __name__ == "__main__":
    main()
