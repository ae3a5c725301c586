"""Checks the two lists of who vouches for the opcodes of the simulator of PTX. sim/ptx/vouched.def lists the opcodes
that tests of kernels of other compilers, written for the tests and compared with NumPy, execute. docs/notes/ptx-ours.md
lists the rows of the simulator's tables that none of these opcodes has. The tests leave the opcodes that they execute
in FOLDER's siblings (run_sim.sh).
usage (SIM_LIBRARY names the simulator):
       test_vouched.py all FOLDER           fails if a list claims what the tests did not show
       test_vouched.py --write all FOLDER   makes the lists anew"""
import ctypes
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
VOUCHED, OURS = ROOT / "sim/ptx/vouched.def", ROOT / "docs/notes/ptx-ours.md"
# The tests of kernels that Triton, Gluon and CuTe DSL compile, and their architectures.
OUTSIDE = {"test_triton": ["sm_80", "sm_90a", "sm_100a", "sm_120a"], "test_tma": ["sm_90a", "sm_100a"], "test_gluon": ["sm_100a"],
           "test_cute": ["sm_90a", "sm_100a", "sm_120a"]}
HOW = "`tests/sim_ptx/test_vouched.py --write all .cache/sim/kernels/all`"
HEAD = f"""/* Lists the opcodes of PTX that the tests of kernels in Triton, Gluon and CuTe DSL execute
 * (fidelity.h). {HOW} makes this file.
 * clang-format off */
"""
NOTE = f"""# Instructions of PTX that only bsmm's own tests execute

The tables of the simulator of PTX have {{rows}} rows. No test of a kernel in Triton, Gluon or CuTe DSL executes an opcode of the
{{ours}} rows below, so that only bsmm's own tests vouch for them. {HOW}
makes this list. [SIMULATOR](../SIMULATOR.md) describes the tests.

"""


def executed(folder):
    """Returns the opcodes that the tests executed, and the tests that left nothing."""
    found, missing = set(), []
    for test, archs in OUTSIDE.items():
        for arch in archs:
            path = folder / arch / f"{test}.fidelity"
            if path.exists():
                found |= {line.split()[1] for line in path.read_text().splitlines()}
            else:
                missing.append(f"{test} {arch}")
    return found, missing


def matches(pattern, tokens):
    """Returns true if an opcode's tokens match those of a row. A token in braces is optional."""
    if not pattern:
        return not tokens
    names = pattern[0].strip("{}").split("|")
    taken = tokens and tokens[0] in names and matches(pattern[1:], tokens[1:])
    return bool(taken or (pattern[0][0] == "{" and matches(pattern[1:], tokens)))


def rows():
    library = ctypes.CDLL(os.environ["SIM_LIBRARY"])
    library.bsmm_sim_row.restype = ctypes.c_char_p
    out = []
    while row := library.bsmm_sim_row(len(out)):
        out.append(row.decode())
    return out


def rows_without(opcodes):
    """Returns the rows that no opcode has, and the number of all rows. Rows of the same pattern count once."""
    all_rows, seen = list(dict.fromkeys(rows())), set()
    by_base = {}
    for row in all_rows:
        for base in row.split(".")[0].split("|"):
            by_base.setdefault(base, []).append(row)
    for opcode in opcodes:
        tokens = opcode.split(".")
        seen.add(next((r for r in by_base.get(tokens[0], []) if matches(r.split("."), tokens)), None))
    return [row for row in all_rows if row not in seen], len(all_rows)


def shortened(row):
    """Returns a row's pattern with at most four alternatives of each token."""
    tokens = [token.rstrip("|").split("|") for token in row.split(".")]
    return ".".join("|".join(t if len(t) < 9 else [*t[:2], "...", *t[-1:]]) for t in tokens)


def note(opcodes):
    ours, count = rows_without(opcodes)
    return NOTE.format(rows=count, ours=len(ours)) + "```text\n" + "".join(f"{shortened(row)}\n" for row in ours) + "```\n"


def main():
    found, missing = executed(pathlib.Path(sys.argv[-1]).parent)
    if missing:
        print(f"skipped: these tests have not succeeded before: {', '.join(missing)}")
        sys.exit(77)
    if sys.argv[1] == "--write":
        VOUCHED.write_text(HEAD + "".join(f'VOUCHED("{opcode}")\n' for opcode in sorted(found)))
        OURS.write_text(note(found))
    listed = [line.split('"')[1] for line in VOUCHED.read_text().splitlines() if line.startswith("VOUCHED")]
    failed = [f"{opcode}: no test of other compilers' kernels executes it" for opcode in listed if opcode not in found]
    if listed != sorted(set(listed)):
        failed.append("the list is not sorted")
    if OURS.read_text() != note(listed):
        failed.append(f"{OURS.name} does not list the rows that no opcode of {VOUCHED.name} has")
    print("".join(f"{line}\n" for line in failed), end="")
    print(f"{len(listed)} opcodes are listed, {len(found)} were executed; {len(failed)} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
