"""Checks the order of the ladder (examples/blackwell), i.e. of seven programs that compute the same block-scaled product. In the
time model of a B200, each program must be at least as fast as the one before, for each pair of formats and each of SIZES. usage:
test_ladder.py FOLDER, the folder of the programs and their PTX"""
import re
import subprocess
import sys
from pathlib import Path

# SIZES lists M, N and K. With K = 2048, the row-major scales of a tile fit into L1, so that step 1 is faster than with K = 4096.
SIZES = [("2048", "2304", "4096"), ("2048", "2304", "2048")]
LINE = re.compile(r"^(\S+ x \S+), .*\n +model: .*? us, (\d+) TFLOP/s", re.MULTILINE)


def rates(program, size):
    """Returns the TFLOP/s of a program for each pair of formats."""
    text = subprocess.run([program, f"{program}.ptx", *size], check=True, capture_output=True, text=True).stdout
    found = {formats: int(rate) for formats, rate in LINE.findall(text)}
    if len(found) != 4:
        sys.exit(f"{program.name} does not print the times of four pairs of formats: {text}")
    return found


def main():
    programs = sorted(p.with_suffix("") for p in Path(sys.argv[1]).glob("0*.ptx"))
    slower = 0
    for size in SIZES:
        steps = [rates(p, size) for p in programs]
        for formats in steps[0]:
            print(f"K = {size[2]}: {formats:<16}", *(f"{step[formats]:6}" for step in steps))
            for n in range(1, len(steps)):
                if steps[n][formats] < steps[n - 1][formats]:
                    print(f"{formats}: {programs[n].name} is slower than {programs[n - 1].name}")
                    slower += 1
    sys.exit(slower > 0 or len(programs) != 7)


main()
