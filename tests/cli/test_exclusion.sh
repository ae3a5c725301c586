#!/bin/bash
# Tests ModelOpt's exclude_modules in folders that the command writes and reads. $BSMM is the command.
tests=$(cd "$(dirname "$0")" && pwd)
source "$tests/scratch.sh"
export PYTHONDONTWRITEBYTECODE=1
check() { python3 "$tests/exclusion_check.py" "$@" || fail "exclusion_check.py $*"; }
check make in
words=()
for name in model.layers.0.mlp.up model.layers.0.mlp.up_b model.layers.10.mlp.up model.layers.2.attn.q.inner vision.block.1 a; do
    words+=(--include "$name.weight")
done
"$BSMM" quantize in -o written --family modelopt --format nvfp4 "${words[@]}" >/dev/null
check written written
# The patterns in the input's configuration decide which layers the command quantizes. They may be
# in either of two files, and may have the form of earlier versions of ModelOpt, in which a name
# also covers the modules inside it, such as model.layers.2.attn.q.inner.
lists=('["a.b*", "lm_head", "model.layers.0.attn*", "model.layers.0.mlp.down", "model.layers.1.*", "model.layers.2.attn.[q]", "*q2", "t?wer*", "vision.block.1[!.]"]'
    '["a.b", "lm_head", "model.layers.0.attn", "model.layers.0.mlp.down", "model.layers.1", "model.layers.2.attn.[q]", "model.layers.2.attn.q2", "tower", "vision.block.10"]')
# Python may write NaN and half surrogate pairs in other members, and a key twice.
odd='"a": NaN, "b": "\ud800", "c": [{"quantization_config": 1}]'
for list in "${lists[@]}"; do
    rm -rf in/hf_quant_config.json out1 out2
    echo "{$odd, \"quantization_config\": 0, \"quantization_config\": {\"quant_method\": \"modelopt\", \"ignore\": $list}}" >in/config.json
    "$BSMM" quantize in -o out1 --family compressed-tensors --format mxfp4 >/dev/null 2>err
    grep -qF "the layers that the input's configuration for ModelOpt excludes stay as they are" err || fail "$(cat err)"
    check kept out1
    echo "{$odd, \"quantization\": {\"exclude_modules\": $list}}" >in/hf_quant_config.json
    echo "{}" >in/config.json
    "$BSMM" quantize in -o out2 --family compressed-tensors --format mxfp4 >/dev/null 2>err
    check kept out2
done
# The user's own options take precedence. Lists of other quantization methods are not read as
# ModelOpt's patterns.
"$BSMM" quantize in -o out3 --format mxfp4 --family compressed-tensors --include '*' | grep -qF "17 weights" || fail "--include"
rm in/hf_quant_config.json
echo '{"quantization_config": {"quant_method": "compressed-tensors", "ignore": ["model*"]}}' >in/config.json
"$BSMM" quantize in -o out4 --format mxfp4 --family compressed-tensors | grep -qF "16 weights" || fail "another method"
echo "exclusion: all passed"
