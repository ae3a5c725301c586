#!/bin/bash
# Tests GGUF files as output of quantize, dequantize and convert, byte for byte. $BSMM is the
# command.
tests=$(cd "$(dirname "$0")" && pwd)
source "$tests/scratch.sh"
export PYTHONDONTWRITEBYTECODE=1
holds() { grep -qF -- "$2" "$1" || fail "$1 has no '$2': $(cat "$1")"; }
check() { [[ $(python3 "$tests/gguf_check.py" "${@:2}") == "$1" ]] || fail "gguf_check.py ${*:2}"; }
refuses() {
    if "$BSMM" "${@:2}" >out 2>err; then fail "bsmm ${*:2} succeeds"; fi
    holds err "$1"
}
python3 "$tests/gguf_model.py" in.gguf
python3 "$tests/gguf_model.py" wide.gguf 128
for model in in wide; do
    for pair in mxfp4:compressed-tensors nvfp4:modelopt; do
        format=${pair%:*}
        "$BSMM" quantize $model.gguf -o q.gguf --format $format >/dev/null
        "$BSMM" quantize $model.gguf -o q.safetensors --format $format --recipe ggml --family ${pair#*:} >/dev/null
        check "4 6" $model.gguf q.gguf q.safetensors
    done
done
# A quantized GGUF file must have the values of the quantized matrices. bsmm dequantize must give
# the same values in each plain type.
"$BSMM" quantize in.gguf -o n.gguf --format nvfp4 --tensor '*ffn_down*=mxfp4' --report >report
"$BSMM" compare in.gguf n.gguf --json >rows
[ "$(grep -c '"b":"nvfp4"' rows) $(grep -c '"b":"mxfp4"' rows)" = "3 1" ] || fail "$(cat rows)"
for dtype in F32 F16 BF16; do
    "$BSMM" dequantize n.gguf -o d.gguf --dtype ${dtype,,} --exclude '*_exps*' --exclude token_embd* >/dev/null
    "$BSMM" compare n.gguf d.gguf --json >rows
    [ "$(grep -c "\"b\":\"${dtype,,}\"" rows)" -ge 3 ] || fail "$(cat rows)"
done
"$BSMM" dequantize n.gguf -o d.gguf --dtype f32 >/dev/null
"$BSMM" compare n.gguf d.gguf --json >rows
[ "$(grep -c '"max_error":0.0' rows)" = 10 ] || fail "$(cat rows)"
# bsmm must copy the tensors of another program's GGUF file byte for byte, and decode its blocks.
for fixture in mxfp4 nvfp4; do
    cp "$BSMM_FIXTURE_DIR/$fixture.gguf" .
    "$BSMM" convert $fixture.gguf -o c.gguf --family gguf >/dev/null
    python3 - $fixture.gguf c.gguf <<END || fail "convert $fixture.gguf"
import struct, sys
sys.path.insert(0, "$tests")
from model_values import Gguf
one, other = map(Gguf, sys.argv[1:])
# A GGUF file with nvfp4 always has a tensor of global scales. They are 1 if the input has none.
for name in set(other.tensors) - set(one.tensors):
    data = other.tensors.pop(name)[2]
    assert name.endswith(".scale") and set(struct.unpack(f"<{len(data) // 4}f", data)) == {1}, name
assert one.tensors == other.tensors and one.pairs == other.pairs, (one.tensors, other.tensors)
END
done
"$BSMM" dequantize mxfp4.gguf -o d.gguf --dtype bf16 >/dev/null
check "2 0" mxfp4.gguf d.gguf plain BF16

# bsmm must refuse these calls without making an output file.
python3 "$tests/folder_model.py" in
cp -r in broken
echo '[{}]' >broken/config.json
refuses "broken/config.json: is no JSON object" \
    quantize broken/model.safetensors -o x.gguf --format mxfp4
# llama.cpp loads no file whose embedding has a second-level scale.
refuses "token_embd.weight: cannot be nvfp4 in a GGUF file" \
    quantize in.gguf -o x.gguf --format nvfp4 --tensor token_embd.weight=nvfp4
"$BSMM" quantize in.gguf -o e.gguf --format nvfp4 --tensor token_embd.weight=mxfp4 >/dev/null
refuses "--family: gguf cannot hold mxfp4: only GGUF files have it" quantize in.gguf -o x.safetensors --format mxfp4 --family gguf
refuses "--family: quark cannot hold mxfp4: GGUF files do not have it" quantize in.gguf -o x.gguf --format mxfp4 --family quark
refuses "cannot hold mxfp8" quantize in.gguf -o x.gguf --format mxfp8
refuses "rows must consist of whole blocks of ggml" quantize "$BSMM_FIXTURE_DIR/plain.gguf" -o x.gguf --format nvfp4
[ ! -e x.gguf ] || fail "x.gguf is written"
echo "GGUF: all passed"
