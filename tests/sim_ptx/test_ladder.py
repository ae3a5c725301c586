"""Checks the order of the ladder (examples/blackwell), i.e. of seven programs that compute the same block-scaled product. In the
time model of a B200, each program must be at least as fast as the one before, for each pair of formats. Steps 1 to 4 load one k
block at a time, and therefore mostly wait for TMA. Their times may differ by TOLERANCE the wrong way, e.g. because scales that
TMA loads take time of an SM's path to L2. usage: test_ladder.py FOLDER, the folder of the programs and their PTX"""
import re
import subprocess
import sys
from pathlib import Path

TOLERANCE = 0.02
SIZE = ["2048", "2304", "4096"]
LINE = re.compile(r"^(\S+ x \S+), .*\n +model: .*? us, (\d+) TFLOP/s", re.MULTILINE)


def rates(program):
    """Returns the TFLOP/s of a program for each pair of formats."""
    text = subprocess.run([program, f"{program}.ptx", *SIZE], check=True, capture_output=True, text=True).stdout
    found = {formats: int(rate) for formats, rate in LINE.findall(text)}
    if len(found) != 4:
        sys.exit(f"{program.name} does not print the times of four pairs of formats: {text}")
    return found


def main():
    programs = sorted(p.with_suffix("") for p in Path(sys.argv[1]).glob("0*.ptx"))
    steps = [rates(p) for p in programs]
    slower = 0
    for formats in steps[0]:
        print(f"{formats:<16}", *(f"{step[formats]:6}" for step in steps))
        for n in range(1, len(steps)):
            if steps[n][formats] < (1 - TOLERANCE) * steps[n - 1][formats]:
                print(f"{formats}: {programs[n].name} is slower than {programs[n - 1].name}")
                slower += 1
    sys.exit(slower > 0 or len(programs) != 7)


main()
