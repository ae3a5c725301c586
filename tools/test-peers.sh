#!/bin/sh
# Compares the checkpoints that the command bsmm writes with the packages transformers,
# compressed-tensors, nvidia-modelopt and amd-quark in .cache/torch. The script does not make this
# folder, because it takes 6 GB; tools/install-deps.sh torch makes it.
#   usage: test-peers.sh BUILD
set -eu
cd "$(dirname "$0")/.."
build=${1:?usage: test-peers.sh BUILD}
venv=$PWD/.cache/torch/bin
if ! "$venv/python3" -P -c "import compressed_tensors, modelopt, quark, transformers" >/dev/null 2>&1; then
    echo "skipped: transformers and the exporters are not in .cache/torch; tools/install-deps.sh torch installs them"
    exit 0
fi
# HF_HUB_OFFLINE keeps the packages from looking for models on the network.
BSMM=$build/bsmm HF_HUB_OFFLINE=1 timeout 900 "$venv/python3" -P -m pytest -q -p no:cacheprovider tests/peers
