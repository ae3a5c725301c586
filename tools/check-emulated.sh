#!/bin/bash
# Runs unit tests on emulated processors: 64-bit Arm (a separate build, with qemu-aarch64), x86-64
# without AVX (with qemu-x86_64), and x86-64 with AVX2 but without AVX-512. valgrind emulates the
# processor with AVX2, because qemu computes floats in software and is too slow for these tests. On a
# machine with AVX2 but without AVX-512, a separate build with emulated AVX-512 instructions tests the
# AVX-512 kernels instead (tests/emulated_avx512). The last line is "N passed, N failed".
#   usage: check-emulated.sh BUILD_FOLDER [JOBS]   (a build for x86-64; `install-deps.sh emulate` first)
set -euo pipefail
build=$(realpath "$1") jobs=${2:-$(nproc)}
cd "$(dirname "$0")/.."
arm=$PWD/build-arm64 wide=$PWD/build-avx512

# Prints "found " and the instruction sets that the library uses on a processor, e.g. "found avx2".
# Prints nothing if the command does not list them.
#   usage: features_of BSMM_COMMAND...
features_of() {
    "$@" devices --json | sed -nE '1s/.*"features":"([^"]*)".*/found \1/p'
}
# On a machine with AVX2 alone, the tests of BUILD_FOLDER itself run every product without AVX-512,
# so nothing is left for an emulated processor with AVX2.
processors="arm64 avx2 no_avx"
if [ "$(features_of "$build/bsmm")" = "found avx2" ]; then
    processors="avx512 arm64 no_avx"
fi

# These arrays have an entry for each processor. They hold the command that runs a program on it,
# the features that `bsmm devices` must find, the folder of the programs, and the tests, the longest
# first.
declare -A run=(
    [arm64]="qemu-aarch64"
    [no_avx]="qemu-x86_64 -cpu Nehalem"
    [avx2]="valgrind --tool=none -q"
    [avx512]="env"
)
declare -A features=([arm64]="" [no_avx]="" [avx2]="avx2"
    [avx512]="avx2 avx512 avx512_vnni avx512_bf16 avx512_vbmi")
declare -A programs=([arm64]=$arm [no_avx]=$build [avx2]=$build [avx512]=$wide)
# `sample` holds a number n for each processor: the tests test_matmul, test_pack_b, test_cpu_small_m
# and test_largest_sums (in test_cpu_f32fma_spans) run only every nth product there. The programs for
# x86-64 are those of BUILD_FOLDER, whose own tests run every product with the same kernels. An
# emulated processor adds only that the library chooses other code, and that this code executes no
# instruction that the processor lacks. The build for Arm is another program, so it runs more.
declare -A sample=([arm64]=2 [no_avx]=5 [avx2]=5 [avx512]=1)
everywhere="test_matmul test_cpu_kernels test_cpu_small_m test_cpu_f32fma_spans test_store test_pack_b
    test_quantize_fast test_quantize test_exact test_cpu_epilogue test_numerics test_tables"
declare -A tests=(
    [arm64]="test_cpu_pack $everywhere test_golden_elements test_quantize_coder
        test_quantize_fast_decode test_golden_layouts test_recipes test_recipes_floats test_recipes_golden test_describe
        test_io_safetensors test_io_gguf test_io_npy test_families_fixtures"
    [no_avx]="$everywhere"
    [avx2]="$everywhere test_cpu_chunks test_quantize_fast_decode test_dequantize_halves test_dequantize_casts"
    [avx512]="test_batch_invariance test_cpu_kernels test_quantize_fast test_cpu_pack test_cpu_small_m
        test_cpu_pack_f32fma test_exact test_dequantize_casts test_quantize_fast_decode test_ranges
        test_cpu_epilogue test_numerics test_cpu_chunks"
)

build_for() { # usage: build_for PRESET
    cmake --preset "$1" >/dev/null &&
        cmake --build --preset "$1" -j "$jobs" >"build-$1/build.log" 2>&1 ||
        { cat "build-$1/build.log"; return 1; }
}

# Fails if a program sees other features than those of the emulated processor. If it saw the
# features of the real processor, the tests would not test anything new.
check_features() { # usage: check_features PROCESSOR
    local found
    # shellcheck disable=SC2086 # The command must be split into words.
    found=$(features_of ${run[$1]} "${programs[$1]}/bsmm")
    [ "$found" = "found ${features[$1]}" ] && return
    echo "$1: the emulated processor has '${found#found }', not '${features[$1]}'"
    return 1
}

# Runs a test. Prints its output if it fails. Otherwise prints its time and its skipped test
# functions.
run_test() { # usage: run_test PROCESSOR TEST SAMPLE COMMAND...
    local processor=$1 test=$2 sample=$3 log start=$SECONDS skipped
    shift 3
    log=$(mktemp)
    if OMP_WAIT_POLICY=passive BSMM_TEST_CPU_SAMPLE=$sample timeout 600 "$@" >"$log" 2>&1; then
        skipped=$(sed -nE 's/^\[  SKIPPED \] (test_[a-z0-9_]+)$/\1/p' "$log" | sort -u | xargs)
        echo "passed: $processor $test, $((SECONDS - start)) s${skipped:+; skipped: $skipped}"
    else
        cat "$log"
        echo "failed: $processor $test"
    fi
    rm -f "$log"
}
export -f run_test

for processor in $processors; do
    [ "${programs[$processor]}" = "$build" ] || build_for "$processor"
    check_features "$processor"
done
results=$(mktemp)
trap 'rm -f "$results"' EXIT
# Starts the longest test of every processor first, then the second longest of every processor, and
# so on. Short tests at the end keep all cores busy.
for processor in $processors; do
    place=0
    for test in ${tests[$processor]}; do
        echo "$((place++)) $processor $test ${sample[$processor]} ${run[$processor]} ${programs[$processor]}/tests/$test"
    done
done | sort -s -n -k 1,1 | cut -d' ' -f2- | xargs -P "$jobs" -L 1 bash -c 'run_test "$@"' run_test | tee "$results"
passed=$(grep -c '^passed: ' "$results" || true)
failed=$(grep -c '^failed: ' "$results" || true)
echo
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
