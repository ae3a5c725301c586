"""Runs the Triton kernels of tests/sim_gfx9/cases.py and of cases_arithmetic.py on the simulator of PTX and compares their results with
NumPy's. usage: test_triton.py ARCH FOLDER [NAME...]"""
import pathlib
import sys

import compile_ptx
import driver
import triton_run

if __name__ == "__main__":
    arch, folder, only = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    failed = compile_ptx.compile_all(arch, folder)
    triton_run.main(driver.Device(arch), failed, compile_ptx.cases_for(arch), folder, only)
