#!/bin/bash
# Tests the shares of the work that the progress bar shows while files are compared and written. The
# command runs on a terminal, and its clock moves on by one second whenever it is read.
source "$(dirname "$0")/many.sh"
clock=$(dirname "$bsmm")/tests/fake_clock/libfake_clock.so
[ -e "$clock" ] || { echo "skipped: the build has no fake clock"; exit 0; }
python3 - <<'END'
import json, struct
def write(name, tensors):
    header, at = {}, 0
    for tensor, (rows, cols) in tensors.items():
        header[tensor] = {"dtype": "F32", "shape": [rows, cols], "data_offsets": [at, at + 4 * rows * cols]}
        at += 4 * rows * cols
    text = json.dumps(header).encode()
    open(name, "wb").write(struct.pack("<Q", len(text)) + text + struct.pack("<f", 0.5) * (at // 4))
write("in.safetensors", {"a.weight": (8, 64), "b.weight": (4, 64), "rest": (4, 64)})
END
# Runs a command on a terminal. Prints the titles and shares that its progress bar showed.
shares() {
    python3 - env LD_PRELOAD="$clock" ASAN_OPTIONS=verify_asan_link_order=0 "$bsmm" "$@" <<'END'
import os, pty, sys
with open("screen", "wb") as screen:
    def keep(terminal):
        data = os.read(terminal, 4096)
        screen.write(data)
        return data
    os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
    pty.spawn(sys.argv[1:], keep)
END
    tr '\r' '\n' <screen | sed -nE 's/^([a-z]+) \[.* ([0-9]+%).*/\1 \2/p' | xargs
}
expect() {
    local wanted=$1 got
    shift
    got=$(shares "$@")
    [ "$got" = "$wanted" ] || fail "bsmm $*: $got: $(cat screen)"
}
expect "compare 50% compare 75% compare 100%" compare in.safetensors in.safetensors --threads 1
# The output consists of 512 and 256 bytes of elements in mxfp8, and of 1024 bytes that are copied.
# The shares follow from these numbers.
expect "quantize 29% quantize 43% quantize 100%" quantize in.safetensors -o q.safetensors --format mxfp8 --threads 1
exit $failed
