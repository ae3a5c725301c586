#!/bin/bash
# Tests the command on a GPU. Its output files must have the same bytes as those of the CPU for
# every command that promises this. Without a GPU the test prints so and is skipped.
source "$(dirname "$0")/scratch.sh"

# Without a GPU, the command says in its message what is missing, and leaves no file behind.
python3 - <<'PYTHON'
import random, struct
random.seed(7)
for name, rows in (("x", 37), ("w", 96)):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 256), }" % rows
    header = header.ljust(117) + "\n"
    values = [random.gauss(0, 1) for _ in range(rows * 256)]
    with open(name + ".npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%df" % len(values), *values))
PYTHON
for command in "quantize w.npy -o out.safetensors --format mxfp4" "matmul x.npy w.npy -o out.npy"; do
    if "$BSMM" $command --device cuda:77 2>err; then fail "$command on cuda:77 worked"; fi
    grep -qE 'NVIDIA|INVALID_DEVICE' err || fail "$command on cuda:77 said: $(cat err)"
    [ ! -e out.safetensors ] && [ ! -e out.npy ] || fail "$command on cuda:77 wrote a file"
done

# The fake driver of tests/fake_cuda lacks functions that the command needs to run a product. The
# command must fail and leave no file behind. A build without CUDA kernels fails earlier, because it
# has no kernel for the product.
fake_cuda=$(dirname "$BSMM")/tests/fake_cuda
missing='libcuda.so.1 has no cu[A-Za-z]+: it is too old'
LD_LIBRARY_PATH=$fake_cuda "$BSMM" explain --device cuda:0 -f mxfp4 -M 1 -N 1 -K 32 >explained 2>&1 || true
if grep -q 'no nvcc' explained; then missing='no kernel of this device takes the product'; fi
status=0
LD_LIBRARY_PATH=$fake_cuda "$BSMM" matmul x.npy w.npy -o out.npy --device cuda:0 2>err || status=$?
[ "$status" = 1 ] && grep -qE "$missing" err ||
    fail "matmul with an incomplete driver ended with status $status and said: $(cat err)"
[ ! -e out.npy ] || fail "matmul with an incomplete driver wrote a file"

if ! "$BSMM" devices --json | grep '"cuda:0"' >/dev/null || grep -q 'no nvcc' explained; then
    echo "skipped: no CUDA device"
    exit 0
fi
for format in mxfp8 mxfp4 nvfp4 fp8_group128; do
    "$BSMM" quantize w.npy -o cpu.safetensors --format $format
    "$BSMM" quantize w.npy -o gpu.safetensors --format $format --device cuda:0 --report
    cmp cpu.safetensors gpu.safetensors || fail "quantize to $format: other bytes on the GPU"
    "$BSMM" dequantize cpu.safetensors -o cpu.plain.safetensors
    "$BSMM" dequantize cpu.safetensors -o gpu.plain.safetensors --device cuda:0
    cmp cpu.plain.safetensors gpu.plain.safetensors || fail "dequantize $format: other bytes"
    "$BSMM" matmul x.npy cpu.safetensors -o d.npy --device cuda:0 --check
done
"$BSMM" bench --device cuda:0 -M 37 -N 96 -K 256 --format mxfp8 --repeats 1
if "$BSMM" bench --device cuda:0 -M 48 -N 96 -K 256 --format mxfp8 --repeats 1 --json --peer cublaslt >peer.json 2>err
then
    grep -qF cublaslt_fp8 peer.json || fail "no cublaslt_fp8: $(cat peer.json)"
else
    lacks_cublaslt err
fi
echo "the GPU's files are the cpu's"
