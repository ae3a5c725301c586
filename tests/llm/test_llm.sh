#!/bin/bash
# Tests examples/llm: it stays small, and with a tiny model its tokens and logits are those of transformers.
set -eu
here=$(dirname "$0")
wc -l "$here"/../../examples/llm/*.[ch] | while read -r lines file; do
    most=300
    [ "$file" != total ] || most=1500
    [ "$lines" -le $most ] || { echo "FAILED: $file has $lines lines; at most $most are allowed"; exit 1; }
done
exec python3 "$here/check_tiny.py" "$(dirname "$BSMM")/bsmm_llm"
