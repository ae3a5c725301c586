#!/bin/bash
# Checks that a shared library exports exactly the functions that a header declares.
#
# usage: check-exports.sh HEADER LIBRARY
set -euo pipefail
declared=$(tr '\n' ' ' <"$1" | grep -oE 'BSMM_API [^;(]*\(' | grep -oE 'bsmm_[a-z0-9_]+\($' |
    tr -d '(' | sort)
exported=$(nm --dynamic --defined-only --format=posix "$2" | cut -d' ' -f1 | sort)
[ -n "$declared" ] || { echo "$1: no declaration found"; exit 1; }
if [ "$declared" != "$exported" ]; then
    echo "< declared in $1 only, > exported by $2 only:"
    diff <(echo "$declared") <(echo "$exported") || true
    exit 1
fi
echo "$(echo "$declared" | wc -l) functions declared and exported"
