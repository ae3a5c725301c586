#!/bin/bash
# Tests the command on simulated GPUs. The command must list them, give the same results as on the
# CPU, and refuse the name of a device that does not exist.
set -uo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
check() { # usage: check WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$work/out" 2>&1; then echo "ok: $what"; else echo "FAILED: $what" && cat "$work/out" && failed=1; fi
}
refuses() { # usage: refuses TEXT COMMAND...
    local text=$1
    shift
    ! "$@" >"$work/said" 2>&1 && grep -qF "$text" "$work/said" || { cat "$work/said"; return 1; }
}
lists() { "$BSMM" devices >"$work/said" && grep -q "^$1 " "$work/said"; }
# Runs the command by its name without a folder, in another folder.
lists_by_name() {
    (cd "$work" && PATH=$folder:$PATH && "$(basename "$BSMM")" devices) >"$work/said" && grep -q "^$1 " "$work/said"
}
folder=$(cd "$(dirname "$BSMM")" && pwd)
python3 - "$work" <<'END'
import json, random, struct, sys
def write(name, rows, cols, seed):
    chosen = random.Random(seed)
    data = struct.pack(f"<{rows * cols}f", *(chosen.uniform(-1, 1) for _ in range(rows * cols)))
    head = json.dumps({"x.weight": {"dtype": "F32", "shape": [rows, cols], "data_offsets": [0, len(data)]}}).encode()
    open(f"{sys.argv[1]}/{name}.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + data)
write("a", 40, 96, 1), write("b", 50, 96, 2)
END
built=
for arch in gfx942 gfx950 sm_80 sm_90a sm_100 sm_120; do
    check "devices lists sim:$arch" lists "sim:$arch"
    check "devices lists sim:$arch if the shell finds bsmm by PATH" lists_by_name "sim:$arch"
    "$BSMM" explain --device "sim:$arch" --format mxfp4 -M 8 -N 64 -K 64 >"$work/explained" 2>&1
    if grep -qE "built without (AMD|CUDA) kernels" "$work/explained"; then echo "skipped: no kernels for $arch"; continue; fi
    built+=" $arch"
    check "explain --device sim:$arch names a kernel" grep -qE "^(cuda|hip)_[a-z0-9_]+ +taken" "$work/explained"
    for device in "sim:$arch" "sim:$arch:1"; do
        check "matmul on $device keeps its bound" "$BSMM" matmul "$work/a.safetensors:x.weight" "$work/b.safetensors:x.weight" \
            --device "$device" --check -o "$work/d.npy"
        "$BSMM" quantize "$work/a.safetensors" --format mxfp4 --device "$device" -o "$work/there.safetensors" >"$work/out" 2>&1 &&
            "$BSMM" quantize "$work/a.safetensors" --format mxfp4 -o "$work/here.safetensors" >>"$work/out" 2>&1
        check "quantize on $device writes the CPU's bytes" cmp "$work/there.safetensors" "$work/here.safetensors"
        "$BSMM" dequantize "$work/here.safetensors" --device "$device" -o "$work/there.safetensors" >"$work/out" 2>&1 &&
            "$BSMM" dequantize "$work/here.safetensors" -o "$work/plain.safetensors" >>"$work/out" 2>&1
        check "dequantize on $device writes the CPU's bytes" cmp "$work/there.safetensors" "$work/plain.safetensors"
    done
done
if [[ $built == *gfx942* ]]; then
    "$BSMM" bench --challenge --device sim:gfx942 -M 256 -N 128 -K 256 --json >"$work/bench" 2>&1
    check "bench --challenge runs the kernel for FP8 groupwise products" grep -q '"kernel":"hip_cdna_fp8"' "$work/bench"
    check "bench --challenge compares all outputs of a small shape" grep -q '"checked":32768' "$work/bench"
    check "bench --challenge says that a model is not comparable" grep -q '"published_note":"not comparable: model"' "$work/bench"
    "$BSMM" bench --device sim:gfx942 --quantize --format mxfp4 -M 16 -K 64 --json >"$work/bench" 2>&1
    check "bench --quantize takes its times on a simulated GPU from a model" grep -q '"modelled":true' "$work/bench"
    "$BSMM" bench --device sim:gfx942 --format mxfp4 -M 16 -N 64 -K 64 --fidelity --json >"$work/bench" 2>&1
    check "bench --fidelity lists executed opcodes of AMD" grep -q '"opcode":"s_waitcnt","executed":[1-9][0-9]*,"vouched":"yes"' "$work/bench"
    # The list is sorted by name, so this opcode is its first row.
    check "bench --fidelity begins with the first opcode" grep -q '"opcode":"buffer_load_dwordx4","executed":[1-9]' "$work/bench"
    "$BSMM" bench --device sim:gfx942 --format mxfp4 -M 16 -N 64 -K 64 --fidelity >"$work/bench" 2>&1
    check "bench on a GPU begins with its title" grep -q '^bsmm simulator of gfx942, 304 SMs, gfx942 ' "$work/bench"
    check "an empty line precedes the opcodes" grep -qzP '\n\nopcode +executed +vouched for\n' "$work/bench"
fi
if [[ $built == *sm_90a* ]]; then
    "$BSMM" bench --device sim:sm_90a --format fp8_block128 -M 64 -N 64 -K 128 --json >"$work/bench" 2>&1
    check "bench on sim:sm_90a runs the kernel of that GPU" grep -q '"kernel":"cuda_sm90a_fp8' "$work/bench"
    "$BSMM" bench --device sim:sm_90a --format mxfp4 -M 16 -N 64 -K 64 --fidelity --json >"$work/bench" 2>&1
    check "bench --fidelity lists executed opcodes" grep -q '"opcode":"bar.sync","executed":[1-9][0-9]*,"vouched":"yes"' "$work/bench"
    check "bench on sim:sm_90a takes its times from a model" grep -q '"modelled":true' "$work/bench"
fi
if [[ $built == *sm_80* ]]; then
    "$BSMM" bench --device sim:sm_80 --format mxfp4 -M 16 -N 64 -K 64 --json >"$work/bench" 2>&1
    check "bench says that no model timed it" grep -q '"modelled":false' "$work/bench"
fi
# A copy of the command in another folder finds no simulators.
mkdir "$work/alone"
cp "$BSMM" "$work/alone/bsmm"
if ! ldd "$BSMM" | grep -q libbsmm && [[ $built == *gfx942* ]]; then
    check "a command without simulators says so" refuses "no simulator of AMD GPUs here: sim/libamdhip64.so is neither beside" \
        "$work/alone/bsmm" matmul "$work/a.safetensors:x.weight" "$work/b.safetensors:x.weight" --device sim:gfx942 -o "$work/d.npy"
fi
check "--fidelity without a simulated device" refuses "value of --device is cpu" "$BSMM" bench --format mxfp4 -M 8 -N 8 -K 32 --fidelity
check "a model that is none" refuses "sim:gfx942, sim:gfx950, sim:sm_80, sim:sm_90a, sim:sm_100, sim:sm_120" "$BSMM" matmul "$work/a.safetensors:x.weight" \
    "$work/b.safetensors:x.weight" --device sim:gfx90a -o "$work/d.npy"
check "a number that is none" refuses "one with :NUMBER" "$BSMM" matmul "$work/a.safetensors:x.weight" \
    "$work/b.safetensors:x.weight" --device sim:gfx950:x -o "$work/d.npy"
exit "$failed"
