"""Compiles the Triton kernels of tests/sim_gfx9/cases.py and of cases_arithmetic.py to PTX without a GPU. usage: compile_ptx.py ARCH FOLDER"""
import functools
import hashlib
import itertools
import json
import multiprocessing
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "sim_gfx9"))
import triton
from triton.compiler import ASTSource

from compile import signature
from triton_ptx import capability, compile_ptx


def options(case):
    return {k: v for k, v in case.options.items() if k in ("num_warps", "num_stages", "num_ctas")}


def key_of(arch, case):
    types, constants, attrs = signature(case)
    return hashlib.sha256(repr((arch, triton.__version__, case.fn.cache_key, types, constants, attrs, sorted(options(case).items()))).encode()).hexdigest()


# ONLY maps an architecture to the beginning of the names of its cases. Other architectures run all
# cases. The PTX for sm_120a differs from that for sm_100a only in block-scaled products.
ONLY = {"sm_120a": "dot_scaled_e"}


@functools.cache
def cases_for(arch):
    """Returns the list of cases to compile for an architecture. Of cases that differ only in options for
    AMD GPUs, only one is returned. Cases with e4m3 need compute capability 8.9."""
    import cases
    import cases_arithmetic
    seen, found = set(), []
    # The PTX of arithmetic is the same for all architectures, so one of them is enough.
    arithmetic = cases_arithmetic.all_cases() if arch == "sm_80" else ()
    for case in itertools.chain(cases.all_cases("gfx950"), arithmetic):
        if not case.name.startswith(ONLY.get(arch, "")):
            continue
        types, constants, _ = signature(case)
        if capability(arch) < 89 and ("fp8e4nv" in repr(types) or "fp8e4nv" in repr(constants) or "e4m3" in constants.values()):
            continue
        key = key_of(arch, case)
        if key not in seen:
            seen.add(key)
            found.append(case)
    return found


def compile_case(arch, case, folder):
    """Compiles one case to FOLDER/NAME.ptx and writes its launch parameters to FOLDER/NAME.json.
    Existing files are used again if the kernel and the version of Triton are the same."""
    key = key_of(arch, case)
    info = folder / f"{case.name}.json"
    if info.exists() and json.loads(info.read_text())["key"] == key:
        return
    source = ASTSource(case.fn, *signature(case))
    built = compile_ptx(source, arch, options(case))
    (folder / f"{case.name}.ptx").write_text(built.asm["ptx"])
    info.write_text(json.dumps({"key": key, "name": built.metadata.name, "shared": built.metadata.shared, "warps": built.metadata.num_warps}))


def work(job):
    arch, index, count, folder = job
    failed = []
    for case in cases_for(arch)[index::count]:
        try:
            compile_case(arch, case, pathlib.Path(folder))
        except Exception as error:
            failed.append(f"{case.name}: {type(error).__name__}: {str(error)[:300]}")
    return failed


def compile_all(arch, folder, processes=2):
    """Compiles every case for the architecture and returns one line for each failure."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    # The list of cases is made before the processes are forked, so that they need not make it again.
    cases_for(arch)
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return sum(pool.map(work, [(arch, k, processes, folder) for k in range(processes)]), [])


if __name__ == "__main__":
    failed = compile_all(sys.argv[1], sys.argv[2])
    print("\n".join(failed))
    sys.exit(bool(failed))
