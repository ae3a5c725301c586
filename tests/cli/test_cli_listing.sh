#!/bin/bash
# Tests what it costs to list a header of a million empty tensors. A listing may take at most 3 times
# the processor time that opening the file takes, and at most 300 MB of memory. It must have one line
# for each tensor.
source "$(dirname "$0")/many.sh"
(ulimit -v 4194304 && "$bsmm" --version >/dev/null 2>&1) ||
    { echo "skipped: the program itself needs much more memory, as with AddressSanitizer"; exit 0; }
python3 - "$bsmm" <<'END' || failed=1
import os, struct, subprocess, sys
COUNT = 1_000_000
header = "{" + ",".join(f'"t{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(COUNT)) + "}"
with open("many.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header.encode())

def seconds(status, *arguments):
    """Runs the command and returns its processor time. Its peak memory is added to `peaks`."""
    with open("listing", "wb") as out, open("message", "wb") as message:
        process = subprocess.Popen([sys.argv[1], *arguments], stdout=out, stderr=message)
        _, ended, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(ended) == status, open("message").read()
    peaks.append(usage.ru_maxrss / 1024)
    return usage.ru_utime + usage.ru_stime

peaks = []
# The product fails once the file is open, because the file has no weight "x".
opened = min(seconds(1, "matmul", "many.safetensors:x", "many.safetensors:x", "-o", "d.npy") for _ in range(3))
assert '"x" is not a weight of this file' in open("message").read()
listed = min(seconds(0, "inspect", "many.safetensors") for _ in range(3))
lines = open("listing").read().splitlines()
assert len(lines) == COUNT + 1 and lines[-1].split() == [f"t{COUNT - 1}", "-", "F32", "0", "-", "-", "-"], lines[-1]
print(f"opened in {opened:.2f} s, listed in {listed:.2f} s, with {max(peaks):.0f} MiB at most")
assert listed <= 3 * opened, "listing takes more than 3 times as long as opening"
assert max(peaks) <= 286, "more than 300 MB"
END
exit $failed
