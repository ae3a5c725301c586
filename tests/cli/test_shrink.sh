#!/bin/bash
# Tests that the command leaves no file behind if an input file shrinks while it is read, or if the
# command is killed.
source "$(dirname "$0")/scratch.sh"

# Makes a sparse file of 1 GiB that contains a model. It takes no space on the disk.
make_hole() {
    python3 - <<'PYTHON'
import json, struct
header = json.dumps({"w.weight": {"dtype": "F32", "shape": [2048, 256, 512],
                                  "data_offsets": [0, 1 << 30]}}).encode()
with open("hole.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header)
    file.truncate(8 + len(header) + (1 << 30))
PYTHON
}

# Quantizes the model in the background, and waits until the command has begun to write the output.
begin() {
    "$BSMM" quantize hole.safetensors -o out.safetensors --format nvfp4 --threads 1 >out 2>err &
    pid=$!
    while kill -0 $pid 2>/dev/null; do
        ls -l /proc/$pid/fd 2>/dev/null | grep -e "$work/.*(deleted)$" -e "$work/.*\.tmp$" >/dev/null && return
        sleep 0.01
    done
    fail "it ended before it was disturbed: $(cat err)"
}
left() { ls -A | grep -v -e '^hole.safetensors$' -e '^out$' -e '^err$' | tr '\n' ' '; }

make_hole
begin
truncate -s 1M hole.safetensors
status=0
wait $pid || status=$?
[ $status = 1 ] || fail "exit status $status, expected 1: $(cat err)"
[ "$(cat err)" = "bsmm quantize: hole.safetensors: shrank while it was being read" ] ||
    fail "said: $(cat err)"
[ -z "$(left)" ] || fail "left behind: $(left)"

make_hole
begin
kill -9 $pid
wait $pid 2>/dev/null || true
if python3 -c 'import os; os.open(".", os.O_TMPFILE | os.O_RDWR)' 2>/dev/null; then
    [ -z "$(left)" ] || fail "left behind by kill -9: $(left)"
else
    echo "no O_TMPFILE here: not tested with kill -9"
fi
echo "shrinking files: all passed"
