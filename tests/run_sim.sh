#!/bin/bash
# Runs a Python test of a simulator. It exits with 77 where something that the test needs is missing.
# A library named *amdhip64* also needs clang-22 and libllvm22.
# A simulator writes the opcodes that the test executes to VENV/kernels/ARCH/TEST.fidelity, which is
# kept only if the test succeeds. A test may write TEST.agreed beside it (sim_vouched.py).
# usage: run_sim.sh VENV LIBRARY TEST.py ARCH
set -eu
venv=$1 library=$2 test=$3 arch=$4
skip() {
    echo "skipped: $1; tools/install-deps.sh sim"
    exit 77
}
case $library in
*amdhip64*)
    command -v clang-22 >/dev/null || skip "clang-22 is not installed"
    ldconfig -p | grep -q 'libLLVM.so.22.1 ' || skip "libllvm22 is not installed"
    ;;
esac
[ -x "$venv/bin/python3" ] || skip "no Python packages in $venv"
export SIM_LIBRARY=$library PYTHONDONTWRITEBYTECODE=1 TRITON_CACHE_DIR=$venv/triton-cache TRITON_DEFAULT_FP_FUSION=1
mkdir -p "$venv/kernels/$arch"
export BSMM_SIM_FIDELITY=$venv/kernels/$arch/$(basename "$test" .py).fidelity
rm -f "$BSMM_SIM_FIDELITY" "${BSMM_SIM_FIDELITY%.fidelity}.agreed"
status=0
"$venv/bin/python3" "$test" "$arch" "$venv/kernels/$arch" || status=$?
[ "$status" = 0 ] || rm -f "$BSMM_SIM_FIDELITY"
exit "$status"
