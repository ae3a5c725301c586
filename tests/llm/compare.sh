#!/bin/sh
# Compares build/bsmm_llm with transformers on SmolLM2-135M-Instruct. The packages (5 GB) are
# installed into .cache/llm/venv once. Without a network the comparison is skipped.
#   usage: compare.sh BUILD
set -eu
build=${1:?usage: compare.sh BUILD}
here=$(dirname "$0")
root=$here/../..
folder=$root/.cache/llm
mark=$folder/venv/.packages-$(cksum <"$here/requirements.txt" | cut -d' ' -f1)
prepare() {
    "$root/tools/fetch-llm" "$folder" || return
    [ -e "$mark" ] && return
    echo "installing torch and transformers from PyPI into .cache/llm/venv (5 GB)"
    python3 -m venv "$folder/venv" &&
        "$folder/venv/bin/python3" -m pip install --quiet --disable-pip-version-check --retries 1 \
            -r "$here/requirements.txt" && touch "$mark"
}
if ! prepare; then
    echo "skipped: the model or the packages cannot be fetched without a network"
    echo "0 passed, 0 failed"
    exit
fi
"$folder/venv/bin/python3" "$here/compare_with_transformers.py" "$build/bsmm_llm" "$folder/model.gguf"
