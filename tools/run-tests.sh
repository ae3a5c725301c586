#!/bin/bash
# Runs CTest and prints a summary by area. The last line is "N passed, N failed[, N skipped]".
#   usage: run-tests.sh BUILD_FOLDER [JOBS]
set -uo pipefail
report=$(mktemp)
trap 'rm -f "$report"' EXIT
count=$(ctest --test-dir "$1" -N | sed -n 's/^Total Tests: //p')
printf '\n== Running %s tests of %s, %s at a time\n' "${count:-no}" "$1" "${2:-2}"
ctest --test-dir "$1" -j "${2:-2}" --output-on-failure --no-tests=error --output-junit "$report"
status=$?
"$(dirname "$0")/summarize-tests.py" "$report" && exit $status
exit 1
