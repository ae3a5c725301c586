#!/bin/bash
# Tests folders as output of quantize, dequantize and convert.
source "$(dirname "$0")/many.sh"
check() { python3 -B "$here/folder_check.py" "$@" || fail "folder_check.py $*"; }
python3 -B "$here/folder_model.py" in || exit 1
mixed=(quantize in --format nvfp4 --family compressed-tensors --tensor '*.down_proj.*=mxfp8' --shard-size 40000)

"$bsmm" "${mixed[@]}" -o out >/dev/null || fail "a folder"
check compressed out in
[ ! -e out.part ] || fail "out.part is left"
[ "$("$bsmm" inspect out --json | grep -c nvfp4)" = 12 ] || fail "inspect does not find the weights"

# The command overwrites no folder that has files. It accepts an empty folder, and also a file as
# input.
refuses 1 "out: exists already" "${mixed[@]}" -o out
mkdir empty
"$bsmm" quantize in/model.safetensors --format mxfp4 --family quark -o empty/ >/dev/null 2>&1 || fail "an empty folder"
[ -e empty/model.safetensors ] && [ ! -e empty/config.json ] || fail "a file as input"
# If the input is a single file, each weight gets a global scale of its own.
"$bsmm" quantize in/model.safetensors --format nvfp4 --family compressed-tensors -o alone.safetensors >/dev/null || fail "a file as output"
check alone alone.safetensors

for pair in quark:mxfp4 modelopt:nvfp4 gpt-oss-hf:mxfp4; do
    "$bsmm" quantize in -o "${pair%:*}" --family "${pair%:*}" --format "${pair#*:}" >/dev/null || fail "$pair"
done
"$bsmm" quantize in -o deepseek --family deepseek --format fp8_block128 >/dev/null || fail deepseek
check method quark quark
check quark quark fp4
check method modelopt modelopt
check method gpt-oss-hf mxfp4
check method deepseek fp8

# The configuration of quark also describes a folder with a single quantized layer.
"$bsmm" quantize in -o quark-one --family quark --format mxfp4 --include '*layers.0.*up_proj.weight' >/dev/null || fail "one layer"
check quark quark-one fp4

# These formats are FP8 with one scale per block, row or matrix, and packed mxfp4 and mxfp6. The
# checks use the names of compressed-tensors.
ct=(quantize in --family compressed-tensors)
for format in fp8_block128 fp8_channel fp8_tensor mxfp4 mxfp6_e2m3; do
    "$bsmm" "${ct[@]}" --format $format -o ct-$format >/dev/null || fail "$format"
done
check scheme ct-fp8_block128 float-quantized block F32:1x1
check scheme ct-fp8_channel float-quantized channel F32:128x1
check scheme ct-fp8_tensor float-quantized tensor F32:1
check shared ct-fp8_tensor in
"$bsmm" "${ct[@]}" --format fp8_tensor --report --device cpu -o ct-report | grep -q "q_proj" || fail "a report of fp8_tensor"
cmp ct-report/model.safetensors ct-fp8_tensor/model.safetensors || fail "--report changes the weights"
check scheme ct-mxfp4 mxfp4-pack-quantized group U8:128x2
check scheme ct-mxfp6_e2m3 mxfp6-pack-quantized group U8:128x2
"$bsmm" compare in ct-fp8_channel --json >rows
python3 -c "import json; rows = [json.loads(r) for r in open('rows')]; changed = [r for r in rows if r['sqnr_db'] is not None]
assert len(changed) == 14 and all(30 < r['sqnr_db'] < 40 for r in changed), changed" || fail "the error of fp8_channel"
"$bsmm" "${ct[@]}" --format fp8_block128 --tensor '*q_proj*=fp8_channel' --tensor '*o_proj*=fp8_tensor' -o ct-three >/dev/null
check groups ct-three float-quantized block:10 channel:2 tensor:2

