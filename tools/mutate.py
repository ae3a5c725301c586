#!/usr/bin/env python3
"""Mutation testing: changes one line of the library or the command at a time and checks whether a
test fails.

It works in a copy of the tree in build-mutate. For each change it builds the library and the
command, then builds and runs the tests of the changed folder's area, then all other tests. A
change that no test finds is called a survivor. A survivor shows a gap in the tests, or it has no
effect that a test could notice. Changes without effect belong in tools/mutate-harmless.tsv with
the reason. The exit status is 1 if tests found less than 95% of the changes that are not listed
there.

The same seed gives the same changes of the same sources. A run that was stopped can be
continued: a change that a test found is not tried again while its file is the same, and
survivors are tried again after any change of the tree.

  usage: mutate.py [--mutants 100] [--seed 1] [--seconds 0] [--at FILE:LINE]... [--flags CMAKE_FLAGS]"""
import argparse
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
import time
import xml.etree.ElementTree as tree
from pathlib import Path

import mutations

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build-mutate"
COPY = WORK / "tree"
BUILD = COPY / "build"
HARMLESS = ROOT / "tools" / "mutate-harmless.tsv"
WANTED = 0.95
SLOW = 15  # in seconds; tests that take longer run last
LIBRARY = ("bsmm_static", "bsmm_cli")  # targets, whose files PRODUCTS are compared with the unchanged ones
PRODUCTS = ("libbsmm.a", "bsmm")

# Maps each folder to the beginnings of the names of its tests. These tests run first, together with
# tests that have found changes in the same folder.
AREAS = {
    "src/base/": ("test_cpu$", "test_device", "test_tables", "test_plan_buffers"),
    "src/format/": ("test_tables", "test_golden", "test_ranges", "test_exact"),
    "src/core/": ("test_describe", "test_groups", "test_matmul", "test_any_rows", "test_plan", "test_registry"),
    "src/ref/": ("test_matmul", "test_epilogue", "test_exact"),
    "src/recipe/": ("test_recipes", "test_store"),
    "src/quantize/": ("test_quantize", "test_recipes", "test_dequantize", "test_convert", "test_store"),
    "src/cpu/": ("test_cpu_", "test_batch", "test_numerics", "test_pack_b", "test_matmul"),
    "src/gpu/": ("test_gpu", "test_cuda"),
    "src/cuda/": ("test_cuda", "test_gpu"),
    "src/sol/": ("test_sol",),
    "src/io/": ("test_io", "test_families", "test_weight"),
    "cli/": ("test_cli", "test_bench", "test_shrink", "test_main_job"),
}


def sha(*paths):
    digest = hashlib.sha256()
    for path in paths:
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()[:16]


# ---- the copy of the tree ----


def tracked():
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           capture_output=True, check=True).stdout.decode().split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def update_copy():
    """Updates the files in the copy that differ, so that the copy's build stays incremental.
    Returns a hash of the tree."""
    names = set(tracked())
    for name in names:
        source, target = ROOT / name, COPY / name
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)
    for path in list(COPY.rglob("*")):
        relative = path.relative_to(COPY)
        if path.is_file() and relative.parts[0] not in ("build", ".cache", ".git", "home") and str(relative) not in names:
            path.unlink()
    return hashlib.sha256(b"".join(n.encode() + (ROOT / n).read_bytes() for n in sorted(names))).hexdigest()[:16]


# ---- running commands ----


