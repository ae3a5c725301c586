#!/bin/bash
# Tests examples/llm with a tiny model: its tokens and logits must be those of transformers.
set -eu
exec python3 "$(dirname "$0")/check_tiny.py" "$(dirname "$BSMM")/bsmm_llm"
