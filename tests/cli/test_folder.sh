#!/bin/bash
# Tests folders as output of quantize, dequantize and convert.
set -u
here=$(cd "$(dirname "$0")" && pwd)
bsmm=$(realpath "$BSMM")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
fail() {
    echo "FAIL: $*"
    failed=1
}
check() { python3 -B "$here/folder_check.py" "$@" || fail "folder_check.py $*"; }
# Expects that a command fails with a status and that its message contains a text.
refuses() {
    local status=$1 text=$2 message
    shift 2
    message=$("$bsmm" "$@" 2>&1)
    [[ $? == "$status" && $message == *"$text"* ]] || fail "bsmm $*: $message"
}
python3 -B "$here/folder_model.py" in || exit 1
mixed=(quantize in --format nvfp4 --family compressed-tensors --tensor '*.down_proj.*=mxfp8' --shard-size 40000)

"$bsmm" "${mixed[@]}" -o out >/dev/null || fail "a folder"
check compressed out in
[ ! -e out.part ] || fail "out.part is left"
[ "$("$bsmm" inspect out --json | grep -c nvfp4)" = 12 ] || fail "inspect does not find the weights"

# Nothing is overwritten. An empty folder is taken, and so is a file as input.
refuses 1 "out: exists already" "${mixed[@]}" -o out
mkdir empty
"$bsmm" quantize in/model.safetensors --format mxfp4 --family quark -o empty/ >/dev/null 2>&1 || fail "an empty folder"
[ -e empty/model.safetensors ] && [ ! -e empty/config.json ] || fail "a file as input"

for pair in quark:mxfp4 modelopt:nvfp4 gpt-oss-hf:mxfp4; do
    "$bsmm" quantize in -o "${pair%:*}" --family "${pair%:*}" --format "${pair#*:}" >/dev/null || fail "$pair"
done
"$bsmm" quantize in -o deepseek --family deepseek --format fp8_block128 >/dev/null || fail deepseek
check method quark quark
check method modelopt modelopt
check method gpt-oss-hf mxfp4
check method deepseek fp8

# dequantize removes quantization_config wherever it stands, and leaves the rest as it is.
"$bsmm" dequantize out -o plain --dtype f32 >/dev/null || fail "dequantize"
check plain plain in
cp -r out last && python3 - <<'END'
text = open("in/config.json").read().rstrip()
assert text.endswith("}")
open("last/config.json", "w").write(text[:-1].rstrip() + ', "quantization_config": {"a": [1, "]}"]}}\n')
END
"$bsmm" dequantize last -o plain2 --dtype f32 >/dev/null || fail "dequantize"
check plain plain2 in
"$bsmm" convert modelopt -o converted --family compressed-tensors --round-global >/dev/null || fail "convert"
check method converted compressed-tensors

# A run that ends early leaves its complete shards, and the same command continues there.
(ulimit -f 39 && trap '' XFSZ && "$bsmm" "${mixed[@]}" -o late >/dev/null 2>message) && fail "the limit has no effect"
grep -q "late.part has the shards that are complete" message || fail "$(cat message)"
[ ! -e late ] && [ -e late.part/shard-00001.safetensors ] || fail "not interrupted after the first shard"
before=$(stat -c %i late.part/shard-00001.safetensors)
refuses 1 "late.part: is the unfinished output of another command" quantize in --format mxfp8 -o late
"$bsmm" "${mixed[@]}" -o late >/dev/null || fail "does not continue"
[ "$(stat -c %i late/model-00001-of-00003.safetensors)" = "$before" ] || fail "a complete shard was written again"
diff -r out late || fail "differs from an uninterrupted run"

# A run that fails before its first shard is complete leaves nothing.
refuses 1 "no weight to quantize" quantize in --format nvfp4 --include nothing -o none
[ ! -e none ] && [ ! -e none.part ] || fail "leaves a folder"
refuses 2 "--tensor: '*.up_proj.*' is not PATTERN=FORMAT" quantize in --format nvfp4 --tensor '*.up_proj.*' -o none
refuses 2 '--tensor: value is "mxfp9"' quantize in --format nvfp4 --tensor '*=mxfp9' -o none
exit $failed
