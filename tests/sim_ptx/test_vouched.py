"""Checks two lists of opcodes of the simulator of PTX: those that kernels of other compilers test, and the others
(../sim_vouched.py). sim/ptx/vouched.def lists the opcodes that kernels of other compilers, written for the tests
and compared with NumPy, execute."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import sim_vouched

# OUTSIDE maps each test of kernels that Triton, Gluon or CuTe DSL compiles to its architectures.
OUTSIDE = {"test_triton": ["sm_80", "sm_90a", "sm_100a", "sm_120a"], "test_tma": ["sm_90a", "sm_100a"], "test_gluon": ["sm_100a"],
           "test_cute": ["sm_90a", "sm_100a", "sm_120a"]}
HOW = "`tests/sim_ptx/test_vouched.py --write all .cache/sim/kernels/all`"
HEAD = f"""/* Lists the opcodes of PTX that the tests of kernels in Triton, Gluon and CuTe DSL execute
 * (common/fidelity.h). {HOW} makes this file.
 * clang-format off */
"""
NOTE = f"""# Instructions of PTX that only bsmm's own tests execute

The tables of the simulator of PTX have {{rows}} rows. No test of a kernel in Triton, Gluon or CuTe DSL executes an opcode of the
{{ours}} rows below, so that only bsmm's own tests vouch for them. {HOW}
makes this list. [SIMULATOR](../SIMULATOR.md) describes the tests.

"""


def matches(pattern, tokens):
    """Returns true if the tokens of an opcode match those of a table row. A token in braces is
    optional."""
    if not pattern:
        return not tokens
    names = pattern[0].strip("{}").split("|")
    taken = tokens and tokens[0] in names and matches(pattern[1:], tokens[1:])
    return bool(taken or (pattern[0][0] == "{" and matches(pattern[1:], tokens)))


def rows_without(opcodes):
    """Returns the table rows that no executed opcode matches, and the number of all rows. Rows with
    the same pattern count once."""
    all_rows, seen = sim_vouched.rows(), set()
    by_base = {}
    for row in all_rows:
        for base in row.split(".")[0].split("|"):
            by_base.setdefault(base, []).append(row)
    for opcode in opcodes:
        tokens = opcode.split(".")
        seen.add(next((r for r in by_base.get(tokens[0], []) if matches(r.split("."), tokens)), None))
    return [row for row in all_rows if row not in seen], len(all_rows)


def shortened(row):
    """Returns the pattern of a table row, cut to four alternatives of each token."""
    tokens = [token.rstrip("|").split("|") for token in row.split(".")]
    return ".".join("|".join(t if len(t) < 9 else [*t[:2], "...", *t[-1:]]) for t in tokens)


def note(opcodes):
    ours, count = rows_without(opcodes)
    return NOTE.format(rows=count, ours=len(ours)) + "```text\n" + "".join(f"{shortened(row)}\n" for row in ours) + "```\n"


if __name__ == "__main__":
    sim_vouched.main(OUTSIDE, "sim/ptx/vouched.def", HEAD, "docs/notes/ptx-ours.md", note)
