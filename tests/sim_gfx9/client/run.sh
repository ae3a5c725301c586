#!/bin/bash
# Compiles and runs client.c, a test program that calls only functions of HIP. The script compiles client.c with the
# declarations in hip.h. If the installed Triton contains AMD's headers, it compiles client.c with these headers too.
# usage: run.sh CC LIBRARY VENV
set -eu
cc=$1 library=$2 venv=$3
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! command -v clang-22 >/dev/null || ! ldconfig -p | grep -q 'libLLVM.so.22.1 '; then
    echo "skipped: no clang-22 or libllvm22; tools/install-deps.sh sim"
    exit 77
fi
build() { # usage: build NAME FLAG...
    local name=$1
    shift
    "$cc" -std=gnu17 -Wall -Wno-unused-result "$@" "$here/client.c" -o "$work/$name" "$library" -Wl,-rpath,"$(dirname "$library")"
}
build own -Wextra -Werror
programs=own
include=("$venv"/lib/python3*/site-packages/triton/backends/amd/include)
if [ -d "${include[0]}/hip" ]; then
    build amd -w -D__HIP_PLATFORM_AMD__ -DAMD_HEADERS -I"${include[0]}"
    programs+=" amd"
else
    echo "no headers of AMD: only the declarations in hip.h are used"
fi
for arch in gfx942 gfx950; do
    clang-22 --target=amdgcn-amd-amdhsa -mcpu=$arch -nogpulib -O2 "$here/kernel.c" -o "$work/$arch.co"
    for program in $programs; do
        for seed in 1 2 3 4 5; do
            BSMM_SIM_ARCH=$arch BSMM_SIM_SEED=$seed "$work/$program" "$work/$arch.co" $arch
        done
    done
done
