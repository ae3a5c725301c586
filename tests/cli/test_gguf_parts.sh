#!/bin/bash
# Tests GGUF models of several files as input. $BSMM is the command.
source "$(dirname "$0")/many.sh"
export PYTHONDONTWRITEBYTECODE=1
python3 "$here/gguf_model.py" in.gguf || exit 1
split() { python3 "$here/gguf_parts.py" in.gguf "$@" || exit 1; }
first=-00001-of-00003.gguf

# The output is the same as from one file, by the first part and by the folder.
mkdir parts && split parts/model 3
"$bsmm" quantize in.gguf -o one.gguf --format mxfp4 >/dev/null || fail "one file"
"$bsmm" quantize parts/model$first -o several.gguf --format mxfp4 >/dev/null || fail "three files"
"$bsmm" quantize parts -o folder.gguf --format mxfp4 >/dev/null || fail "a folder"
cmp one.gguf several.gguf || fail "another output from three files"
cmp one.gguf folder.gguf || fail "another output from a folder"
[ "$("$bsmm" inspect parts | wc -l)" = 11 ] || fail "inspect: $("$bsmm" inspect parts)"
"$bsmm" quantize parts -o out --format nvfp4 --family modelopt >/dev/null 2>&1 || fail "a folder as output"
[ "$(ls out | tr '\n' ' ')" = "hf_quant_config.json model.safetensors " ] || fail "output: $(ls out)"
"$bsmm" compare in.gguf out --json >rows || fail "compare"
[ "$(wc -l <rows)" = 10 ] || fail "compare: $(cat rows)"
refuses 1 "parts/model-00003-of-00003.gguf: is the input's file" quantize parts -o parts/model-00003-of-00003.gguf --format mxfp4

# A part alone is not the model.
refuses 1 "split.no: value is 1; open the first of the model's 3 files" inspect parts/model-00002-of-00003.gguf
cp parts/model$first renamed.gguf
refuses 1 "so the name of the file must end in $first" inspect renamed.gguf
mkdir few && cp parts/*1-of* parts/*3-of* few
refuses 1 "few/model-00002-of-00003.gguf: cannot open" inspect few
cp in.gguf few/model-00002-of-00003.gguf
refuses 1 "few/model-00002-of-00003.gguf: split.no, split.count: values are 0, 0; must be 1, 3" inspect few
printf 'GGML' >few/model-00002-of-00003.gguf
refuses 1 "few/model-00002-of-00003.gguf: is no GGUF file" inspect few
for change in split.no=1 split.count=4; do
    split changed 3 $change
    refuses 1 "changed-00003-of-00003.gguf: split.no, split.count: values are" inspect changed$first
done
split single 1 split.tensors.count=9
[ "$("$bsmm" inspect single-00001-of-00001.gguf | wc -l)" = 11 ] || fail "a single part"
split short 3
split short 2
cp short-00002-of-00002.gguf two-00002-of-00002.gguf && python3 - <<'END' || fail "cannot change a count"
data = open("short-00001-of-00002.gguf", "rb").read()
key = b"split.tensors.count"
at = data.index(key) + len(key) + 4
open("two-00001-of-00002.gguf", "wb").write(data[:at] + b"\x0b" + data[at + 1 :])
END
refuses 1 "split.tensors.count: value is 11; the files have 10 tensors" inspect two-00001-of-00002.gguf
exit $failed
