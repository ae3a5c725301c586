#!/bin/bash
# Tests the tokenizers of GGUF files that the command makes of folders of Hugging Face models. $BSMM
# is the command.
tests=$(cd "$(dirname "$0")" && pwd)
source "$tests/scratch.sh"
export PYTHONDONTWRITEBYTECODE=1
python3 "$tests/gguf_vocab_check.py" "$BSMM" "$tests/../golden/gguf_model/llama" || fail "gguf_vocab_check.py"
echo "tokenizers of GGUF files: all passed"
