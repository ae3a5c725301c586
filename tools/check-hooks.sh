#!/bin/bash
# Checks that the libraries contain no code that only tests may use: no function that pretends
# another processor, cache or tile, no kernel that only tests launch, and no variable that code
# outside its file could change.
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
    # objdump lists the symbols of a static library. A shared library lists only exported ones.
    # AddressSanitizer adds a variable __odr_asan.NAME for each global constant.
    if found=$(objdump -t "$library" 2>/dev/null | grep -E ' g +O \.(data|bss)'$'\t' |
        grep -v ' __odr_asan\.'); then
        echo "$library has variables that code outside their files could change:"
        echo "$found"
        exit 1
    fi
    if grep -aq 'sm90a/probe' "$library"; then
        echo "$library has the kernel of tests sm90a/probe"
        exit 1
    fi
done
echo "no hook of tests in $# libraries"
