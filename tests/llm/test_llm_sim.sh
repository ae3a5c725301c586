#!/bin/bash
# Tests examples/llm and bench/llm on simulated GPUs, each of which computes one layer of a tiny model.
# Devices for which this build has no kernels are left out. BSMM_TEST_LLM_DEVICES names other devices.
set -eu
devices=()
for device in ${BSMM_TEST_LLM_DEVICES:-sim:gfx942 sim:gfx950 sim:sm_90a sim:sm_100}; do
    if "$BSMM" explain --device $device -f bf16 -M 8 -N 64 -K 64 >/dev/null 2>&1; then devices+=($device); fi
done
if [ ${#devices[@]} = 0 ]; then
    echo "skipped: this build has no kernels for simulated GPUs"
    exit 0
fi
exec python3 "$(dirname "$0")/check_tiny.py" "$(dirname "$BSMM")/bsmm_llm" "${devices[@]}"
