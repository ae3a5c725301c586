#!/bin/bash
# Compiles the headers that all GPU backends share with clang for AMD processors: src/gpu, and the
# headers of src/base and src/recipe that src/gpu includes. Each header is compiled by itself first,
# then kernels that call its functions. Headers that include src/core, src/format/format.h or
# pthread.h are only for host code, so they are compiled for the host. The last line is "N passed, N
# failed".
#   usage: check-gpu-shared.sh   (`install-deps.sh amdgpu` first)
set -uo pipefail
cd "$(dirname "$0")/.."
clang=$(command -v clang-22) || { echo "check-gpu-shared: no clang-22; run tools/install-deps.sh amdgpu"; exit 1; }
passed=0 failed=0
check() { # usage: check NAME COMMAND...
    local what=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED: $what"; fi
}
common=(-Wall -Wextra -Werror -Iinclude -Isrc)
for_host() { "$clang" "${common[@]}" -M -x c "$1" | grep -qE 'src/core/|src/format/format\.h|/pthread\.h'; }
device_headers=()
for header in src/base/device.h src/base/scalar.h src/recipe/*.h src/gpu/*.h; do
    if for_host "$header"; then
        check "host $header" "$clang" "${common[@]}" -std=c17 -fsyntax-only -include "$header" -x c /dev/null
    else
        device_headers+=("$header")
    fi
done
for processor in gfx942 gfx950; do
    flags=(-target amdgcn-amd-amdhsa -mcpu=$processor -std=c11 -ffreestanding -nogpulib -ffp-contract=off
        "${common[@]}")
    for header in "${device_headers[@]}"; do
        check "$processor $header" "$clang" "${flags[@]}" -fsyntax-only -include "$header" -x c /dev/null
    done
    check "$processor kernels" "$clang" "${flags[@]}" -O2 -S -o /dev/null tests/gpu_shared/kernels.c
done
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
