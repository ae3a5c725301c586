# Sourced by tests of the command ($BSMM) that write files: in a folder of their own, which goes when
# they end.
set -euo pipefail
: "${BSMM:?the command}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; exit 1; }
