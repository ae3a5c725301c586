#!/bin/bash
# Runs CTest and ends with one line: N passed, N failed[, N skipped].
# usage: run-tests.sh BUILD_FOLDER [JOBS]
set -uo pipefail
results=$(mktemp)
trap 'rm -f "$results"' EXIT
ctest --test-dir "$1" -j "${2:-2}" --output-on-failure --no-tests=error --output-junit "$results"
status=$?
count() { sed -nE "s/.*[[:space:]]$1=\"([0-9]+)\".*/\1/p" "$results" | head -n 1; }
failed=$(count failures)
skipped=$(($(count skipped) + $(count disabled)))
passed=$(($(count tests) - failed - skipped))
echo
echo "$passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
exit $status
