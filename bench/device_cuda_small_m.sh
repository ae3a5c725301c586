#!/bin/bash
# Measures GEMMs with few rows of A on a GPU, where weights are read as they are stored. It prints
# one line for each row of the table "Small M" of docs/notes/hopper-small-m.md. The heading of bench
# names the device, the driver and the copy bandwidth.
#
# usage: device_cuda_small_m.sh [BSMM]
set -euo pipefail
bsmm=${1:-build/bsmm}
"$bsmm" devices
for shape in "8192 8192" "4096 14336"; do
    read -r n k <<<"$shape"
    for formats in bf16:mxfp4 mxfp8:mxfp4 bf16:nvfp4 bf16:fp8_block128 bf16:mxfp8 mxfp8:mxfp8 f16:mxfp4 \
        fp8_group128:fp8_block128; do
        "$bsmm" bench --device cuda:0 --cold --format "$formats" --m-range 1 32 -N "$n" -K "$k"
    done
done
