"""Compiles kernels of Triton to PTX without a GPU. Triton would also assemble the PTX to a cubin, which
takes a fifth of its time and which the simulator cannot run. This module leaves that stage out."""
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget


def leave_out_cubin(backend=None, stages=None, *_):
    """Triton calls this function with the stages of a compilation, and without arguments to get a
    key and a hash that tell such compilations from others in its cache."""
    if stages is None:
        return "no cubin", "no cubin"
    stages["cubin"] = lambda *_: b""


knobs.runtime.add_stages_inspection_hook = leave_out_cubin


def capability(arch):
    """Returns the number of an architecture, such as 90 for sm_90a."""
    return int(arch[3:].rstrip("af"))


def compile_ptx(source, arch, options):
    return triton.compile(source, target=GPUTarget("cuda", capability(arch), 32), options=options)
