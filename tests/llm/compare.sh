#!/bin/sh
# Compares build/bsmm_llm with transformers on SmolLM2-135M-Instruct. The packages (5 GB) are
# installed into .cache/llm/venv once, with --install. Without them the comparison is skipped.
#   usage: compare.sh BUILD [--install]
set -eu
build=${1:?usage: compare.sh BUILD}
here=$(dirname "$0")
root=$here/../..
folder=$root/.cache/llm
mark=$folder/venv/.packages-$(cksum <"$here/requirements.txt" | cut -d' ' -f1)
if [ "${2:-}" = --install ] && [ ! -e "$mark" ]; then
    "$root/tools/fetch-llm" "$folder"
    echo "installing torch and transformers from PyPI into .cache/llm/venv (5 GB)"
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/python3" -m pip install --quiet --disable-pip-version-check --retries 1 \
        -r "$here/requirements.txt"
    touch "$mark"
fi
if [ ! -e "$mark" ] || [ ! -e "$folder/model.gguf" ]; then
    echo "skipped: torch and transformers are not in .cache/llm; tests/llm/compare.sh $build --install"
    echo "0 passed, 0 failed"
    exit
fi
"$folder/venv/bin/python3" "$here/compare_with_transformers.py" "$build/bsmm_llm" "$folder/model.gguf"
