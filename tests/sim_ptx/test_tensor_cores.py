"""Compares the sums of the simulator's matrix instructions bit for bit with those of an H100.
usage: test_tensor_cores.py ARCH FOLDER"""
import pathlib
import sys

import driver
import tensor_cores

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "data" / "h100_tensor_cores.txt"


def main():
    expected = GOLDEN.read_text().splitlines()
    got = list(tensor_cores.lines(driver.Device(sys.argv[1])))
    wrong = [f"{a}, expected {b}" for a, b in zip(got, expected) if a != b]
    print(*wrong[:20], sep="\n")
    print(f"{len(got)} of {len(expected)} results, {len(wrong)} different")
    sys.exit(bool(wrong or len(got) != len(expected) or not got))


if __name__ == "__main__":
    main()
