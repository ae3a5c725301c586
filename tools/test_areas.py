"""Tells the area of each test by the test's name. An area is a part of the library, or a kind of
test. AREAS is the only list of areas.
"""
import re

# These are the areas in the order of a summary. A test belongs to the area whose list has the longest
# beginning of its name, after "test_". A beginning consists of whole words.
AREAS = {
    "format": ["golden_elements", "golden_layouts", "tables"],
    "core": ["allocations", "any_rows", "batch", "bound", "bounds", "describe", "device_memory", "epilogue",
             "exact", "groups", "invariant", "matmul", "memory_short", "numerics", "pack", "packed", "plan",
             "pool", "ranges", "registry", "store", "without_openmp", "workspace"],
    "cpu": ["cpu", "golden_cpu"],
    "gpu": ["golden_gpu", "gpu"],
    "cuda": ["cuda"],
    "amd": ["amdgpu", "hip", "mfma"],
    "emulated": ["emulated"],
    "sim": ["sim"],
    "quantize": ["convert", "dequantize", "quantize", "recipes"],
    "io": ["families", "ggml", "io", "weight"],
    "sol": ["sol"],
    "cli": ["cli", "compare", "exclusion", "experts", "folder", "gguf", "golden_cli", "input", "main_job",
            "memory", "progress", "shrink"],
    "bench": ["bench"],
    "examples": ["engine", "example", "llm"],
    "fuzz": ["fuzz"],
    "abi": ["abi", "abidiff", "check_abi", "check_abidiff", "check_exports", "check_hooks", "consumer", "surface"],
    "tree": ["areas", "check", "docs", "mutations", "run", "trim"],
}


def area_of(name):
    """Returns the area of the test `name`, or None if no area has a beginning of the name."""
    # A unit test that runs again on a simulated AMD GPU has the GPU at the end of its name.
    if re.search("^test_.*_gfx[0-9a-f]+(_|$)", name):
        return "amd"
    words = re.sub("^test_", "", name) + "_"
    fits = [(len(first), area) for area, firsts in AREAS.items() for first in firsts
            if words.startswith(first + "_")]
    return max(fits)[1] if fits else None
