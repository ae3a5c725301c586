#!/bin/bash
# Tests examples/llm: it stays small, and with a tiny model its tokens and logits are those of transformers.
set -eu
here=$(dirname "$0")
wc -l "$here"/../../examples/llm/*.[ch] | while read -r lines file; do
    most=300
    [ "$file" != total ] || most=1500
    [ "$lines" -le $most ] || { echo "FAILED: $file has $lines lines; at most $most are allowed"; exit 1; }
done
# Checks that a model with quantized blocks gives the logits of the decoded values, also if each
# tensor has a scale (nvfp4).
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for format in mxfp4 nvfp4; do
    "$BSMM" quantize "$here/tiny.gguf" -o "$work/q.gguf" --format $format --include '*.ffn_down.weight' >/dev/null
    "$BSMM" dequantize "$work/q.gguf" -o "$work/d.gguf" --dtype f32 >/dev/null
    for file in q d; do
        "$(dirname "$BSMM")/bsmm_llm" --raw --threads=1 "--logits=$work/$file.npy" "$work/$file.gguf" 'Alice was beginning'
    done
    cmp "$work/q.npy" "$work/d.npy" || { echo "FAILED: the logits of a file in $format"; exit 1; }
done
python3 "$here/check_tiny.py" "$(dirname "$BSMM")/bsmm_llm"
