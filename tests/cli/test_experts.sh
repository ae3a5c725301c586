#!/bin/bash
# Tests folders with experts that are fused into tensors of three dimensions.
tests=$(cd "$(dirname "$0")" && pwd)
source "$tests/scratch.sh"
export PYTHONDONTWRITEBYTECODE=1
python3 "$tests/experts_model.py" outputs
python3 "$tests/experts_model.py" inputs inputs
"$BSMM" quantize outputs -o quantized --family gpt-oss-hf --format mxfp4 >said 2>&1 || fail "$(cat said)"
grep -q "3 weights quantized, 2 kept" said || fail "$(cat said)"
python3 "$tests/folder_check.py" experts quantized outputs || fail "the experts"
# The rows of these experts are inputs, so blocks along the rows would be along the outputs. Such
# experts are copied with a warning.
"$BSMM" quantize inputs -o copied --family gpt-oss-hf --format mxfp4 >said 2>&1 || fail "$(cat said)"
grep -q "1 weight quantized, 4 kept" said || fail "$(cat said)"
for name in gate_up_proj down_proj; do
    grep -q "warning: model.layers.0.mlp.experts.$name: is copied, because its rows are inputs" said || fail "$(cat said)"
done
"$BSMM" compare inputs copied --json >rows
[ "$(grep -c '"max_error":0.0,' rows)" = 4 ] || fail "$(cat rows)"
echo "experts: all passed"
