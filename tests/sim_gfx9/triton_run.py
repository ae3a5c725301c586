"""Runs the Triton kernels of cases.py on a simulator and compares each result with the result that
NumPy computes in double."""
import ctypes
import json
import sys
import time

import numpy as np

SCALARS = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "fp32": ctypes.c_float}


def run(device, case, folder):
    info = json.loads((folder / f"{case.name}.json").read_text())
    code = (folder / f"{case.name}.{device.suffix}").read_bytes()
    if b"wgmma.mma_async" in code and hasattr(case, "wgmma"):
        # The tensor cores of compute capability 9.0 keep 14 bits of FP8 sums, and the simulator
        # must do exactly the same, so no error is allowed.
        case.expect, case.absolute = case.wgmma(), 0
    module = device.load(code)
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
    # Triton's kernels have two further arguments for scratch memory, which these kernels do not
    # use.
    args += [ctypes.c_uint64(0), ctypes.c_uint64(0)]
    try:
        device.launch(function, case.grid, (device.lanes * info["warps"],), info["shared"], args)
        return device.download(out, case.out.copy())
    finally:
        for at in buffers:
            device.free(at)
        device.unload(module)


def difference(case, got):
    """Returns None if the result is right, otherwise a text that describes the error."""
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


def main(device, failed, cases, folder, only):
    """Runs the cases whose compiled code is in the folder. `failed` has a line for each case that
    could not be compiled. The exit status is 0 only if all cases passed and there was at least
    one."""
    count = 0
    for case in cases:
        if (only and case.name not in only) or not (folder / f"{case.name}.{device.suffix}").exists():
            continue
        count += 1
        start = time.time()
        try:
            wrong = difference(case, run(device, case, folder))
        except device.Error as error:
            wrong = str(error)
        if time.time() - start > 3:
            print(f"{case.name} took {time.time() - start:.1f} s", flush=True)
        if wrong:
            failed.append(f"{case.name}: {wrong}")
    print("\n".join(failed))
    print(f"{count} kernels of Triton, {len(failed)} failed, {device.steps()} instructions")
    sys.exit(bool(failed) or not count)
