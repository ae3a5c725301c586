#!/bin/bash
# Tests that tools/check-devices.py accepts this repository. In a copy, the test adds the name of a
# kind of device ("cuda") to different files; the tool must refuse each file that may not name it.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

"$root/tools/check-devices.py"

mkdir -p "$tree"/{cli,bench/compare}
printf 'DEVICE(cpu)\nDEVICE(cuda)\nDEVICE(hip)\n' >"$tree/bench/devices.def"
echo '.option = "cublaslt",' >"$tree/bench/device_cuda_peer.c"
touch "$tree"/bench/device_{cpu,cuda,hip}.c
accept() { # usage: accept FILE TEXT
    echo "$2" >"$tree/$1"
    "$root/tools/check-devices.py" "$tree" >"$tree/output" || { cat "$tree/output"; exit 1; }
    rm "$tree/$1"
}
refuse() { # usage: refuse FILE TEXT
    echo "$2" >"$tree/$1"
    if "$root/tools/check-devices.py" "$tree" >"$tree/output"; then
        echo "$1 may say: $2"
        exit 1
    fi
    grep -q "^$1:" "$tree/output"
    rm "$tree/$1"
}
accept cli/a.c 'if (kind->is_host) ship("a chip"); /* the cpu */'
accept bench/device_texts.h '#define EXAMPLE "cuda:0"'
accept bench/device_cuda.def 'ENTRY(cuInit)'
accept bench/device_hip_peer.c '"libamdhip64.so"'
refuse cli/a.c 'if (strcmp(device, "cuda") == 0)'
refuse cli/a.c '#include "device_cuda.h"'
refuse bench/a.c 'bench_CUDA_open();'
refuse bench/a.c 'dlopen("libcuda.so.1");'
refuse bench/compare/a.c '/* hip:0 */'
refuse bench/a.sh 'bench --peer cublaslt'
refuse bench/cuda_peer.c ''
refuse bench/device_cudart.c ''
rm "$tree/bench/device_hip.c"
"$root/tools/check-devices.py" "$tree" >"$tree/output" && exit 1
grep -q '^bench/devices.def: hip has no bench/device_hip.c' "$tree/output"
echo "check-devices: all passed"
