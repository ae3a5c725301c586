"""Compiles the kernels of cases_cute.py to PTX without a GPU. usage: compile_cute.py ARCH FOLDER"""
import hashlib
import importlib.metadata
import multiprocessing
import os
import pathlib
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ["kernels_cute.py", "cases_cute.py", "compile_cute.py"]


def key_of(arch):
    text = b"".join((HERE / name).read_bytes() for name in SOURCES)
    return hashlib.sha256(text + f"{arch} {importlib.metadata.version('nvidia-cutlass-dsl')}".encode()).hexdigest()


def work(job):
    """Compiles each case of a list to FOLDER/NAME.ptx and returns one line for each failure."""
    arch, names, folder = job
    # The DSL writes the PTX of all kernels of a class to the same file name, so each process has
    # its own folder.
    dump = tempfile.TemporaryDirectory()
    os.environ |= {"CUTE_DSL_ARCH": arch, "CUTE_DSL_KEEP_PTX": "1", "CUTE_DSL_DUMP_DIR": dump.name}
    warnings.simplefilter("ignore")
    import cases_cute
    failed = []
    for case in cases_cute.all_cases(arch):
        if case.name not in names:
            continue
        try:
            (pathlib.Path(folder) / f"{case.name}.ptx").write_text(case.compile())
        except BaseException as error:
            failed.append(f"{case.name}: {type(error).__name__}: {str(error)[:2000]}")
    return failed


def compile_all(arch, names, folder, processes=2):
    """Compiles the cases. Existing PTX is used again if the sources and the version of the DSL are
    the same."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / "key"
    if mark.exists() and mark.read_text() == key_of(arch) and all((folder / f"{n}.ptx").exists() for n in names):
        return []
    mark.unlink(missing_ok=True)
    # The DSL reads the architecture when it is imported, so the cases are compiled in processes of their own.
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        failed = sum(pool.map(work, [(arch, names[k::processes], str(folder)) for k in range(processes)]), [])
    if not failed:
        mark.write_text(key_of(arch))
    return failed
