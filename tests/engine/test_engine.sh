#!/bin/bash
# Runs the engine of examples/engine on the CPU and, if their kernels are in the build, on simulated
# GPUs. The engine itself checks its results against their error bound.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
engine=$(dirname "$BSMM")/bsmm_engine
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
check() { # usage: check WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$work/out" 2>&1; then echo "ok: $what"; else echo "FAILED: $what" && cat "$work/out" && failed=1; fi
}
# Checks that the engine serves batches of 1 to 512 rows and prints TEXT.
serves() { # usage: serves TEXT ENGINE_ARGUMENT...
    "$engine" "${@:2}" >"$work/said" 2>&1 && grep -qF "$1" "$work/said" && grep -q '^ *512 ' "$work/said" &&
        tail -n 1 "$work/said" | grep -q '^passed' || { cat "$work/said"; return 1; }
}
refuses() { # usage: refuses TEXT ENGINE_ARGUMENT...
    ! "$engine" "${@:2}" >"$work/said" 2>&1 && grep -qF "$1" "$work/said" || { cat "$work/said"; return 1; }
}
has_kernels() { # usage: has_kernels DEVICE
    # `bsmm explain` fails if no kernel accepts the product. Only its output counts here, so its
    # exit status is ignored.
    ! grep -qE "built without (AMD|CUDA) kernels" <<<"$("$BSMM" explain --device "$1" --format mxfp4 -M 1 -N 64 -K 64 2>&1)"
}

python3 "$here/make_model.py" "$work/model.safetensors" 2 128 256
python3 "$here/make_model.py" "$work/small.safetensors" 1 64 96
"$BSMM" quantize "$work/model.safetensors" --format nvfp4 --family modelopt -o "$work/quantized.safetensors" >"$work/out" 2>&1 ||
    { cat "$work/out"; failed=1; }
for format in mxfp4 mxfp8 nvfp4 fp8_block128 bf16; do
    check "quantized to $format on the cpu" serves "in $format on cpu, one plan for any number of rows" \
        "$work/model.safetensors" cpu "$format"
done
check "a checkpoint in nvfp4" serves "in nvfp4 on cpu" "$work/quantized.safetensors"
for row in "sim:sm_90a CUDA graphs" "sim:gfx942 plain runs"; do
    device=${row%% *}
    if ! has_kernels "$device"; then echo "skipped: no kernels for $device"; continue; fi
    check "classes of row counts on $device" \
        serves "in mxfp4 on $device, one plan per class of row counts, ${row#* }" "$work/small.safetensors" "$device"
done
check "no file" refuses "BSMM_E_IO" "$work/absent.safetensors"
check "no format" refuses "mxfp5" "$work/small.safetensors" cpu mxfp5
check "no device" refuses "sim:none" "$work/small.safetensors" sim:none
printf '\2\0\0\0\0\0\0\0{}' >"$work/empty.safetensors"
check "no layers" refuses "has no model.layers.0.mlp.up_proj.weight" "$work/empty.safetensors"
exit $failed
