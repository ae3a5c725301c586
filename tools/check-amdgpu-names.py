#!/usr/bin/env python3
"""Checks that the host code of the AMD backend and the built code objects name the same kernels.

The host code names a kernel by its module (a code object without the processor's name) and its
function. Each such pair must be built: for both processors if the module is in the folder cdna,
else for the processor that is the folder's name. Kernels of e4m3fnuz must be built for gfx942 only,
because gfx950 has no instructions for this type. Each built kernel must be named by the host code.
The names come from the preprocessed host code, so the rows that macros and .def files make count.

  usage: check-amdgpu-names.py BUILD_FOLDER [SOURCE_FOLDER]"""
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
TEXT = r'(?:"[\w/]*"\s*)+'
PAIR = re.compile(rf'(?:\.module\s*=\s*)?({TEXT}),\s*(?:\.name\s*=\s*)?({TEXT})')
MODULE = re.compile(r"(?:cdna|gfx\d+)/\w+")
PROCESSORS = ("gfx942", "gfx950")


def joined(text):
    """Joins neighbouring string literals as a C compiler does."""
    return "".join(re.findall(r'"([^"]*)"', text))


def named_kernels(source):
    """Returns the pairs (module, kernel) in the host code below `source`/src/amdgpu."""
    found = set()
    for file in sorted(source.glob("src/amdgpu/host/*.c")) + sorted(source.glob("src/amdgpu/runtime/*.c")):
        text = subprocess.run(["cc", "-E", "-P", f"-I{source}/src", f"-I{source}/include", str(file)],
                              check=True, capture_output=True, text=True).stdout
        pairs = ((joined(module), joined(kernel)) for module, kernel in PAIR.findall(text))
        found |= {pair for pair in pairs if MODULE.fullmatch(pair[0])}
    return found


def built_kernels(build):
    """Returns the triples (module, kernel, processor) of the code objects in `build`."""
    spec = importlib.util.spec_from_file_location("code", ROOT / "tools/check-amdgpu-code.py")
    code = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(code)
    found = set()
    for image in sorted((build / "amdgpu").glob("*/*.image")):
        module, processor = re.fullmatch(r"(.*)\.(\w+)\.image", image.relative_to(build / "amdgpu").as_posix()).groups()
        found |= {(module, kernel, processor) for kernel in code.read_metadata(image)}
    return found


def processors(module, kernel):
    """Returns the processors for which a kernel that the host code names must be built."""
    folder = module.split("/")[0]
    return (folder,) if folder != "cdna" else PROCESSORS[:1] if "e4m3fnuz" in kernel else PROCESSORS


def compare(named, built):
    """Yields a message for each kernel that only the host code or only a code object names."""
    for module, kernel in sorted(named):
        for processor in processors(module, kernel):
            if (module, kernel, processor) not in built:
                yield f"{module} {kernel}: named by the host code, but not built for {processor}"
    for module, kernel, processor in sorted(built):
        if (module, kernel) not in named:
            yield f"{module} {kernel}: built for {processor}, but not named by the host code"


def main():
    source = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT
    named, built = named_kernels(source), built_kernels(Path(sys.argv[1]))
    wrong = list(compare(named, built))
    if not named or not built:
        wrong.append(f"{len(named)} kernels named, {len(built)} built; must be more than 0")
    print("\n".join(wrong) if wrong else f"{len(built)} kernels are built and named")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
