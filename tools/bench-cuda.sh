#!/bin/bash
# Measures all GPU results of docs/notes/hopper-*.md in one call, which takes some minutes. Prints a
# line that describes the machine, then JSON lines with the keys of `bsmm bench --json`.
#   usage: bench-cuda.sh BUILD_FOLDER [DEVICE [PART...]]   (parts: groupwise mx exact fast small recode)
set -uo pipefail
bsmm=${1:?usage: bench-cuda.sh BUILD_FOLDER [DEVICE [PART...]]}/bsmm
device=${2:-cuda:0}
shift $(($# < 2 ? $# : 2))
parts=("$@")
[ ${#parts[@]} != 0 ] || parts=(groupwise mx exact fast small recode)
failed=0
bench() { "$bsmm" bench --device "$device" --json "$@" || failed=$((failed + 1)); }
product() { bench --peer cublaslt "$@"; }
# Measures square products. Their values are normally distributed and quantized, so that the block
# scales differ as much as those of real weights.
square() { for size in 4096 8192; do product -M $size -N $size -K $size --quantized-data "$@"; done; }

# Measures the shapes (M, N, K) of AMD's FP8 groupwise challenge, and two square ones.
groupwise() {
    local shape
    for shape in "1024 1536 7168" "1024 4608 7168" "6144 1536 7168" "6144 4608 7168" \
        "1024 7168 256" "6144 7168 256" "4096 4096 4096" "8192 8192 8192"; do
        set -- $shape
        product --format fp8_groupwise -M "$1" -N "$2" -K "$3"
    done
}
# Measures MX formats. The last product has random codes and scales, as in Triton's block-scaled tutorial.
# These block scales differ too much for the kernels that use the FP8 tensor cores.
mx() {
    local format
    for format in mxfp4 mxfp6_e2m3 mxfp6_e3m2; do square --format $format; done
    product -M 4096 -N 4096 -K 4096 --format mxfp4
}
exact() {
    for format in mxfp8 nvfp4 mixed bf16:mxfp4 bf16:nvfp4 bf16:mxfp8; do square --format $format; done
}
fast() { square --format mxfp8 --fast; }
small() {
    local format m
    for format in bf16:mxfp4 bf16:nvfp4 bf16:mxfp8 bf16:fp8_block128 mxfp8:mxfp4 mxfp8:mxfp8; do
        for m in 1 2 4 8 16 32; do
            product --format $format -M $m -N 8192 -K 8192
            product --format $format -M $m -N 4096 -K 14336
        done
    done
}
recode() {
    local format from
    for format in mxfp8 mxfp4 nvfp4 fp8_group128; do
        for from in bf16 f16 f32; do bench --quantize --from $from --format $format -M 8192 -K 8192; done
        bench --dequantize --format $format --out bf16 -M 8192 -K 8192
    done
    for from in bf16 f16 f32; do bench --quantize --amax --from $from --format nvfp4 -M 8192 -K 8192; done
    for format in mxfp8 mxfp4 nvfp4; do bench --relayout nv_128x4 --format $format -M 8192 -K 8192; done
    bench --relayout cublas_vec128 --format fp8_group128 -M 8192 -K 8192
}

"$bsmm" devices --json | grep "\"$device\""
command -v nvidia-smi >/dev/null &&
    nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,power.limit --format=csv,noheader >&2
for part in "${parts[@]}"; do "$part"; done
[ "$failed" = 0 ] || { echo "$failed measurements failed" >&2; exit 1; }
