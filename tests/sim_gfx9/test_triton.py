"""Runs every Triton kernel of cases.py on the simulator and compares its result with NumPy's.
usage: test_triton.py ARCH FOLDER [NAME...]

$BSMM_SIM_SEED seeds the order in which the simulator runs waves."""
import ctypes
import json
import pathlib
import sys
import time

import numpy as np

import cases
import compile as compiler
import hip

SCALARS = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "fp32": ctypes.c_float}


def run(device, case, folder):
    info = json.loads((folder / f"{case.name}.json").read_text())
    module = device.load((folder / f"{case.name}.hsaco").read_bytes())
    function = device.function(module, info["name"])
    buffers, args, out = [], [], None
    for kind, value in zip(case.types, case.args):
        if kind[0] != "*":
            args.append(SCALARS[kind](value))
            continue
        at = device.upload(case.out if value is None else value)
        out = at if value is None else out
        buffers.append(at)
        args.append(at)
    # Two null pointers for Triton's scratch memory.
    args += [ctypes.c_void_p(None), ctypes.c_void_p(None)]
    try:
        device.launch(function, case.grid, (64 * info["warps"],), info["shared"], args)
        return device.download(out, case.out.copy())
    finally:
        for at in buffers:
            device.free(at)
        device.unload(module)


def difference(case, got):
    """Returns None, or how the result is wrong."""
    got = case.read(got) if hasattr(case, "read") else got
    expect = np.asarray(case.expect)
    got, expect = got.reshape(expect.shape), expect
    if got.dtype.kind in "iu" and expect.dtype.kind in "iu":
        wrong = got != expect
    else:
        with np.errstate(all="ignore"):
            bound = case.absolute + case.tolerance * np.abs(expect)
            wrong = ~((np.abs(got.astype(np.float64) - expect) <= bound) | (np.isnan(got) & np.isnan(expect)) | (got == expect))
    if not wrong.any():
        return None
    first = tuple(int(k[0]) for k in np.nonzero(wrong))
    return f"{wrong.sum()} of {wrong.size} wrong, first at {first}: {got[first]} for {expect[first]}"


def main():
    arch, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    failed = compiler.compile_all(arch, folder)
    device = hip.Device(arch)
    count = 0
    for case in cases.all_cases(arch):
        if len(sys.argv) > 3 and case.name not in sys.argv[3:]:
            continue
        if not (folder / f"{case.name}.hsaco").exists():
            continue
        count += 1
        start = time.time()
        try:
            wrong = difference(case, run(device, case, folder))
        except hip.Error as error:
            wrong = str(error)
        if time.time() - start > 3:
            print(f"{case.name} took {time.time() - start:.1f} s", flush=True)
        if wrong:
            failed.append(f"{case.name}: {wrong}")
            print(failed[-1], flush=True)
    print(f"{arch}: {count} kernels of Triton, {len(failed)} failed, {device.steps()} instructions")
    print("\n".join(failed))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
