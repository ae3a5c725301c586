"""Checks the two lists that say which tests vouch for the opcodes of a simulator. One list, vouched.def in the
simulator's folder, has the opcodes that tests with code or documents of other projects execute. The other list,
in docs/notes, has the rows of the simulator's tables that none of these opcodes has. run_sim.sh keeps the
opcodes that a test has executed in FOLDER/ARCH/TEST.fidelity. A test that vouches for only some of these opcodes
writes the names of those opcodes to FOLDER/ARCH/TEST.agreed. tests/sim_*/test_vouched.py call main().
SIM_LIBRARY names the simulator: test_vouched.py all FOLDER/all fails if a list claims what the tests did not
show test_vouched.py --write all FOLDER/all makes the lists anew"""
import ctypes
import os
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]


def executed(folder, tests):
    """Returns the opcodes that the tests with code or documents of other projects execute, and the
    names of the tests that have not written a list of opcodes."""
    found, missing = set(), []
    for test, archs in tests.items():
        for arch in archs:
            path, agreed = (folder / arch / f"{test}.{ending}" for ending in ("fidelity", "agreed"))
            if path.exists():
                opcodes = {line.split()[1] for line in path.read_text().splitlines()}
                found |= opcodes & set(agreed.read_text().split()) if agreed.exists() else opcodes
            else:
                missing.append(f"{test} {arch}")
    return found, missing


def rows():
    library = ctypes.CDLL(os.environ["SIM_LIBRARY"])
    library.bsmm_sim_row.restype = ctypes.c_char_p
    out = []
    while row := library.bsmm_sim_row(len(out)):
        out.append(row.decode())
    return list(dict.fromkeys(out))


def listing(opcodes):
    """Returns the entries of a list, with several of them on each line."""
    entries = " ".join(f'VOUCHED("{opcode}")' for opcode in sorted(opcodes))
    return textwrap.fill(entries, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def main(tests, vouched, head, ours, note):
    """Compares the two lists with the results of the tests, or writes them. `tests` maps each test
    with code or documents of other projects to its architectures. `vouched` and `ours` are the
    paths of the lists below the root. `head` is the first comment of `vouched`. note(opcodes)
    returns the text of `ours` for the opcodes in `vouched`."""
    vouched, ours = ROOT / vouched, ROOT / ours
    found, missing = executed(pathlib.Path(sys.argv[-1]).parent, tests)
    if missing:
        print(f"skipped: these tests have not succeeded before: {', '.join(missing)}")
        sys.exit(77)
    if sys.argv[1] == "--write":
        vouched.write_text(head + listing(found))
        ours.write_text(note(found))
    listed = re.findall(r'VOUCHED\("(.+?)"\)', vouched.read_text())
    failed = [f"{opcode}: no test of {vouched.parent.name} that vouches for opcodes executes it" for opcode in listed if opcode not in found]
    failed += [f"{opcode}: a test vouches for it, and {vouched.name} does not list it" for opcode in sorted(found) if opcode not in listed]
    if listed != sorted(set(listed)):
        failed.append("the list is not sorted")
    if ours.read_text() != note(listed):
        failed.append(f"{ours.name} does not list the rows that no opcode of {vouched.name} has")
    print("".join(f"{line}\n" for line in failed), end="")
    print(f"{len(listed)} opcodes are listed, {len(found)} were executed; {len(failed)} failed")
    sys.exit(bool(failed))
