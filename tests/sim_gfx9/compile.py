"""Compiles the Triton kernels of cases.py for an architecture without a GPU. usage: compile.py ARCH FOLDER"""
import hashlib
import json
import multiprocessing
import pathlib
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


def signature(case):
    """Returns the Triton types of the arguments, the constants, and the indices of the pointers and
    sizes that are multiples of 16."""
    names = case.fn.arg_names
    types = dict(zip(names, case.types + ["constexpr"] * (len(names) - len(case.types))))
    constants = {(names.index(k),): v for k, v in case.constants.items()}
    attrs = {}
    for i, (kind, value) in enumerate(zip(case.types, case.args)):
        if kind[0] == "*" or (isinstance(value, int) and value % 16 == 0):
            attrs[(i,)] = [["tt.divisibility", 16]]
    return types, constants, attrs


def compile_case(arch, case, folder):
    """Compiles one case to FOLDER/NAME.hsaco, and writes its launch parameters to FOLDER/NAME.json.
    Existing files are used again if the kernel and the version of Triton are the same."""
    types, constants, attrs = signature(case)
    key = hashlib.sha256(repr((triton.__version__, case.fn.cache_key, types, constants, attrs, sorted(case.options.items()))).encode()).hexdigest()
    code, info = folder / f"{case.name}.hsaco", folder / f"{case.name}.json"
    if info.exists() and json.loads(info.read_text())["key"] == key:
        return
    source = ASTSource(case.fn, types, constants, attrs)
    built = triton.compile(source, target=GPUTarget("hip", arch, 64), options=case.options)
    code.write_bytes(built.asm["hsaco"])
    (folder / f"{case.name}.s").write_text(built.asm["amdgcn"])
    info.write_text(json.dumps({"key": key, "name": built.metadata.name, "shared": built.metadata.shared, "warps": built.metadata.num_warps}))


def work(job):
    arch, index, folder = job
    import cases
    case = cases.all_cases(arch)[index]
    try:
        compile_case(arch, case, pathlib.Path(folder))
        return None
    except Exception as error:
        return f"{case.name}: {type(error).__name__}: {str(error)[:300]}"


def compile_all(arch, folder):
    """Compiles every case for the architecture and returns one line for each failure."""
    import cases
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    # The list of cases is made before the processes are forked, so that they need not make it again.
    count = len(cases.all_cases(arch))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return [line for line in pool.imap_unordered(work, [(arch, i, folder) for i in range(count)]) if line]


if __name__ == "__main__":
    failed = compile_all(sys.argv[1], sys.argv[2])
    print("\n".join(failed))
    sys.exit(bool(failed))
