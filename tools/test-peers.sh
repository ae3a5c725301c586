#!/bin/sh
# Compares the checkpoints that the command bsmm writes with the packages transformers,
# compressed-tensors, nvidia-modelopt and amd-quark in .cache/torch. The script does not make this
# folder, because it takes 6 GB; tools/install-deps.sh torch makes it.
#   usage: test-peers.sh BUILD
set -eu
cd "$(dirname "$0")/.."
build=${1:?usage: test-peers.sh BUILD}
venv=$PWD/.cache/torch/bin
# A package that is installed but cannot be imported is not absent: the tests then fail.
absent="transformers and the exporters"
[ ! -x "$venv/python3" ] || absent=$("$venv/python3" -P -c 'import importlib.util as u
print(*[p for p in ("compressed_tensors", "modelopt", "quark", "transformers") if not u.find_spec(p)])')
if [ -n "$absent" ]; then
    echo "skipped: $absent: not in .cache/torch; tools/install-deps.sh torch installs what is needed"
    echo "0 passed, 0 failed"
    exit 0
fi
# HF_HUB_OFFLINE keeps the packages from looking for models on the network.
BSMM=$build/bsmm HF_HUB_OFFLINE=1 timeout 900 "$venv/python3" -P -m pytest -q -p no:cacheprovider tests/peers
