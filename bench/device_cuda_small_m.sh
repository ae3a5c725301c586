#!/bin/bash
# Few rows of A times weights as they are stored, on a GPU: every row of the table "Small M" of
# docs/notes/hopper-small-m.md, one line each. bench's heading has the device, driver and copy bandwidth.
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
