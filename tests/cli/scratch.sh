# Test scripts of the command ($BSMM) that write files source this file. It makes a temporary
# folder, changes into it, and deletes it when the script ends.
set -euo pipefail
: "${BSMM:?the command}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; exit 1; }
