"""Checks two lists of opcodes of the simulator of AMD GPUs: those that code or documents of other
projects test, and the others (../sim_vouched.py)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import sim_vouched

# These tests compare the simulator with code or documents of other projects. test_triton and test_c
# compare results of kernels with NumPy, test_pseudocode compares instructions with AMD's
# pseudocode, and test_mfma compares register layouts with AMD's.
OUTSIDE = {test: ["gfx942", "gfx950"] for test in ("test_triton", "test_c", "test_pseudocode", "test_mfma")}
SMALL = ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1"]
HOW = "`tests/sim_gfx9/test_vouched.py --write all .cache/sim/kernels/all`"
HEAD = f"""/* Lists the opcodes of CDNA that code or documents of other projects vouch for in tests
 * (common/fidelity.h). {HOW} makes this file.
 * clang-format off */
"""
NOTE = f"""# Instructions of CDNA that only bsmm's own tests execute

The tables of the simulator of AMD GPUs have {{rows}} opcodes; an opcode f8f6f4 counts for each pair of element types. Only
bsmm's own tests, if any, vouch for the {{ours}} opcodes below: no test with Triton's kernels, kernels in plain C, AMD's
pseudocode or AMD's register layouts covers them. The forms SDWA, DPP and lds of an opcode count as the opcode itself here.
{HOW} makes this list. [SIMULATOR](../SIMULATOR.md)
describes the tests.

"""


def names():
    """Returns the opcodes of the tables. An f8f6f4 opcode has one name for each pair of element
    types."""
    return [name for row in sim_vouched.rows() for name in ([f"{row}[{a},{b}]" for a in SMALL for b in SMALL] if "f8f6f4" in row else [row])]


def note(opcodes):
    plain = {opcode.removesuffix("_sdwa").removesuffix("_dpp").removesuffix("_lds") for opcode in opcodes}
    rows = names()
    ours = [row for row in rows if row not in plain]
    return NOTE.format(rows=len(rows), ours=len(ours)) + "```text\n" + "".join(f"{row}\n" for row in ours) + "```\n"


if __name__ == "__main__":
    sim_vouched.main(OUTSIDE, "sim/gfx9/vouched.def", HEAD, "docs/notes/gfx9-ours.md", note)
