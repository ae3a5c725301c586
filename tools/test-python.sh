#!/bin/sh
# Builds the Python wheel, installs it into .cache/python and tests it: types, doctests, tests. If
# .cache/python is missing and there is no network, the script says so and tests nothing. If there is
# a network, a failure to make .cache/python fails the script.
#   usage: test-python.sh [BUILD]
set -eu
cd "$(dirname "$0")/.."
# Tells whether there is a connection to the server from which pip gets packages.
has_network() {
    index=${PIP_INDEX_URL:-$(python3 -m pip config get install.index-url 2>/dev/null ||
        python3 -m pip config get global.index-url 2>/dev/null || echo https://pypi.org/simple)}
    python3 - "$index" <<'END'
import socket, sys, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
try:
    socket.create_connection((url.hostname, url.port or (443 if url.scheme == "https" else 80)), 20).close()
except OSError:
    sys.exit(1)
END
}
if ! tools/install-deps.sh build python; then
    if has_network; then
        echo "failed: the packages of python/requirements.txt could not be installed, and there is a network"
        echo "0 passed, 1 failed"
        exit 1
    fi
    echo "skipped: the packages of python/requirements.txt are not in .cache/python, and there is no network"
    echo "0 passed, 0 failed"
    exit 0
fi
tools/make-wheel.sh "${1:-}"
venv=$PWD/.cache/python/bin
"$venv/python3" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall \
    build-wheel/dist/*.whl
"$venv/mypy" --strict --no-error-summary --exclude python/bsmm/torch python/bsmm
# Tests import the installed package, not python/bsmm, which has no extension module.
package=$("$venv/python3" -P -c "import bsmm, os; print(os.path.dirname(bsmm.__file__))")
# Tests of CUDA streams run on the simulator of the build folder.
libcuda=$PWD/${1:-build}/sim/libcuda.so.1
[ ! -e "$libcuda" ] || export BSMM_TEST_LIBCUDA="$libcuda"
status=0
timeout 600 "$venv/python3" -P -m pytest -q -p no:cacheprovider --doctest-modules \
    --ignore="$package/torch" --junit-xml=build-wheel/tests.xml "$package" python/tests --doctest-glob=python.md docs/python.md || status=$?
# The last line has the form that .ci/run counts.
"$venv/python3" - <<'END'
import xml.etree.ElementTree as tree
suite = tree.parse("build-wheel/tests.xml").getroot().find("testsuite")
total, skipped = int(suite.get("tests")), int(suite.get("skipped"))
failed = int(suite.get("failures")) + int(suite.get("errors"))
print(f"{total - failed - skipped} passed, {failed} failed, {skipped} skipped")
END
exit "$status"
