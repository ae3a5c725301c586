#!/bin/bash
# Tests that run-tests.sh counts passed, failed and skipped tests of each area. Only the last line
# is the total, and one failed test fails the run.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/CTestTestfile.cmake" <<'END'
add_test(test_cpu_pack true)
add_test(test_cpu false)
add_test(test_cuda_fake true)
add_test(emulated_test_cuda_cut true)
add_test(fuzz_npy_seeds sh -c "exit 77")
set_tests_properties(fuzz_npy_seeds PROPERTIES SKIP_RETURN_CODE 77)
add_test(nothing_that_is_known true)
END
status=0
"$root/tools/run-tests.sh" "$folder" 1 >"$folder/output" || status=$?
expect() { # usage: expect LINE   (a line of the output matches LINE)
    grep -qx "$1" "$folder/output" || { echo "no line '$1' in:"; cat "$folder/output"; exit 1; }
}
[ "$status" != 0 ] || { echo "a failed test passes"; exit 1; }
expect "== Running 6 tests of $folder, 1 at a time"
expect "area  *passed  *failed  *skipped  *seconds"
expect "cpu  *1  *1  *0  *[0-9]*"
expect "cuda  *1  *0  *0  *[0-9]*"
expect "emulated  *1  *0  *0  *[0-9]*"
expect "fuzz  *0  *0  *1  *[0-9]*"
expect "other  *1  *0  *0  *[0-9]*"
[ "$(tail -n 1 "$folder/output")" = "4 passed, 1 failed, 1 skipped" ]

echo 'add_test(test_cpu true)' >"$folder/CTestTestfile.cmake"
"$root/tools/run-tests.sh" "$folder" >"$folder/output"
[ "$(tail -n 1 "$folder/output")" = "1 passed, 0 failed" ]

# A folder without tests fails the run.
: >"$folder/CTestTestfile.cmake"
! "$root/tools/run-tests.sh" "$folder" >"$folder/output" 2>&1
