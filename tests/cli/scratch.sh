# Test scripts of the command ($BSMM) that write files source this file. It makes a temporary
# folder, changes into it, and deletes it when the script ends.
set -euo pipefail
: "${BSMM:?the command}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; exit 1; }

# Fails unless bench said in file $1 that it cannot load cuBLASLt, which is optional. The emulated
# GPU always has one, which $BSMM_BENCH_CUBLASLT names, so there this function always fails.
lacks_cublaslt() {
    [ -z "${BSMM_BENCH_CUBLASLT:-}" ] && grep -qF -- "--peer: " "$1" || fail "with cuBLASLt: $(cat "$1")"
    echo "no peer: no cuBLASLt here"
}
