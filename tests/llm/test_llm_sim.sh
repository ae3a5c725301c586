#!/bin/bash
# Tests examples/llm and bench/llm on simulated GPUs, each of which computes one layer of a tiny model.
set -eu
exec python3 "$(dirname "$0")/check_tiny.py" "$(dirname "$BSMM")/bsmm_llm" sim:gfx942 sim:gfx950 sim:sm_90a sim:sm_100
