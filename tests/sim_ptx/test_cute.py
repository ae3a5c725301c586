"""Runs the kernels of cases_cute.py, which NVIDIA's CuTe DSL compiles, and compares their results with NumPy's.
usage: test_cute.py ARCH FOLDER [NAME...]"""
import ctypes
import pathlib
import re
import sys
import time

import cases_cute
import compile_cute
import driver

SHARED = 200 << 10  # The bytes of dynamic shared memory, which are more than any of the kernels needs.


def run(device, case, ptx):
    """Runs a kernel and returns its result."""
    name, threads = re.search(r"\.entry (\w+)", ptx).group(1), int(re.search(r"\.reqntid (\d+)", ptx).group(1))
    sizes = [int(n) for n in re.findall(r"\.param \.align \d+ \.b8 \w+\[(\d+)\]", ptx.split(")\n")[0])]
    arrays = case.arrays()
    at = [device.upload(array) for array in arrays]
    module = device.load(ptx)
    try:
        args = case.arguments(device, at)
        if [ctypes.sizeof(a) for a in args] != sizes:
            raise driver.Error(f"the arguments of the kernel have {sizes} bytes")
        shared = SHARED if ".extern .shared" in ptx else 0
        device.launch(device.function(module, name, shared), (case.ctas,), (threads,), shared, args, case.ctas)
        return device.download(at[-1], arrays[-1])
    finally:
        device.unload(module)
        for p in at:
            device.free(p)


def main():
    arch, folder, only = sys.argv[1], pathlib.Path(sys.argv[2]) / "cute", sys.argv[3:]
    cases = [c for c in cases_cute.all_cases(arch) if not only or c.name in only]
    failed = compile_cute.compile_all(arch, [c.name for c in cases], folder)
    print("".join(f"{line}\n" for line in failed), end="")
    device = driver.Device(arch)
    for case in cases:
        if not (folder / f"{case.name}.ptx").exists():
            continue
        start = time.time()
        try:
            wrong = case.wrong(run(device, case, (folder / f"{case.name}.ptx").read_text()))
        except driver.Error as error:
            wrong = str(error)
        print(f"{case.name}: {wrong or 'equal'} ({time.time() - start:.2f} s)", flush=True)
        if wrong:
            failed.append(case.name)
    print(f"{arch}: {len(cases)} kernels in CuTe DSL, {len(failed)} failed, {device.steps()} instructions")
    sys.exit(bool(failed) or not cases)


if __name__ == "__main__":
    main()
