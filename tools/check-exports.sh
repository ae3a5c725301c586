#!/bin/bash
# Checks that a shared library exports exactly the functions that a header declares, each with a
# version (BSMM_0.1 and so on, from cmake/exports.map).
#
# usage: check-exports.sh HEADER LIBRARY
set -euo pipefail
declared=$(tr '\n' ' ' <"$1" | grep -oE 'BSMM_API [^;(]*\(' | grep -oE 'bsmm_[a-z0-9_]+\($' |
    tr -d '(' | sort)
# The dynamic table also has a symbol of type A for each version. Such symbols are left out.
symbols=$(nm --dynamic --defined-only --with-symbol-versions --format=posix "$2" | awk '$2 != "A" {print $1}')
exported=$(sed 's/@.*//' <<<"$symbols" | sort)
[ -n "$declared" ] || { echo "$1: no declaration found"; exit 1; }
if [ "$declared" != "$exported" ]; then
    echo "< declared in $1 only, > exported by $2 only (cmake/exports.map lists what is exported):"
    diff <(echo "$declared") <(echo "$exported") || true
    exit 1
fi
if unversioned=$(grep -vE '@@BSMM_[0-9]+\.[0-9]+$' <<<"$symbols"); then
    echo "$2 exports these functions without a version:" $unversioned
    exit 1
fi
echo "$(echo "$declared" | wc -l) functions declared and exported"
