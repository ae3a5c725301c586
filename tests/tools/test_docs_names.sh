#!/bin/bash
# Tests that every name of the library which the pages for users mention is declared in bsmm.h: its
# functions, types, enumerators, constants, and the fields that stand alone between backquotes.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# $header gets the declarations of bsmm.h without comments, one line for each line of a struct.
header=$work/bsmm.h
${CC:-cc} -fpreprocessed -dD -E -P "$root/include/bsmm.h" 2>/dev/null >"$header"

unknown() { # usage: unknown DOCUMENT: prints each name that bsmm.h does not have
    grep -oE '\b(BSMM_[A-Z0-9_]+|bsmm_[a-z0-9_]+)\b' "$1" | sort -u | while read -r name; do
        case $name in bsmm_engine | BSMM_[0-9]*) continue ;; esac # a program, and versions of symbols
        grep -qw -- "$name" "$header" || echo "$name"
    done
    # A name like `bsmm_buffers.rows` names a field of a struct.
    grep -oE '\bbsmm_[a-z0-9_]+\.[a-z_]+\b' "$1" | sort -u | while IFS=. read -r type field; do
        case $field in h | md | c | so) continue ;; esac
        sed -n "/^typedef struct $type {/,/^} $type;/p" "$header" | grep -qw -- "$field" || echo "$type.$field"
    done
}
for page in engine moving policy; do
    names=$(unknown "$root/docs/$page.md")
    [ -z "$names" ] || { echo "docs/$page.md: bsmm.h has no $names"; exit 1; }
done

# The check must fail if a page has a wrong name.
copy=$work/page.md
printf 'See bsmm_plan_crate, BSMM_E_FORMAT and `bsmm_buffers.row`.\n' >"$copy"
[ "$(unknown "$copy" | tr '\n' ' ')" = "bsmm_plan_crate bsmm_buffers.row " ] || { echo "wrong names pass"; exit 1; }
