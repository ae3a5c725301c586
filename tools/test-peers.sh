#!/bin/sh
# Compares the checkpoints that the command bsmm writes with the packages transformers, compressed-tensors,
# nvidia-modelopt and amd-quark in .cache/torch. That folder takes 6 GB, so that the script only uses it:
# tools/install-deps.sh torch makes it.
#   usage: test-peers.sh BUILD
set -eu
cd "$(dirname "$0")/.."
build=${1:?usage: test-peers.sh BUILD}
venv=$PWD/.cache/torch/bin
if ! "$venv/python3" -P -c "import compressed_tensors, modelopt, quark, transformers" >/dev/null 2>&1; then
    echo "skipped: transformers and the exporters are not in .cache/torch; tools/install-deps.sh torch installs them"
    exit 0
fi
# None of the packages may look for models in the network.
BSMM=$build/bsmm HF_HUB_OFFLINE=1 timeout 900 "$venv/python3" -P -m pytest -q -p no:cacheprovider tests/peers
