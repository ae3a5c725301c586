#!/bin/bash
# Runs one of the simulator's tests. usage: run.sh VENV LIBRARY TEST.py ARCH; exits with 77 where what it
# needs is not there.
set -eu
venv=$1 library=$2 test=$3 arch=$4
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -x "$venv/bin/python3" ]; then
    echo "skipped: no Python packages in $venv; tools/install-deps.sh sim"
    exit 77
fi
export SIM_LIBRARY=$library PYTHONDONTWRITEBYTECODE=1 TRITON_CACHE_DIR=$venv/triton-cache TRITON_DEFAULT_FP_FUSION=1
exec "$venv/bin/python3" "$here/$test" "$arch" "$venv/kernels/$arch"
