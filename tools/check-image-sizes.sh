#!/bin/bash
# Prints the size of each architecture's GPU kernels in the library, and the time that one core
# takes to unpack all of their compressed files (packs) of one kind, e.g. of the kind sm_90a. A GPU
# loads the packs of one kind, each at the first product that needs it. Fails if the kernels of an
# architecture, cubins and PTX together, take more than 1.5 MB, or if a kind takes more than 20 ms.
#
#   usage: check-image-sizes.sh BUILD_FOLDER
set -euo pipefail
build=${1:?usage: check-image-sizes.sh BUILD_FOLDER}
most_bytes=1500000 most_us=20000
passed=0 failed=0

# Prints the processor time in microseconds that unpacking some packs takes, as an average of 20
# runs. Wall-clock time would depend on other programs that run on the machine.
unpacking_us() { # usage: unpacking_us PACK...
    local all=() seconds
    for _ in {1..20}; do all+=("$@"); done
    TIMEFORMAT=%3U
    seconds=$({ time zstd -q -t "${all[@]}"; } 2>&1)
    echo $((10#${seconds/./} * 1000 / 20))
}
# Checks the packs (compressed files of GPU kernels) of one architecture.
check_packs() { # usage: check_packs NAME PACK...
    local name=$1 bytes=0 us=0 slowest='' kind took
    shift
    bytes=$(cat "$@" | wc -c)
    while read -r kind; do
        local packs=()
        for pack in "$@"; do
            [[ $pack != *."$kind".pack ]] || packs+=("$pack")
        done
        took=$(unpacking_us "${packs[@]}")
        if [ "$took" -ge "$us" ]; then us=$took slowest="${#packs[@]} of kind $kind"; fi
    done < <(printf '%s\n' "$@" | sed 's/.*\.\([^.]*\)\.pack$/\1/' | sort -u)
    printf '%-12s %8d bytes (at most %d) in %d packs; %s unpack in %d us (at most %d)\n' \
        "$name" "$bytes" "$most_bytes" "$#" "$slowest" "$us" "$most_us"
    if [ "$bytes" -le "$most_bytes" ] && [ "$us" -le "$most_us" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
}
for folder in "$build"/*/*/; do
    packs=()
    for pack in "$folder"*.pack; do
        [ ! -e "$pack" ] || packs+=("$pack")
    done
    [ "${#packs[@]}" = 0 ] || check_packs "$(basename "$folder")" "${packs[@]}"
done
[ "$passed" != 0 ] || [ "$failed" != 0 ] || { echo "check-image-sizes: $build has no packs"; exit 1; }
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
