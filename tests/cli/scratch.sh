# Test scripts of the command ($BSMM) that write files source this file. It makes a temporary
# folder, changes into it, and deletes it when the script ends.
set -euo pipefail
: "${BSMM:?the command}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; exit 1; }

# usage: lacks_cublaslt FILE. Succeeds if bench has written to FILE that it cannot load cuBLASLt,
# which is optional. On the emulated GPU this is an error, because $BSMM_BENCH_CUBLASLT names a
# library there.
lacks_cublaslt() {
    [ -z "${BSMM_BENCH_CUBLASLT:-}" ] && grep -qF -- "--peer: " "$1" || fail "with cuBLASLt: $(cat "$1")"
    echo "no peer: no cuBLASLt here"
}
