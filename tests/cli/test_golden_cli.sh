#!/bin/bash
# Compares what some hundred commands print and write with tests/golden/choices/cli.txt
# (golden_commands.py). $BSMM is the command.
tests=$(cd "$(dirname "$0")" && pwd)
source "$tests/scratch.sh"
export PYTHONDONTWRITEBYTECODE=1
python3 "$tests/golden_commands.py" "$BSMM" "$tests/../fixtures" "$tests/../golden/choices/cli.txt" || fail "see above"
