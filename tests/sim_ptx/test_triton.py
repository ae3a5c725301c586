"""Runs Triton's kernels on the simulator and compares with NumPy in double. usage: test_triton.py ARCH FOLDER [NAME...]"""
import ctypes
import json
import pathlib
import sys
import time

import compile_ptx
import cuda
import numpy as np

SCALARS = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "fp32": ctypes.c_float}


def run(device, case, folder):
    info = json.loads((folder / f"{case.name}.json").read_text())
    module = device.load((folder / f"{case.name}.ptx").read_bytes())
    function = device.function(module, info["name"], info["shared"])
    buffers, args, out = [], [], None
    for kind, value in zip(case.types, case.args):
        if kind[0] != "*":
            args.append(SCALARS[kind](value))
            continue
        at = device.upload(case.out if value is None else value)
        out = at if value is None else out
        buffers.append(at)
        args.append(at)
    args += [ctypes.c_uint64(0), ctypes.c_uint64(0)]  # Triton's scratch
    try:
        device.launch(function, case.grid, (32 * info["warps"],), info["shared"], args)
        return device.download(out, case.out.copy())
    finally:
        for at in buffers:
            device.free(at)
        device.unload(module)


def difference(case, got):
    """None, or how the result is wrong."""
    got = case.read(got) if hasattr(case, "read") else got
    expect = np.asarray(case.expect)
    got = got.reshape(expect.shape)
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
    arch, folder, only = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    failed = compile_ptx.compile_all(arch, folder)
    device = cuda.Device(arch)
    count, start = 0, time.time()
    for case in compile_ptx.cases_for(arch):
        if (only and case.name not in only) or not (folder / f"{case.name}.ptx").exists():
            continue
        count += 1
        begin = time.time()
        try:
            wrong = difference(case, run(device, case, folder))
        except cuda.Error as error:
            wrong = str(error)
        if time.time() - begin > 3:
            print(f"{case.name} took {time.time() - begin:.1f} s", flush=True)
        if wrong:
            failed.append(f"{case.name}: {wrong}")
            print(failed[-1], flush=True)
    print(f"{arch}: {count} kernels of Triton, {len(failed)} failed, {device.steps()} instructions, {time.time() - start:.1f} s")
    sys.exit(bool(failed) or not count)


if __name__ == "__main__":
    main()