def limit():
    """Limits the size of files that a changed program can write."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 30, 4 << 30))


def run(command, seconds, quiet=True):
    """Runs a command and returns its exit status. After `seconds` seconds it kills the command with
    all its child processes and returns None."""
    home = COPY / "home"
    home.mkdir(exist_ok=True)
    sink = subprocess.DEVNULL if quiet else None
    process = subprocess.Popen(command, cwd=COPY, stdout=sink, stderr=sink, stdin=subprocess.DEVNULL,
                               env={**os.environ, "HOME": str(home)}, preexec_fn=limit, start_new_session=True)
    try:
        return process.wait(timeout=seconds or None)
    except subprocess.TimeoutExpired:
        return None
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def build(jobs, *targets):
    return run(["ninja", "-C", str(BUILD), "-j", str(jobs), *targets], 1800) == 0


def run_tests(jobs, names, seconds):
    """Returns the names of the tests that failed: [] if none failed, ["a timeout"] if the tests
    took too long."""
    report = WORK / "report.xml"
    report.unlink(missing_ok=True)
    chosen = "|".join(re.escape(name) for name in names)
    status = run(["ctest", "--test-dir", str(BUILD), "-j", str(jobs), "-R", f"^({chosen})$", "--stop-on-failure",
                  "--output-junit", str(report)], seconds)
    if status == 0:
        return []
    if status is None or not report.exists():
        return ["a timeout"]
    return [c.get("name") for c in tree.parse(report).getroot().iter("testcase") if c.find("failure") is not None] \
        or ["ctest"]


# ---- the unchanged build ----


def times_of_tests(jobs):
    """Returns the seconds that each test takes on the unchanged sources. Tests that fail there are
    left out."""
    report = WORK / "baseline.xml"
    report.unlink(missing_ok=True)
    run(["ctest", "--test-dir", str(BUILD), "-j", str(jobs), "--output-junit", str(report)], 3600)
    times = {}
    for case in tree.parse(report).getroot().iter("testcase"):
        if case.get("status") == "run" and case.find("failure") is None:
            times[case.get("name")] = float(case.get("time"))
        else:
            print(f"left out, since it does not pass unchanged: {case.get('name')}")
    return times


def baseline(options, tree_hash):
    store = WORK / "baseline.json"
    known = json.loads(store.read_text()) if store.exists() else {}
    if known.get("flags") != options.flags:
        command = ["cmake", "--preset", "release", "-S", str(COPY), "-B", str(BUILD), *shlex.split(options.flags)]
        if run(command, 600, quiet=False) != 0:
            sys.exit("the copy cannot be configured")
    if known.get("tree") == tree_hash and known.get("flags") == options.flags and build(options.jobs, *LIBRARY):
        return known
    print("building the copy and running its tests once", flush=True)
    if not build(options.jobs):
        sys.exit(f"the unchanged copy does not build: ninja -C {BUILD}")
    known = {"tree": tree_hash, "flags": options.flags, "times": times_of_tests(options.jobs)}
    store.write_text(json.dumps(known))
    return known


def sources():
    """Returns the files in src and cli from which the library and the command are built, according
    to ninja."""
    text = subprocess.run(["ninja", "-C", str(BUILD), "-t", "deps"], capture_output=True, text=True,
                          check=True).stdout
    found, ours = set(), False
    for line in text.splitlines():
        if not line.startswith(" "):
            ours = re.match(r"CMakeFiles/bsmm(_\w+)?\.dir/|CMakeFiles/\w+\.dir/src/", line) is not None
        elif ours:
            path = (BUILD / line.strip()).resolve()
            if path.is_relative_to(COPY) and path.suffix in (".c", ".h", ".def"):
                found.add(str(path.relative_to(COPY)))
    return sorted(f for f in found if f.startswith(("src/", "cli/")) and not f.endswith(".def"))


# ---- changes ----


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


def harmless():
    rows = (line.split("\t") for line in HARMLESS.read_text().splitlines() if line and not line.startswith("#"))
    return {(path, before.strip(), after.strip()): reason for path, before, after, reason in rows}


def order_tests(name, times, kills):
    """Returns groups of tests in the order in which they run: tests of the changed file's area,
    then all other fast tests, then the slow ones."""
    folder = str(Path(name).parent)
    area = next((names for prefix, names in AREAS.items() if name.startswith(prefix)), ())
    near = [t for t in times if any(re.match(p, t) for p in area) and times[t] < SLOW]
    known = [t for t in kills.get(folder, {}) if t in times and times[t] < SLOW]
    near = sorted(set(near) | set(known), key=lambda t: (-kills.get(folder, {}).get(t, 0), times[t]))
    fast = sorted((t for t in times if t not in near and times[t] < SLOW), key=times.get)
    slow = sorted((t for t in times if times[t] >= SLOW), key=times.get)
    return [group for group in (near[:4], near[4:], fast, slow) if group]


def targets_of(tests):
    """Returns the ninja targets that the tests need: the programs of the tests, or an empty list
    for everything."""
    own = [t for t in tests if (COPY / "tests" / "unit" / f"{t}.c").exists()]
    if len(own) == len(tests):
        return own
    scripts = all((COPY / "tests" / "cli" / f"{t}.sh").exists() for t in tests if t not in own)
    return own + ["bsmm_cli"] if scripts else []


def try_one(options, name, base, known, kills):
    """Tries the change that was written to the copy. Returns (outcome, name of the test that found
    it)."""
    if not build(options.jobs, *LIBRARY):
        return "does not compile", ""
    if sha(*(BUILD / p for p in PRODUCTS)) == base:
        return "same code", ""
    for group in order_tests(name, known["times"], kills):
        if not build(options.jobs, *targets_of(group)):
            return "does not compile", ""
        seconds = 120 + 20 * sum(known["times"][t] for t in group)
        failed = run_tests(options.jobs, group, seconds)
        if failed:
            return "found", failed[0]
    return "survived", ""


def show(record):
    after = record["after"].strip() or "(dropped)"
    return f"{record['file']}:{record['line']}\n      {record['before'].strip()}\n   -> {after}"


def remembered(path, tree_hash):
    """Returns the results of earlier runs that are still valid, by (file, line, changed line)."""
    held = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        r = json.loads(line)
        same = (ROOT / r["file"]).exists() and sha(ROOT / r["file"]) == r["source"]
        if same and (r["status"] != "survived" or r["tree"] == tree_hash):
            held[r["file"], r["line"], r["after"]] = r
    return held


def mutate(options, known, tree_hash, chosen):
    results, log = [], WORK / "results.jsonl"
    held, excused, kills = remembered(log, tree_hash), harmless(), {}
    build(options.jobs, *LIBRARY)
    base = sha(*(BUILD / p for p in PRODUCTS))
    started = time.time()
    for number, (name, index, new) in enumerate(chosen, 1):
        text = (ROOT / name).read_text()
        lines = text.split("\n")
        record = held.get((name, index + 1, new))
        if not record:
            if options.seconds and time.time() - started > options.seconds:
                print(f"stopped after {options.seconds} s; {len(chosen) - number + 1} changes are left")
                break
            record = {"file": name, "line": index + 1, "before": lines[index], "after": new,
                      "source": sha(ROOT / name), "tree": tree_hash}
            try:
                (COPY / name).write_text("\n".join(lines[:index] + [new] + lines[index + 1:]))
                record["status"], record["test"] = try_one(options, name, base, known, kills)
            finally:
                (COPY / name).write_text(text)
            with log.open("a") as out:
                out.write(json.dumps(record) + "\n")
        if record["status"] == "found":
            counts = kills.setdefault(str(Path(name).parent), {})
            counts[record["test"]] = counts.get(record["test"], 0) + 1
        if record["status"] == "survived" and (name, lines[index].strip(), new.strip()) in excused:
            record = {**record, "status": "harmless"}
        results.append(record)
        print(f"{number:4}/{len(chosen)} {record['status']} {record['test']} {show(record)}", flush=True)
    return results


def summarize(results):
    counts = {s: sum(r["status"] == s for r in results)
              for s in ("found", "survived", "harmless", "same code", "does not compile")}
    print("\nsurvivors:" if counts["survived"] else "\nno survivors")
    for r in results:
        if r["status"] == "survived":
            print(f"  {show(r)}")
    asked = counts["found"] + counts["survived"]
    share = counts["found"] / asked if asked else 1
    print(f"found {counts['found']} of {asked} ({100 * share:.0f}%, wanted {100 * WANTED:.0f}%); harmless "
          f"{counts['harmless']}, same code {counts['same code']}, did not compile {counts['does not compile']}")
    return share >= WANTED


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=0, help="no change is begun after so many; 0: no limit")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--at", action="append", metavar="FILE:LINE", help="all changes of this line instead")
    parser.add_argument("--flags", default="-DBSMM_CUDA=OFF", help="for CMake")
    options = parser.parse_args()
    # After SIGTERM the program must end its child processes and undo the change of the copy.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    WORK.mkdir(exist_ok=True)
    tree_hash = update_copy()
    known = baseline(options, tree_hash)
    chosen = choose(options, sources())
    sys.exit(0 if summarize(mutate(options, known, tree_hash, chosen)) else 1)


if __name__ == "__main__":
    main()
