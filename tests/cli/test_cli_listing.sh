#!/bin/bash
# Tests what it costs to list a header of a million empty tensors: of vectors with short names, and
# of weights with names so long that the header is almost the longest that is allowed. A listing may
# take at most 3 times the processor time that opening the file takes, and at most 300 MB of memory.
# It must have one line for each tensor.
source "$(dirname "$0")/many.sh"
(ulimit -v 4194304 && "$bsmm" --version >/dev/null 2>&1) ||
    { echo "skipped: the program itself needs much more memory, as with AddressSanitizer"; exit 0; }
python3 - "$bsmm" <<'END' || failed=1
import os, struct, subprocess, sys
COUNT = 1_000_000

def write(name, dtype, shape):
    """Writes many.safetensors with a million tensors of this type and shape. The header is never in this program's
    memory as a whole, because the peak memory of a program counts as that of the programs that it starts."""
    with open("many.safetensors", "wb") as file:
        file.write(bytes(8))
        for i in range(COUNT):
            entry = f'"{name.format(i)}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,0]}}'
            file.write(("," if i else "{").encode() + entry.encode())
        file.write(b"}")
        length = file.tell() - 8
        file.seek(0)
        file.write(struct.pack("<Q", length))
    assert length <= 100_000_000, "a header may have 100 MB"

def seconds(status, *arguments):
    """Runs the command and returns its processor time. Its peak memory is added to `peaks`."""
    with open("listing", "wb") as out, open("message", "wb") as message:
        process = subprocess.Popen([sys.argv[1], *arguments], stdout=out, stderr=message)
        _, ended, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(ended) == status, open("message").read()
    peaks.append(usage.ru_maxrss / 1024)
    return usage.ru_utime + usage.ru_stime

def check(name, dtype, shape, last):
    """Lists a million tensors. `last` has the last row of the table without the name."""
    write(name, dtype, shape)
    peaks.clear()
    # The product fails once the file is open, because the file has no weight "x".
    opened = min(seconds(1, "matmul", "many.safetensors:x", "many.safetensors:x", "-o", "d.npy") for _ in range(3))
    assert '"x" is not a weight of this file' in open("message").read()
    listed = min(seconds(0, "inspect", "many.safetensors") for _ in range(3))
    with open("listing") as listing:
        for number, line in enumerate(listing):
            pass
    assert number == COUNT and line.split() == [name.format(COUNT - 1), *last], line
    print(f"{name}: opened in {opened:.2f} s, listed in {listed:.2f} s, with {max(peaks):.0f} MiB at most")
    assert listed <= 3 * opened, "listing takes more than 3 times as long as opening"
    assert max(peaks) <= 286, "more than 300 MB"

peaks = []
check("t{}", "F32", "[0]", ["-", "F32", "0", "-", "-", "-"])
check("model.layers.0.mlp.experts.{}.w1.weight", "BF16", "[0,64]", ["plain", "BF16", "0x64", "bf16", "-", "-"])
END
exit $failed