# Without --input-scales, only weights are quantized. With it, the command needs a scale for every
# layer.
python3 -B "$here/folder_check.py" magnitudes in/model.safetensors amax.json
"$bsmm" "${ct[@]}" --format nvfp4 --tensor '*o_proj*=fp8_tensor' --input-scales amax.json -o ct-inputs >/dev/null || fail "input scales"
check inputs ct-inputs amax.json
modelopt=(quantize in --family modelopt --format nvfp4)
"$bsmm" "${modelopt[@]}" --tensor '*o_proj*=fp8_tensor' --input-scales amax.json -o mo-inputs >/dev/null || fail "ModelOpt's input scales"
check modelopt mo-inputs amax.json MIXED_PRECISION
"$bsmm" "${modelopt[@]}" --input-scales amax.json -o mo-nvfp4 >/dev/null || fail "ModelOpt's nvfp4"
check modelopt mo-nvfp4 amax.json NVFP4
check modelopt modelopt none W4A16_NVFP4
"$bsmm" dequantize mo-inputs -o mo-plain --dtype f32 >/dev/null && check plain mo-plain in
"$bsmm" convert mo-nvfp4 -o mo-converted --family compressed-tensors --round-global >/dev/null || fail "convert with input scales"
check reciprocals mo-converted mo-nvfp4
refuses 2 "modelopt has no scheme for fp8_tensor that quantizes weights alone; give --input-scales" quantize in --family modelopt --format fp8_tensor -o none
refuses 2 "--input-scales: compressed-tensors has no calibrated input scales for mxfp4" "${ct[@]}" --format mxfp4 --input-scales amax.json -o none
refuses 2 "--input-scales: needs --family" quantize in --format nvfp4 --input-scales amax.json -o none
refuses 1 "missing.json: " "${modelopt[@]}" --input-scales missing.json -o none
sed 's/layers.1.self_attn.v_proj/layers.1.v_proj/' amax.json >few.json
refuses 1 "model.layers.1.self_attn.v_proj.weight: --input-scales: few.json has no value for this layer" "${modelopt[@]}" --input-scales few.json -o none
for value in 0 -1 '"1"' 1e39 null; do
    echo '{"a.b": '"$value"'}' >bad.json
    refuses 1 "bad.json: \"a.b\": value is" "${modelopt[@]}" --input-scales bad.json -o none
done
echo '[1]' >bad.json
refuses 1 "bad.json: is no JSON object" "${modelopt[@]}" --input-scales bad.json -o none
sed 's/{/{"other": 1,/' amax.json >more.json
"$bsmm" "${modelopt[@]}" --input-scales more.json -o mo-more 2>&1 | grep -q "warning: --input-scales: 'other' in more.json" || fail "no warning"
[ ! -e none ] && [ ! -e none.part ] || fail "a refused run leaves a folder"
# An interrupted run must not be continued with other input scales.
limited=("${ct[@]}" --format nvfp4 --input-scales more.json --shard-size 20000 -o changed)
(ulimit -f 24 && trap '' XFSZ && "$bsmm" "${limited[@]}" >/dev/null 2>&1)
if [ -e changed.part ]; then
    sed -i 's/"other": 1/"other": 12/' more.json
    refuses 1 "changed.part: is the unfinished output of another command or of changed input" "${limited[@]}"
else
    fail "the limited run is not interrupted"
fi
# An interrupted run must not be continued with a changed config.json, because this file says which
# layers are quantized.
cp -r in in-edited
limited=(quantize in-edited --format nvfp4 --shard-size 20000 -o edited)
(ulimit -f 24 && trap '' XFSZ && "$bsmm" "${limited[@]}" >/dev/null 2>&1)
if [ -e edited.part ]; then
    echo >>in-edited/config.json
    refuses 1 "edited.part: is the unfinished output of another command or of changed input" "${limited[@]}"
else
    fail "the run with an edited config.json is not interrupted"
fi

# dequantize removes quantization_config from any position in config.json, and leaves the rest of
# the file unchanged.
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

# A family that has no such format is refused, and nothing is written.
refuses 2 "family: quark cannot hold nvfp4" convert modelopt -o none --family quark
[ ! -e none ] && [ ! -e none.part ] || fail "a refused conversion leaves a folder"

# A run that is interrupted keeps its complete shards, and the same command continues after them.
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
refuses 2 '--tensor: value is mxfp9; must be one of' quantize in --format nvfp4 --tensor '*=mxfp9' -o none

# bsmm checks the name of the output before the work, and follows a symbolic link.
for name in '' . in/..; do
    refuses 1 "--output: value is \"$name\"; must end with the name of a folder" quantize in --format nvfp4 -o "$name"
done
ln -s nowhere dangling
refuses 1 "dangling: cannot follow this link" quantize in --format nvfp4 -o dangling
mkdir target && ln -s target link
"$bsmm" quantize in --format nvfp4 -o link/. >/dev/null || fail "a link to an empty folder"
[ -L link ] && [ -e target/config.json ] && [ ! -e link.part ] || fail "does not follow a link"
mkdir foreign.part && touch foreign.part/mine
refuses 1 "foreign.part: exists already and is no unfinished output" quantize in --format nvfp4 -o foreign
[ -e foreign.part/mine ] || fail "removes a foreign file"

