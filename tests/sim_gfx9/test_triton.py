"""Runs every Triton kernel of cases.py on the simulator and compares its result with NumPy's.
usage: test_triton.py ARCH FOLDER [NAME...]

$BSMM_SIM_SEED seeds the order in which the simulator runs waves."""
import pathlib
import sys

import cases
import compile as compiler
import hip
import triton_run

if __name__ == "__main__":
    arch, folder, only = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    failed = compiler.compile_all(arch, folder)
    triton_run.main(hip.Device(arch), failed, cases.all_cases(arch), folder, only)
