#!/bin/bash
# Tests that tools/check-names.py accepts this repository. In a copy of some folders, the test adds
# files and rows of the kernel table whose names break the grammar. The tool must name each of them.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
export PYTHONDONTWRITEBYTECODE=1

"$root/tools/check-names.py"

(cd "$root" && tar c docs/ARCHITECTURE.md src/core/kernels.def src/cpu src/cuda src/amdgpu tests/unit) | tar x -C "$tree"
"$root/tools/check-names.py" "$tree"
refuse() { # usage: refuse NAME: the tool must complain about NAME
    if "$root/tools/check-names.py" "$tree" >"$tree/output"; then
        echo "$1 is accepted"
        exit 1
    fi
    grep -q "$1" "$tree/output" || { echo "no complaint about $1:"; cat "$tree/output"; exit 1; }
}
refuse_file() { # usage: refuse_file PATH
    touch "$tree/$1"
    refuse "$1"
    rm "$tree/$1"
}
refuse_row() { # usage: refuse_row KERNEL FOLDER: the row has a file, but its name breaks the grammar
    cp "$tree/src/core/kernels.def" "$tree/kernels.def"
    echo "KERNEL($1)" >>"$tree/src/core/kernels.def"
    touch "$tree/src/$2/$1.c"
    refuse "kernels.def: $1 "
    rm "$tree/src/$2/$1.c"
    mv "$tree/kernels.def" "$tree/src/core/kernels.def"
}
refuse_file src/cpu/kernels/cpu_avx2_bf16dot.c
refuse_file src/cpu/kernels/helper.h
refuse_file src/cuda/host/cuda_sm90a_wide.c
refuse_file src/amdgpu/host/hip_f16.c
refuse_file src/cpu/pack/columns_avx2.c
refuse_file src/cpu/pack/pack_avx2_columns.c
refuse_file src/cpu/engine/engine_f32fma_body.inc
refuse_file tests/unit/test_anything.c
refuse_file tests/unit/cpu_helper.c
refuse_row cpu_sse_f32 cpu/kernels
refuse_row cpu_avx2_dot cpu/kernels
refuse_row cpu_avx2 cpu/kernels
refuse_row cuda_sm70_bf16 cuda/host
refuse_row cuda_sm90a_tensor cuda/host
refuse_row hip_gfx950 amdgpu/host
sed -i '/cuda_sm90a_mixed/d' "$tree/src/core/kernels.def"
refuse src/cuda/host/cuda_sm90a_mixed.c
rm "$tree/src/cpu/kernels/cpu_f32.c"
refuse src/cpu/kernels/cpu_f32.c
