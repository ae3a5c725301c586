#!/usr/bin/env python3
"""Mutation testing: changes one line of the library or the command at a time and checks whether a
test fails.

It works in copies of the tree in build-mutate, one for each worker. For each change a worker builds
the library and the command, then builds and runs the tests of the changed folder's area, then all
other tests, and stops at the first test that fails. A test is skipped if the change left its
program as it was. Tests that take longer than --limit seconds on the unchanged sources do not run.

Only host code is changed. The GPU kernels, and the emulation of the NVIDIA kernels for the CPU, are
built once, before the first change. If a changed header is shared with the GPU kernels, only the
host's use of it is tested.

A change that no test finds is called a survivor. A survivor shows a gap in the tests, or it has no
effect that a test could notice. Changes without effect belong in tools/mutate-harmless.tsv with
the reason. The exit status is 1 if tests found less than 95% of the changes that are not listed
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
import hashlib
import json
import os
import random
import re
import resource
import shlex
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as tree
from pathlib import Path

import mutations
from mutate_tests import QUICK, QUICK_NEAR, UNRELATED, kills_of, order_tests

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build-mutate"
HARMLESS = ROOT / "tools" / "mutate-harmless.tsv"
WANTED = 0.95
GIB = 1 << 30
FLAGS = "-DBSMM_WERROR=ON -DCMAKE_EXE_LINKER_FLAGS=-fsanitize=leak"
LIBRARY = ("libbsmm.a", "bsmm")  # These files are compared with the unchanged ones.

def sha(*paths):
    digest = hashlib.sha256()
    for path in paths:
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()[:16]


def limit():
    """Limits the files and the memory of a changed program."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 * GIB, 4 * GIB))
    resource.setrlimit(resource.RLIMIT_DATA, (6 * GIB, 6 * GIB))


def tracked():
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           capture_output=True, check=True).stdout.decode().split("\0")
    return sorted(name for name in names if name and (ROOT / name).is_file())


def hash_of_tree():
    return hashlib.sha256(b"".join(n.encode() + (ROOT / n).read_bytes() for n in tracked())).hexdigest()[:16]


