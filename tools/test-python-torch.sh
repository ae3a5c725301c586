#!/bin/sh
# Tests the torch operators of the wheel that tools/test-python.sh built, in .cache/torch, and
# compares the wheel with torchao. The script does not make this folder, because it takes several
# GB; tools/install-deps.sh torch makes it.
#   usage: test-python-torch.sh
set -eu
cd "$(dirname "$0")/.."
if [ ! -x .cache/torch/bin/python3 ]; then
    echo "skipped: there is no torch in .cache/torch; tools/install-deps.sh torch installs it"
    echo "0 passed, 0 failed"
    exit 0
fi
ls build-wheel/dist/*.whl >/dev/null 2>&1 || tools/make-wheel.sh
venv=$PWD/.cache/torch/bin
"$venv/python3" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall \
    build-wheel/dist/*.whl
package=$("$venv/python3" -P -c "import bsmm, os; print(os.path.dirname(bsmm.__file__))")
timeout 600 "$venv/python3" -P -m pytest -q -p no:cacheprovider --doctest-modules \
    "$package/torch" python/tests/test_torch.py python/tests/test_torch_cuda.py python/tests/test_torchao.py
