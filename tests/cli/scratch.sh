# Tests of the command ($BSMM) that write files source this file. They then run in a temporary
# folder, which is deleted when they end.
set -euo pipefail
: "${BSMM:?the command}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; exit 1; }
