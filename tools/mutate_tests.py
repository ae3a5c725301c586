"""Chooses the tests that tools/mutate.py runs for a mutation, i.e. a changed line of the library,
and their order."""
import re
from pathlib import Path

# With --quick, tests of more than QUICK seconds are left out, and tests of the changed file's area if
# they take more than QUICK_NEAR seconds.
QUICK, QUICK_NEAR = 0.2, 10
# Tests are built and run in groups that take about BATCH seconds each.
BATCH = 20

# Matches tests whose result cannot depend on the changed code: tests of tools, of the simulators
# alone, of the header, of the exported names, and of the installed package.
UNRELATED = re.compile(r"sim_(?!ptx_test_)|amdgpu_loops|check_|test_abi|test_check_|test_run_tests|test_mutations|"
                       r"test_docs_current|consumer|example_amdgpu|.*_spills")

# Maps each folder to patterns that the names of its tests begin with. These tests run first, together
# with tests that have found changes in the same folder.
AREAS = {
    "src/base/": ("test_cpu$", "test_device", "test_tables", "test_plan_buffers"),
    "src/format/": ("test_tables", "test_golden", "test_ranges", "test_exact"),
    "src/core/": ("test_describe", "test_groups", "test_matmul", "test_any_rows", "test_plan", "test_registry",
                  "test_memory_short"),
    "src/ref/": ("test_matmul", "test_epilogue", "test_exact"),
    "src/recipe/": ("test_recipes", "test_store"),
    "src/quantize/": ("test_quantize", "test_recipes", "test_dequantize", "test_convert", "test_store"),
    "src/cpu/": ("test_cpu_", "test_batch", "test_numerics", "test_pack_b", "test_matmul", "test_epilogue"),
    "src/gpu/": ("test_gpu", "test_cuda", "test_hip", "emulated_test_(gpu|cuda|store)", "sim_ptx_test_"),
    "src/cuda/": ("test_cuda", "test_gpu", "emulated_test_(cuda|gpu|store|ranges)", "sim_ptx_test_"),
    "src/amdgpu/": ("test_mfma", "test_hip", "test_gpu", "test_.*_gfx"),
    "src/sol/": ("test_sol",),
    "src/io/": ("test_io", "test_families", "test_weight", "test_memory_short", "test_gguf"),
    "cli/": ("test_cli", "test_bench", "test_shrink", "test_main_job", "test_folder", "test_compare", "test_experts",
             "test_gguf_", "test_input_scales", "test_progress", "test_hip$", "test_sim$", "test_llm$"),
}


# Matches tests that run GPU kernels and no CPU kernels. Such a test runs only for changes in
# REACHED_BY_GPUS, the folders and files whose code it can reach. cli/level*.c has the rounding of
# GPU kernels, with which test_cli_level compares their results.
ON_GPUS = re.compile(r"emulated_test_|sim_ptx_|test_.*_gfx|test_mfma_engine|test_matmul_large_tiles")
REACHED_BY_GPUS = ("src/base/", "src/format/", "src/core/", "src/gpu/", "src/cuda/", "src/amdgpu/", "cli/level")

# Maps patterns of files to patterns of tests that run the kernels which these files choose. These
# tests run first, even with --quick and however long they take.
OWN = {
    r"src/(core|format|base|gpu|cuda|amdgpu|recipe|quantize)/": "test_golden_gpu$",
    r"src/(core|format|base|cpu|ref|quantize)/": "test_golden_cpu$",
    r"(cli|src/(base|format|quantize|recipe|sol|io))/": "test_golden_cli$",
    r"src/cuda/host/(cuda_sm100f|tma_rows|scaled)": "sim_ptx_test_cuda_scaled_sm_100",
    r"src/cuda/host/(cuda_sm120f|scaled)": "sim_ptx_test_cuda_scaled_sm_120",
    r"src/cuda/host/(cuda_sm90a_)?mixed": "emulated_test_cuda_mixed$",
    r"src/cuda/host/(wgmma|cuda_sm90a|pack)": "emulated_test_(exact|cuda_half|cuda_row_scales)$",
    r"src/cuda/host/(small_m|cuda_sm90_small_m)": "(emulated|sim_ptx)_test_exact$",
    r"src/(cuda/host|gpu)/re(code|layout)": "(emulated|sim_ptx)_test_gpu_recode_device$",
    r"src/amdgpu/host/(mfma|hip_)": "test_(matmul|gpu_packed|ranges)_gfx9",
    r"src/amdgpu/host/recode": "test_gpu_recode_device_gfx9",
    r"src/quantize/.*_avx": "test_quantize_fast$",
    r"cli/": "test_cli$",
    r"cli/level": "(emulated_|sim_ptx_)?test_cli_level",
    r"cli/(bench|cmd_bench)": "test_bench(_plot)?$",
}


def kills_of(records):
    """Returns for each folder the tests that found changes in it, and how many changes each found."""
    kills = {}
    for r in records:
        if r["status"] == "found":
            counts = kills.setdefault(str(Path(r["file"]).parent), {})
            counts[r["test"]] = counts.get(r["test"], 0) + 1
    return kills


def batches(tests, times):
    """Splits a list of tests into groups that take about BATCH seconds each."""
    groups, total = [], 0
    for test in tests:
        if not groups or total + times[test] > BATCH:
            groups.append([])
            total = 0
        groups[-1].append(test)
        total += times[test]
    return groups


def order_tests(name, times, kills, quick):
    """Returns groups of tests in the order in which they run. Tests of the changed file's area and
    those that have found changes in its folder come first. All others follow, the fast ones
    first. If `quick` is set, tests of the area that take more than QUICK_NEAR seconds are left
    out, unless OWN names them. All other tests that take more than QUICK seconds are left out
    too."""
    found = kills.get(str(Path(name).parent), {})
    area = next((names for prefix, names in AREAS.items() if name.startswith(prefix)), ())
    own = {t for t in times for file, test in OWN.items() if re.match(file, name) and re.match(test, t)}
    near = {t for t in times if any(re.match(p, t) for p in area) or t in found} | own
    can = {t for t in times if name.startswith(REACHED_BY_GPUS) or not ON_GPUS.match(t)}
    if quick:
        can = {t for t in can if t in own or times[t] <= (QUICK_NEAR if t in near else QUICK)}
    first = sorted((t for t in near & can if times[t] < BATCH), key=lambda t: (-found.get(t, 0), times[t]))
    others = sorted(can.difference(first), key=lambda t: (t not in near and times[t] >= 1, times[t]))
    return batches(first[:4], times) + batches(first[4:], times) + batches(others, times)
