"""Compares products in NVIDIA's CuTe DSL (kernels_cute.py) with NumPy in double. usage: test_cute.py ARCH FOLDER [NAME...]"""
import ctypes
import re
import sys
import time

import cases_cute
import compile_cute
import driver
import numpy as np


SWIZZLES = {128: 3, 64: 2, 32: 1, 16: 0}  # Maps the bytes of a box's row in shared memory to a CUtensorMapSwizzle.


def tensor_map(device, case, at, kind, rows, major):
    """Returns the CUtensorMap by which a block loads its rows of an operand."""
    _, bits, plain, spread = cases_cute.TYPES[kind]
    held = max(bits, 8) if case.spread else bits
    extents, tile = (case.shape[2], rows), (case.step, rows // case.ctas)
    if major == "m":
        extents, tile = extents[::-1], tile[::-1]
    row = min(1024, tile[0] * held)
    return driver.tensor_map(device, spread if case.spread else plain, at, extents, [extents[0] * bits // 8],
                             (row // held, tile[1]), SWIZZLES[row // 8])


def run(device, case, folder, operands):
    """Runs a product whose result is filled with NaN before, and returns the result."""
    ptx = (folder / f"{case.name}.ptx").read_text()
    name = re.search(r"\.entry (\w+)", ptx).group(1)
    sizes = [int(n) for n in re.findall(r"\.param \.align \d+ \.b8 \w+\[(\d+)\]", ptx.split(")\n")[0])]
    maps, pointers, buffers = [], [], []
    for (codes, scales), kind, rows, major in zip(operands, case.types, case.shape, case.majors):
        stored = codes if major == "k" else codes.T
        buffers.append(device.upload(cases_cute.pack(stored, cases_cute.TYPES[kind][1])))
        maps.append(tensor_map(device, case, buffers[-1], kind, rows, major))
        if scales is not None:
            pointers.append(device.upload(cases_cute.packed_scales(scales)))
    out = np.full(case.shape[:2], -1, np.int32).view(case.out)
    pointers.append(device.upload(out))
    # The first argument is the state of the MMA operation. Its bytes 1 and 2 tell whether A and B are negated.
    args = [(ctypes.c_uint8 * sizes[0])(0, "A" in case.negated, "B" in case.negated), *maps, *pointers]
    assert [ctypes.sizeof(a) for a in args] == sizes, (sizes, name)
    module = device.load(ptx)
    shared = 200 << 10
    try:
        device.launch(device.function(module, name, shared), (case.ctas,), (128,), shared, args, case.ctas)
        return device.download(pointers[-1], out)
    finally:
        device.unload(module)
        for at in buffers + pointers:
            device.free(at)


def difference(case, got, operands):
    """Returns None if the result is right, else a text that says how it is wrong."""
    a, b = case.values(operands)
    wrong = ~(np.abs(got - a @ b.T) <= case.bound(a, b))
    first = tuple(int(n) for n in np.argwhere(wrong)[0]) if wrong.any() else None
    return f"{wrong.sum()} of {wrong.size} wrong, first at {first}: {got[first]} for {(a @ b.T)[first]}" if wrong.any() else None


def check(device, case, folder):
    """Runs a case. Returns None if its result is right and differs from that of operands with one wrong bit."""
    operands = case.operands()
    got = run(device, case, folder, operands)
    missed = [what for what, changed in case.faults(operands) if difference(case, got, changed) is None]
    return difference(case, got, operands) or (f"a wrong bit of {missed} is within the bound" if missed else None)


def main():
    arch, folder, only = sys.argv[1], compile_cute.pathlib.Path(sys.argv[2]) / "cute", sys.argv[3:]
    cases = [c for c in cases_cute.all_cases(arch) if not only or c.name in only]
    failed = compile_cute.compile_all(arch, [c.name for c in cases], folder)
    print("".join(f"{line}\n" for line in failed), end="")
    device = driver.Device(arch)
    for case in cases:
        if not (folder / f"{case.name}.ptx").exists():
            continue
        start = time.time()
        try:
            wrong = check(device, case, folder)
        except driver.Error as error:
            wrong = str(error)
        print(f"{case.name}: {wrong or 'equal'} ({time.time() - start:.2f} s)", flush=True)
        if wrong:
            failed.append(case.name)
    print(f"{arch}: {len(cases)} kernels in CuTe DSL, {len(failed)} failed, {device.steps()} instructions")
    sys.exit(bool(failed) or not cases)


if __name__ == "__main__":
    main()
