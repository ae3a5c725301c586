#!/bin/bash
# Tests bsmm compare: errors that compare_check.py computes from the same files, tensors of one model
# only, refusals and the drawing. $BSMM is the command.
tests=$(cd "$(dirname "$0")" && pwd)
source "$tests/scratch.sh"
export PYTHONDONTWRITEBYTECODE=1
holds() { grep -qF -- "$2" "$1" || fail "$1 has no '$2': $(cat "$1")"; }
# Compares two models and expects three numbers: of tensors that both models have, of tensors that
# only one model has, and of tensors with clipped elements.
check() {
    "$BSMM" compare "$1" "$2" --json >rows || fail "compare $1 $2"
    numbers=$(python3 "$tests/compare_check.py" "$1" "$2" <rows) || fail "compare $1 $2"
    [[ $numbers == $3 ]] || fail "compare $1 $2: $numbers"
}
refuses() {
    if "$BSMM" compare "${@:2}" >out 2>err; then fail "compare ${*:2} succeeds"; fi
    holds err "$1"
    [ ! -s out ] || fail "compare ${*:2} prints $(cat out)"
}
python3 "$tests/folder_model.py" in
ct=(--family compressed-tensors)
"$BSMM" quantize in -o mixed "${ct[@]}" --format nvfp4 --tensor '*.down_proj.*=mxfp8' --shard-size 40000 >/dev/null
"$BSMM" quantize in -o modelopt --family modelopt --format nvfp4 >/dev/null
"$BSMM" quantize in/model.safetensors -o few.safetensors "${ct[@]}" --format mxfp4 >/dev/null
"$BSMM" dequantize mixed -o plain --dtype bf16 >/dev/null

check in mixed "21 0 *"
check in modelopt "21 0 *"
check in/model.safetensors few.safetensors "21 0 [1-9]*"
check mixed modelopt "21 0 *"
check mixed plain "21 0 *"
# A model is equal to itself.
"$BSMM" compare mixed mixed --json >rows
[ "$(grep -c '"sqnr_db":null,"max_error":0.0,"relative":0.0' rows)" = 21 ] || fail "$(cat rows)"

# Compares GGUF files that contain a quantized type of ggml. Some tensors have different types in
# the two files, and some are in one file only.
cp "$BSMM_FIXTURE_DIR/plain.gguf" .
"$BSMM" dequantize plain.gguf -o plain.safetensors --dtype bf16 --include '*.weight' >/dev/null
check plain.gguf plain.safetensors "6 0 0"
python3 - <<'END'
import json, struct
def write(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
floats = lambda *values: struct.pack(f"<{len(values)}f", *values)
both = {"w": ("F32", [2, 2], floats(1, 2, 3, -4)), "flag": ("BOOL", [1], b"\1"), "empty": ("F32", [0], b"")}
write("a.safetensors", both | {"old": ("F32", [1], floats(1))})
write("b.safetensors", both | {"w": ("F32", [2, 2], floats(1, 2, 3, -2)), "new": ("F32", [1], floats(1))})
write("nan.safetensors", both | {"w": ("F32", [2, 2], floats(1, 2, 3, float("nan"))), "flag": ("BOOL", [1], b"\0")})
write("long.safetensors", both | {"w": ("F32", [1, 4], floats(1, 2, 3, -4))})
write("broken.safetensors", both | {"x.weight_packed": ("U8", [2, 16], bytes(32)), "x.weight_scale": ("U8", [2, 2], bytes(4))})
write("other.safetensors", {"x": ("F32", [1], floats(1))})
END
"$BSMM" compare a.safetensors b.safetensors >out
cat >wanted <<'END'
tensor  A     B     SQNR dB  max error  relative  clipped
w       f32   f32      8.75          2       0.5   0.000%
empty   F32   F32       inf          0         0   0.000%
flag    BOOL  BOOL      inf          0         0   0.000%
new     -     F32         -          -         -        -
old     F32   -           -          -         -        -
END
cmp out wanted || fail "$(cat out)"
# A tensor with a NaN counts as the worst one. Tensors whose type has no values are compared byte by
# byte.
"$BSMM" compare a.safetensors nan.safetensors >out
[ "$(awk '$4 == "nan" || $4 == "-nan" { print $1 }' out | xargs)" = "flag w" ] || fail "$(cat out)"
refuses "w: its shape is 2x2 in a.safetensors and 1x4 in long.safetensors" a.safetensors long.safetensors
refuses "have no tensor of the same name" a.safetensors other.safetensors
refuses "nowhere" a.safetensors nowhere
refuses "x.weight_scale" a.safetensors broken.safetensors

# The plot has a point for each tensor whose error is not zero, and the tensor's name below the
# axis.
"$BSMM" compare in mixed --plot "it's.gp" >/dev/null
holds "it's.gp" "set output 'it''s.svg'"
holds "it's.gp" "title 'nvfp4'"
holds "it's.gp" "'model.layers.0.mlp.down_proj.weight' 14"
[ "$(grep -cE '^[0-9]+ [0-9.e-]+ [0-9.e-]+$' "it's.gp")" = 14 ] || fail "$(cat "it's.gp")"
if "$BSMM" compare a.safetensors a.safetensors --plot x.gp >out 2>err; then fail "equal models are drawn"; fi
holds err "no tensor has a finite error to draw"
refuses "No such file or directory" in mixed --plot nowhere/x.gp
if command -v gnuplot >/dev/null; then
    "$BSMM" compare in mixed --plot drawn.svg >/dev/null 2>err || fail "$(cat err)"
    [ ! -s err ] || fail "gnuplot: $(cat err)"
    holds drawn.svg "</svg>"
    holds drawn.svg "bsmm compare: in with mixed"
    # A drawing does not replace either input.
    cp few.safetensors kept.safetensors
    refuses "few.safetensors: is the input's file few.safetensors" in few.safetensors --plot few.safetensors
    refuses "few.safetensors: is the input's file few.safetensors" few.safetensors in --plot few.safetensors
    cmp few.safetensors kept.safetensors || fail "the drawing replaces its input"
fi
echo "compare: all passed"
