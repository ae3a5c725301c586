#!/bin/bash
# Tests that the memory of quantize, dequantize, convert and compare is bounded by one tensor of a
# folder. Each of 24 tensors has 2 MiB, and all of them 48 MiB. Private memory is limited to 8 MiB;
# mapped files do not count.
source "$(dirname "$0")/many.sh"
python3 - <<'END'
import json, os, struct
rows, cols, each = 512, 1024, 8
os.mkdir("in")
files = {}
for shard in range(3):
    name, header, at = f"model-{shard + 1:05}-of-00003.safetensors", {}, 0
    for i in range(each):
        layer, part = divmod(shard * each + i, 2)
        tensor = f"model.layers.{layer}.mlp.{('gate', 'up')[part]}_proj.weight"
        header[tensor] = {"dtype": "F32", "shape": [rows, cols], "data_offsets": [at, at + 4 * rows * cols]}
        files[tensor], at = name, at + 4 * rows * cols
    text = json.dumps(header).encode()
    with open(f"in/{name}", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for i in range(each):
            file.write(struct.pack("<256f", *((j * (i + 3) % 256 - 128) / 64 for j in range(256))) * (rows * cols // 256))
json.dump({"metadata": {"total_size": 24 * 4 * rows * cols}, "weight_map": files}, open("in/model.safetensors.index.json", "w"))
json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}, open("in/config.json", "w"))
END
# usage: limited KIB ARGUMENT... Runs the command on one processor with at most this much private
# memory. On more processors it would need the stacks of more threads.
processor=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
limited() {
    local kibibytes=$1
    shift
    (ulimit -d "$kibibytes" && exec taskset -c "$processor" "$bsmm" "$@" >/dev/null 2>message)
}
limited 8192 --version || { echo "skipped: the program itself needs more memory, as with AddressSanitizer"; exit 0; }
limited 2048 quantize in -o small --format mxfp4 && fail "the limit has no effect"
for words in "quantize in -o q --format mxfp4" "quantize in -o n --format nvfp4 --family modelopt" \
    "quantize in -o f --format fp8_block128 --family deepseek" "quantize in -o one.safetensors --format mxfp8" \
    "dequantize n -o d --dtype f32" "convert q -o c --layout nv_128x4" "compare in n"; do
    # The words of a command are split on purpose.
    # shellcheck disable=SC2086
    limited 8192 $words || fail "bsmm $words: $(cat message)"
done
[ "$("$bsmm" inspect n --json | grep -c '"nvfp4"')" = 24 ] || fail "the output does not have all weights"
# With --threads 1 the command must start no thread, because there is no memory for a thread's
# stack. nvfp4 and fp8_tensor are tested, because they need the largest magnitude of fused weights
# before they quantize.
for format in nvfp4 fp8_tensor; do
    (ulimit -d 8192 && exec "$bsmm" quantize in -o "one_$format" --format $format --report --threads 1 >/dev/null 2>message) ||
        fail "$format on one thread: $(cat message)"
done
exit $failed
