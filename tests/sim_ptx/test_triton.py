"""Runs the Triton kernels of tests/sim_gfx9/cases.py and of cases_arithmetic.py on the simulator of PTX and compares their results with
NumPy's. usage: test_triton.py ARCH FOLDER [NAME...]"""
import pathlib
import sys

import compile_ptx
import driver
import triton_run

# EARLY gives the number of kernels that read results of tcgen05.ld before the wait.
EARLY = {"sm_100a": 3}

if __name__ == "__main__":
    arch, folder, only = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    failed = compile_ptx.compile_all(arch, folder)
    device = driver.TritonDevice(arch)
    try:
        triton_run.main(device, failed, compile_ptx.cases_for(arch), folder, only)
    finally:
        if not only and device.early != EARLY.get(arch, 0):
            sys.exit(f"{device.early} kernels were reported to read results of tcgen05.ld before the wait")
