"""Loads cuda-python, NVIDIA's bindings of the driver, on the simulator that SIM_LIBRARY names. A test that imports this
module starts again with the simulator in LD_LIBRARY_PATH, and skips itself if there is no cuda-python. The test's
first argument is the simulated architecture."""
import os
import pathlib
import sys

folder = str(pathlib.Path(os.environ["SIM_LIBRARY"]).resolve().parent)
if folder not in os.environ.get("LD_LIBRARY_PATH", "").split(":"):  # The linker reads the variable only at the start.
    os.environ["LD_LIBRARY_PATH"] = folder
    os.environ["BSMM_SIM_ARCH"] = sys.argv[1]
    os.execv(sys.executable, [sys.executable, *sys.argv])
try:
    from cuda.bindings import driver as cuda
except ImportError:
    print("skipped: no cuda-python")
    sys.exit(77)


def call(name, *args):
    """Calls a function of the driver, and returns its results without the status. If the call
    fails, the program ends with a message."""
    status, *results = getattr(cuda, name)(*args)
    if status != cuda.CUresult.CUDA_SUCCESS:
        sys.exit(f"{name}{args}: {status}, {cuda.cuGetErrorString(status)[1]}")
    return results[0] if len(results) == 1 else results