class Copy:
    """Represents a copy of the tree with its own build folder, in which one worker tries
    changes."""

    def __init__(self, options, number):
        self.options = options
        self.root = WORK / f"copy{number}"
        self.build_folder = self.root / "build"
        self.jobs = max(1, options.jobs // options.workers)
        # `tests` maps each test to the files that it runs, relative to the build folder.
        self.tests = {}
        # `unchanged` maps each of these files to its hash on the unchanged sources.
        self.unchanged = {}
        self.process = None

    # The methods from here on handle the files of the copy of the source tree.

    def update(self):
        """Updates the files that differ, so that the build stays incremental."""
        names = set(tracked())
        for name in names:
            source, target = ROOT / name, self.root / name
            if not target.is_file() or target.read_bytes() != source.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read_bytes())
                target.chmod(source.stat().st_mode)
        for path in list(self.root.rglob("*")):
            relative = path.relative_to(self.root)
            if path.is_file() and relative.parts[0] not in ("build", ".cache", ".git", "home") \
                    and str(relative) not in names:
                path.unlink()

    # The methods from here on run commands in the copy.

    def run(self, command, seconds, quiet=True):
        """Runs a command and returns its exit status. After `seconds` seconds it kills the command
        with all its child processes and returns None."""
        home = self.root / "home"
        home.mkdir(exist_ok=True)
        sink = subprocess.DEVNULL if quiet else None
        process = subprocess.Popen(command, cwd=self.root, stdout=sink, stderr=sink, stdin=subprocess.DEVNULL,
                                   env={**os.environ, "HOME": str(home)}, preexec_fn=limit, start_new_session=True)
        self.process = process
        try:
            return process.wait(timeout=seconds or None)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.kill()
            process.wait()

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (AttributeError, ProcessLookupError):
            pass

    def build(self, *targets, jobs=0, seconds=1800):
        return self.run(["ninja", "-C", str(self.build_folder), "-j", str(jobs or self.jobs), *targets], seconds) == 0

    def ctest(self, report, names, seconds, *more):
        """Runs tests and returns their results from ctest's report, or None if they took too long."""
        report.unlink(missing_ok=True)
        chosen = "|".join(re.escape(name) for name in names)
        self.run(["ctest", "--test-dir", str(self.build_folder), "-R", f"^({chosen})$", "--output-junit", str(report),
                  *more], seconds)
        return list(tree.parse(report).getroot().iter("testcase")) if report.exists() else None

    def run_tests(self, names, seconds):
        """Returns the name of a test that failed, or an empty string."""
        cases = self.ctest(self.root / "home" / "report.xml", names, seconds, "-j", str(self.jobs),
                           "--stop-on-failure")
        if cases is None:
            return "a timeout"
        return next((c.get("name") for c in cases if c.find("failure") is not None), "")

    # The methods from here on build the unchanged sources.

    def configure(self):
        flags = shlex.split(self.options.flags)
        if self.options.kernels:
            flags.append(f"-DBSMM_NVCC={self.kernel_copier()}")
        if self.run(["cmake", "--preset", "release", "-S", str(self.root), "-B", str(self.build_folder), *flags], 600,
                    quiet=False) != 0:
            sys.exit("the copy cannot be configured")
        # Removes the lists of headers from the rules of GPU kernels. Without these lists, the
        # kernels are not built again when a header changes.
        rules = self.build_folder / "build.ninja"
        rules.write_text(re.sub(r"^  depfile = \S*CMakeFiles/d/.*\n", "", rules.read_text(), flags=re.M))

    def kernel_copier(self):
        """Writes a script that stands for nvcc and takes each image from the folder --kernels."""
        script = self.root / "home" / "nvcc"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f"""#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in -o) made=$2 ;; -MF) list=$2 ;; esac
    shift
done
name=${{made#{self.build_folder}/}}
[ -z "$list" ] || : >"$list"
exec cp "{Path(self.options.kernels).resolve()}/${{name%.full}}" "$made"
""")
        script.chmod(0o755)
        return script

    def read_tests(self):
        """Reads which programs each test runs. A script may run any program outside tests/."""
        listed = json.loads(subprocess.run(["ctest", "--test-dir", str(self.build_folder), "--show-only=json-v1"],
                                           capture_output=True, check=True).stdout)
        tests = [t for t in listed["tests"] if "command" in t and not UNRELATED.match(t["name"])]
        tools = [p.name for p in sorted(self.build_folder.iterdir())
                 if p.is_file() and os.access(p, os.X_OK) and p.suffix == ""]
        emulator = [str(p.relative_to(self.build_folder))
                    for p in self.build_folder.glob("tests/emulated_cuda/libcuda.so.1")]
        for test in tests:
            program = Path(test["command"][0])
            inside = program.is_relative_to(self.build_folder)
            own = [str(program.relative_to(self.build_folder))] if inside else tools
            self.tests[test["name"]] = own + (emulator if test["name"].startswith("emulated_") else [])
        files = {*LIBRARY, *(name for names in self.tests.values() for name in names)}
        self.unchanged = {name: sha(self.build_folder / name) for name in files}

    def prepare(self):
        self.update()
        self.configure()
        if not self.build(jobs=self.options.jobs, seconds=0):
            sys.exit(f"the unchanged copy does not build: ninja -C {self.build_folder}")
        self.read_tests()

    def times_of_tests(self):
        """Returns the seconds that each test takes on the unchanged sources. Tests that fail there
        are left out."""
        times = {}
        for case in self.ctest(WORK / "baseline.xml", list(self.tests), 3600, "-j", str(self.options.jobs)):
            if case.get("status") == "run" and case.find("failure") is None:
                times[case.get("name")] = float(case.get("time"))
            else:
                print(f"left out, since it does not pass unchanged: {case.get('name')}")
        return times

    # The methods from here on try one change.

    def differs(self, name):
        return sha(self.build_folder / name) != self.unchanged[name]

    def try_one(self, groups, times):
        """Tries the change that was written to the copy. Returns (outcome, name of the test that
        found it)."""
        if not self.build(*LIBRARY):
            return "does not compile", ""
        if not any(self.differs(name) for name in LIBRARY):
            return "same code", ""
        for group in groups:
            if not self.build(*{name for test in group for name in self.tests[test]}):
                return "does not compile", ""
            chosen = [t for t in group if any(self.differs(name) for name in self.tests[t])]
            failed = chosen and self.run_tests(chosen, 20 + 10 * sum(times[t] for t in chosen))
            if failed:
                return "found", failed
        return "survived", ""

    def change(self, name, text, changed, groups, times):
        try:
            (self.root / name).write_text(changed)
            return self.try_one(groups, times)
        finally:
            (self.root / name).write_text(text)


# The functions from here on build the unchanged sources.


def baseline(options, copies, tree_hash):
    """Builds the copies. Returns the seconds that each test takes."""
    store = WORK / "baseline.json"
    known = json.loads(store.read_text()) if store.exists() else {}
    print("building the copies", flush=True)
    for copy in copies:
        copy.prepare()
    asked = {"tree": tree_hash, "flags": options.flags}
    if {key: known.get(key) for key in asked} != asked:
        print("running the tests once", flush=True)
        known = {**asked, "times": copies[0].times_of_tests()}
        store.write_text(json.dumps(known))
    long = {name: seconds for name, seconds in known["times"].items() if seconds > options.limit}
    for name, seconds in sorted(long.items()):
        print(f"left out, since it takes {seconds:.0f} s: {name}")
    return {name: seconds for name, seconds in known["times"].items() if name not in long and name in copies[0].tests}


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

    def __init__(self, options, copies, times, tree_hash, chosen):
        self.options, self.times, self.tree_hash, self.chosen = options, times, tree_hash, chosen
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
        with self.lock:
            copy = self.free.pop()
            groups = order_tests(name, self.times, kills_of(self.records), self.options.quick)
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
        key = (record["file"], record["before"].strip(), record["after"].strip())
        if record["status"] in ("survived", "undecided") and is_harmless(*key, self.excused, self.classes):
            record = {**record, "status": "harmless"}
        self.results.append(record)
        print(f"{len(self.results):4}/{len(self.chosen)} {record['status']} {record['test']} {show(record)}",
              flush=True)

    def one(self, change):
        record = self.held.get((change[0], change[1] + 1, change[2]))
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
    times = baseline(options, copies, tree_hash)
    run = Run(options, copies, times, tree_hash, choose(options, sources(copies[0])))
    sys.exit(0 if summarize(run.all()) else 1)


if __name__ == "__main__":
    main()
