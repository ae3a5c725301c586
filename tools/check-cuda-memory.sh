#!/bin/bash
# Runs the tests that launch CUDA kernels under compute-sanitizer, with its tools memcheck,
# racecheck and synccheck. Each buffer has an allocation of its own, so that memcheck finds accesses
# beyond its end. CUDA calls that return an error are not reported, because some tests provoke
# errors. A GPU is needed. The last line is "N passed, N failed".
#   usage: check-cuda-memory.sh BUILD_FOLDER [TEST...]   (without TEST: every test of the registry's kernels)
set -uo pipefail
build=${1:?usage: check-cuda-memory.sh BUILD_FOLDER [TEST...]}
shift
tests=("$@")
[ ${#tests[@]} != 0 ] || tests=(test_cuda_device test_cuda_plan test_cuda_fold test_cuda_rows \
    test_cuda_row_scales test_cuda_tiles test_exact test_numerics test_ranges)
PATH=$PATH:/usr/local/cuda/bin
command -v compute-sanitizer >/dev/null || { echo "skipped: no compute-sanitizer"; exit 0; }
export BSMM_TEST_DEVICE=cuda BSMM_TEST_EXACT=1
passed=0
failed=0
for tool in memcheck racecheck synccheck; do
    for test in "${tests[@]}"; do
        if log=$(compute-sanitizer --tool "$tool" --error-exitcode 99 --report-api-errors no \
            "$build/tests/$test" 2>&1); then
            passed=$((passed + 1))
            printf '%s %s: clean\n' "$tool" "$test"
        else
            failed=$((failed + 1))
            printf '%s %s: FAILED\n%s\n' "$tool" "$test" "$(grep -E '=====|FAILED|error' <<<"$log" | head -n 40)"
        fi
    done
done
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
