#!/bin/bash
# Tests that cmake/trim-ptx.sh numbers declared registers and labels in the order of their first
# use, that it keeps special registers, and that it shortens line information.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

printf '%s\n' '	.file	1 "/home/x/src/a.cu"' '.visible .entry f()' '{' '	.reg .b32 	%r<9>;' \
    '	.reg .b64 	%rd<9>;' '	.loc	1 7 3' '	.loc	1 8 5, function_name $L__info' \
    '	mov.u64 	%rd5, %clock64;' '	mov.u32 	%r7, %envreg12;' '	bra 	$L__BB0_4;' \
    '$L__BB0_2:' '	add.s32 	%r3, %r7, %r7;' '$L__BB0_4:' '}' '.visible .entry g()' '{' \
    '	.reg .b32 	%r<9>;' '$L__BB1_2:' '	mov.u32 	%r8, %tid.x;' '	mov.b16 	%rs4, %rs4;' '}' \
    >"$folder/full"
printf '%s\n' '	.file	1 "src/a.cu"' '.visible .entry f()' '{' '	.reg .b32 	%r<9>;' \
    '	.reg .b64 	%rd<9>;' '	.loc	1 8 0' '	mov.u64 	%rd1, %clock64;' \
    '	mov.u32 	%r1, %envreg12;' '	bra 	$L1;' '$L2:' '	add.s32 	%r2, %r1, %r1;' '$L1:' '}' \
    '.visible .entry g()' '{' '	.reg .b32 	%r<9>;' '$L3:' '	mov.u32 	%r1, %tid.x;' \
    '	mov.b16 	%rs4, %rs4;' '}' >"$folder/want"
sh "$root/cmake/trim-ptx.sh" /home/x "$folder/full" "$folder/trimmed"
diff "$folder/want" "$folder/trimmed"

# Text that is trimmed already stays as it is.
sh "$root/cmake/trim-ptx.sh" /home/x "$folder/trimmed" "$folder/again"
cmp "$folder/trimmed" "$folder/again"
