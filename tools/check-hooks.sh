#!/bin/bash
# Checks that the libraries contain no code that only tests may use: no function that pretends
# another processor, cache or tile, and no kernel that only tests launch.
#
#   usage: check-hooks.sh LIBRARY...
set -euo pipefail
hooks='mask_features|add_features|pretend|only_tile|probe'
for library in "$@"; do
    names=$(nm --defined-only --format=posix "$library" 2>/dev/null | cut -d' ' -f1)
    [ -n "$names" ] || { echo "$library: nm lists no name"; exit 1; }
    if found=$(grep -E "$hooks" <<<"$names"); then
        echo "$library has hooks of tests:"
        echo "$found"
        exit 1
    fi
    if grep -aq 'sm90a/probe' "$library"; then
        echo "$library has the kernel of tests sm90a/probe"
        exit 1
    fi
done
echo "no hook of tests in $# libraries"
