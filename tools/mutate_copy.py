"""Builds a copy of the source tree for tools/mutate.py, and tries changes in it."""
import concurrent.futures
import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as tree
from pathlib import Path

from mutate_reach import REPORTER, REPORTER_TEXT, mark
from mutate_tests import UNRELATED

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build-mutate"
GIB = 1 << 30
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
        self.processes = set()

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
        for top in self.root.iterdir():
            if top.name in ("build", ".cache", ".git", "home"):
                continue
            for path in [top, *top.rglob("*")]:
                if path.is_file() and str(path.relative_to(self.root)) not in names:
                    path.unlink()

    # The methods from here on run commands in the copy.

    def run(self, command, seconds, quiet=True, **environment):
        """Runs a command and returns its exit status. After `seconds` seconds it kills the command
        with all its child processes and returns None."""
        home = self.root / "home"
        home.mkdir(exist_ok=True)
        sink = subprocess.DEVNULL if quiet else None
        process = subprocess.Popen(command, cwd=self.root, stdout=sink, stderr=sink, stdin=subprocess.DEVNULL,
                                   env={**os.environ, "HOME": str(home), **environment}, preexec_fn=limit,
                                   start_new_session=True)
        self.processes.add(process)
        try:
            return process.wait(timeout=seconds or None)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.kill([process])
            process.wait()
            self.processes.discard(process)

    def kill(self, processes=None):
        """Kills these processes, or all that run, with their child processes."""
        for process in processes or list(self.processes):
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def build(self, *targets, jobs=0, seconds=1800):
        return self.run(["ninja", "-C", str(self.build_folder), "-j", str(jobs or self.jobs), *targets], seconds) == 0

    def ctest(self, report, names, seconds, *more, **environment):
        """Runs tests and returns their results from ctest's report, or None if they took too long."""
        report.unlink(missing_ok=True)
        chosen = "|".join(re.escape(name) for name in names)
        self.run(["ctest", "--test-dir", str(self.build_folder), "-R", f"^({chosen})$", "--output-junit", str(report),
                  *more], seconds, **environment)
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

    def measure(self, changes):
        """Runs all tests once, with the functions of the changes marked. Returns ({test: seconds},
        {line of a change: tests that execute its function}). Lines whose function is not known are
        left out, and so are tests that fail."""
        read = lambda name: (self.root / name).read_text()
        marked, numbered = mark(changes, read)
        texts = {name: read(name) for name in [*marked, REPORTER]}
        programs = {name for names in self.tests.values() for name in names}
        try:
            for name in texts:
                (self.root / name).write_text(marked.get(name, texts[name]))
            with (self.root / REPORTER).open("a") as file:
                file.write(REPORTER_TEXT)
            if not self.build(*LIBRARY, *programs, jobs=self.options.jobs, seconds=0):
                sys.exit(f"the marked copy does not build: ninja -C {self.build_folder}")
            with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
                try:
                    results = dict(zip(self.tests, pool.map(self.measure_one, self.tests)))
                except BaseException:
                    # Otherwise all tests that have not begun would still run.
                    pool.shutdown(wait=False, cancel_futures=True)
                    self.kill()
                    raise
        finally:
            for name, text in texts.items():
                (self.root / name).write_text(text)
        results = {name: result for name, result in results.items() if result}
        reached = {key: [name for name, (_, found) in results.items() if number in found]
                   for number, key in numbered.items()}
        return {name: seconds for name, (seconds, _) in results.items()}, reached

    def measure_one(self, name):
        """Runs one test. Returns (seconds, numbers of the marked functions that it executes), or None
        if it fails or takes longer than --limit."""
        folder = self.root / "home" / "reached" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        cases = self.ctest(folder / "report.xml", [name], self.options.limit, MUTATE_REACHED=str(folder))
        if not cases or cases[0].get("status") != "run" or cases[0].find("failure") is not None:
            print(f"left out, since it does not pass unchanged within {self.options.limit} s: {name}", flush=True)
            return None
        return float(cases[0].get("time")), {int(p.name) for p in folder.iterdir() if p.name.isdigit()}

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
