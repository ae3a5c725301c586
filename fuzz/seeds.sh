#!/bin/bash
# Lists the seeds of one kind of input, one path a line. usage: seeds.sh NAME
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
find "$root/fuzz/corpus" -path "*/$1/*" -type f
find "$root/tests/fixtures" -name "*.$1" -type f -size -64k 2>/dev/null || true