# The command refuses to write a folder that another run is writing.
mkdir two.part
flock two.part/.bsmm-plan "$bsmm" quantize in --format nvfp4 -o two >/dev/null 2>message && fail "two runs"
grep -q "two.part: another run is writing it" message || fail "$(cat message)"
"$bsmm" quantize in --format nvfp4 -o two >/dev/null || fail "an empty plan"
# If the disk is full, no folder without a plan remains. `ulimit -f 1` allows files of 1 KiB, and a
# limit of 0 would stop LLVM's OpenMP. A long word therefore makes the plan larger than 1 KiB.
(ulimit -f 1 && trap '' XFSZ && "$bsmm" quantize in --format nvfp4 --exclude "$(printf %01100d 0)" -o full 2>&1) | grep -q "full.part/.bsmm-plan: cannot write it" || fail "a full disk"
[ ! -e full.part ] || fail "leaves a folder whose plan is incomplete"

# If a run ends while it renames the shards, the next run continues. Temporary files of killed runs are
# removed.
(ulimit -f 39 && trap '' XFSZ && "$bsmm" "${mixed[@]}" -o again >/dev/null 2>&1)
before=$(stat -c %i again.part/shard-00001.safetensors)
mv again.part/shard-00001.safetensors again.part/model-00001-of-00003.safetensors
touch again.part/.bsmm-0123456789abcdef.tmp
(ulimit -f 30 && trap '' XFSZ && "$bsmm" "${mixed[@]}" -o again >/dev/null 2>&1)
"$bsmm" "${mixed[@]}" -o again >/dev/null || fail "does not continue after a renamed shard"
[ "$(stat -c %i again/model-00001-of-00003.safetensors)" = "$before" ] || fail "a renamed shard was written again"
[ "$(ls -A again)" = "$(ls -A out)" ] || fail "a temporary file is left"

# bsmm checks config.json before the work. It removes every member quantization_config, and
# compression_config, which is its older name.
cp -r in odd
for text in '[]' '' '{"a":1'; do
    printf "$text" >odd/config.json
    refuses 1 "odd/config.json: is no JSON object" quantize odd --format nvfp4 -o none
done
printf '{"quantization_config": 1, "a": "\0"}' >odd/config.json
refuses 1 "odd/config.json: cannot read it" quantize odd --format nvfp4 -o none
rm odd/config.json && mkdir odd/config.json
refuses 1 "odd/config.json: cannot read it: Is a directory" quantize odd --format nvfp4 -o none
rmdir odd/config.json && mkfifo odd/config.json
refuses 1 "odd/config.json: cannot read it: Operation not supported" quantize odd --format nvfp4 -o none
[ ! -e none.part ] || fail "leaves a folder"
printf '\xef\xbb\xbf{"a": "\\ud800", "quantization_config": 1}' >last/config.json
"$bsmm" dequantize last -o plain4 >/dev/null || fail "a byte order mark"
[ "$(tr -d ' \n' <plain4/config.json)" = '{"a":"\ud800"}' ] || fail "config.json: $(cat plain4/config.json)"
echo '{"quantization_config": {}, "compression_config": {"b": "}"}, "a": 1, "quantization_config": {"c": 2}}' >last/config.json
"$bsmm" dequantize last -o plain3 >/dev/null || fail "two quantization_config"
[ "$(tr -d ' \n' <plain3/config.json)" = '{"a":1}' ] || fail "config.json: $(cat plain3/config.json)"

# If weights share a global scale and one of them has a NaN, the message names that weight. A weight
# that is not quantized does not affect the shared scale.
python3 -B "$here/folder_model.py" nan && python3 -B "$here/folder_check.py" poison nan/model.safetensors
refuses 1 "shares a scale with model.layers.0.self_attn.k_proj.weight, whose largest magnitude is nan; it must be finite" \
    quantize nan --format nvfp4 -o none
refuses 1 "shares a scale with model.layers.0.self_attn.k_proj.weight, whose largest magnitude is nan" \
    quantize nan --family compressed-tensors --format fp8_tensor -o none
[ ! -e none ] || fail "a failure before the first weight leaves a folder"
"$bsmm" quantize nan --format nvfp4 --exclude '*k_proj*' -o spared >/dev/null || fail "a spared weight with NaN"
"$bsmm" quantize in --format nvfp4 --tensor '*.up_porj.*=mxfp8' -o typo 2>&1 |
    grep -q "warning: --tensor: '\*.up_porj.\*=mxfp8' decides the format of no weight" || fail "a pattern without a weight"

# The configuration must list as not quantized a module whose name looks like an embedding, and an
# lm_head without a weight of its own.
python3 -B "$here/folder_model.py" tied && sed -i 's/"lm_head.weight"/"embed_x.weight"/' tied/model.safetensors
for pair in quark:mxfp4 modelopt:nvfp4 compressed-tensors:nvfp4; do
    "$bsmm" quantize tied -o "tied-${pair%:*}" --family "${pair%:*}" --format "${pair#*:}" >/dev/null || fail "$pair"
    check ignores "tied-${pair%:*}" embed_x lm_head
done
exit $failed
