#!/bin/bash
# Tests GGUF files that the command makes of folders of Hugging Face models. The expected file is
# the one that llama.cpp's converter made of the same folder (tests/golden/gguf_model/make.py).
# $BSMM is the command.
tests=$(cd "$(dirname "$0")" && pwd)
source "$tests/scratch.sh"
export PYTHONDONTWRITEBYTECODE=1
golden=$tests/../golden/gguf_model
check() { python3 "$tests/gguf_model_check.py" "$@" || fail "gguf_model_check.py $*"; }
refuses() {
    rm -f x.gguf
    if "$BSMM" "${@:2}" -o x.gguf >out 2>err; then fail "bsmm ${*:2} succeeds"; fi
    grep -qF -- "$1" err || fail "no '$1' in: $(cat err)"
    [ ! -e x.gguf ] || fail "x.gguf is written"
}
# Makes a copy of the folder with another value in config.json, and prints its name.
changed() {
    rm -rf changed
    cp -r "$golden/llama" changed
    python3 - "$1" <<'END'
import json, sys
path = "changed/config.json"
config = json.load(open(path))
config |= json.loads(sys.argv[1])
json.dump(config, open(path, "w"))
END
}
"$BSMM" dequantize "$golden/llama" -o plain.gguf >out 2>err
[ ! -s err ] || fail "$(cat err)"
check "$golden/llama_cpp.gguf" plain.gguf
"$BSMM" dequantize "$golden/llama/model.safetensors" -o file.gguf >/dev/null
check plain.gguf file.gguf
# The command writes the metadata to a temporary file, which must not remain.
mkdir temporary
TMPDIR=$work/temporary "$BSMM" dequantize "$golden/llama" -o file.gguf >/dev/null
[ -z "$(ls -A temporary)" ] || fail "temporary files remain: $(ls -A temporary)"
TMPDIR=$work/none refuses "$work/none/bsmm-metadata-" dequantize "$golden/llama"
# Quantizing before the conversion to GGUF gives the same bytes as quantizing after it. In nvfp4,
# the rows of half of the weights are too short for a block, so these weights are left out.
for format in mxfp4 f16 f32; do
    verb=quantize option=--format
    [ $format = mxfp4 ] || { verb=dequantize option=--dtype; }
    "$BSMM" $verb "$golden/llama" -o ours.gguf $option $format --include '*_proj.weight' >/dev/null
    "$BSMM" $verb "$golden/llama_cpp.gguf" -o theirs.gguf $option $format --include '*attn_?.weight' --include '*attn_output.weight' \
        --include '*ffn_gate.weight' --include '*ffn_up.weight' --include '*ffn_down.weight' >/dev/null
    check theirs.gguf ours.gguf tensors
done
"$BSMM" quantize "$golden/llama" -o ours.gguf --format nvfp4 --include '*down_proj.weight' --include '*o_proj.weight' >/dev/null
"$BSMM" quantize "$golden/llama_cpp.gguf" -o theirs.gguf --format nvfp4 --include '*ffn_down.weight' --include '*attn_output.weight' >/dev/null
check theirs.gguf ours.gguf tensors
# If the input folder is quantized, its rows of codes and scales get the order of GGUF.
"$BSMM" quantize "$golden/llama" -o folder --format mxfp4 --recipe ggml --family compressed-tensors >/dev/null
"$BSMM" convert folder -o ours.gguf --family gguf >/dev/null
"$BSMM" quantize "$golden/llama" -o theirs.gguf --format mxfp4 >/dev/null
check theirs.gguf ours.gguf
"$BSMM" dequantize folder -o kept.gguf --exclude '*_proj*' >/dev/null
check theirs.gguf kept.gguf

refuses "architectures: value is GemmaForCausalLM; a GGUF file can be made of LlamaForCausalLM" \
    dequantize "$(changed '{"architectures": ["GemmaForCausalLM"]}'; echo changed)"
refuses "sliding_window: must be null" dequantize "$(changed '{"sliding_window": 64}'; echo changed)"
refuses "hidden_act: must be silu" dequantize "$(changed '{"hidden_act": "gelu"}'; echo changed)"
refuses "rope_type: value is yarn; must be default, linear or llama3" \
    dequantize "$(changed '{"rope_parameters": {"rope_type": "yarn"}}'; echo changed)"
refuses "num_attention_heads: must be an integer" dequantize "$(changed '{"num_attention_heads": "four"}'; echo changed)"
refuses "vocab_size - 1 (299)" dequantize "$(changed '{"vocab_size": 300}'; echo changed)"
refuses "GGUF's architecture llama has no such tensor" \
    dequantize "$(changed '{"num_hidden_layers": 1}'; echo changed)"
refuses "cannot hold mxfp8" quantize "$golden/llama" --format mxfp8
sed -i 's/"individual_digits": true/"individual_digits": false/' "$(changed '{}'; echo changed)/tokenizer.json"
refuses "pre_tokenizer: must be that of gpt-2, smollm, llama-bpe or qwen2" dequantize changed
rm changed/tokenizer.json
"$BSMM" dequantize changed -o x.gguf >/dev/null 2>err
grep -q "has no tokenizer.json, so the output has no tokenizer" err || fail "$(cat err)"
# Python writes NaN and Infinity into config.json. A GGUF file does not need most members, so these
# words do no harm there. In a number that the file needs, the command must refuse them.
changed '{"odd": NaN, "odder": [Infinity, -Infinity, "NaN"], "rms_norm_eps": null}'
"$BSMM" dequantize changed -o odd.gguf >/dev/null
changed '{"rms_norm_eps": null}'
"$BSMM" dequantize changed -o even.gguf >/dev/null
cmp odd.gguf even.gguf || fail "NaN in config.json changes the GGUF file"
changed '{"rms_norm_eps": NaN}'
refuses "config.json: rms_norm_eps: must be a finite number" dequantize changed
changed '{"num_key_value_heads": -Infinity}'
refuses "config.json: num_key_value_heads: must be an integer from 1 to 2^31 - 1" dequantize changed
changed '{"rope_scaling": {"rope_type": "llama3", "factor": Infinity}}'
refuses "config.json: factor: must be a finite number" dequantize changed
# config.json of earlier versions of transformers has other names, and members may be absent. Checks
# that two configurations give the same file.
same() {
    changed "$1"
    "$BSMM" dequantize changed -o one.gguf >/dev/null || fail "config.json with $1 is refused"
    changed "$2"
    "$BSMM" dequantize changed -o two.gguf >/dev/null || fail "config.json with $2 is refused"
    cmp one.gguf two.gguf || fail "config.json with $1 and with $2 give different files"
}
llama3='"factor": 8, "high_freq_factor": 4, "low_freq_factor": 1, "original_max_position_embeddings": 64'
same '{}' '{"rope_parameters": null, "rope_theta": 5000, "rope_scaling": {"type": "llama3", '"$llama3}}"
same '{}' '{"rope_scaling": {"rope_type": "linear"}}'
same '{}' '{"rope_parameters": {"type": "linear", "rope_type": "llama3", "rope_theta": 5000, '"$llama3}}"
same '{"rope_parameters": {"rope_type": "llama3", '"${llama3/64/8192}}}" '{"rope_parameters": {"type": "llama3"}}'
same '{"rope_parameters": {"rope_type": "default", "rope_theta": 10000}}' '{"rope_parameters": {}}'
same '{"rope_parameters": {"rope_type": "linear", "factor": 1}}' '{"rope_parameters": {"rope_type": "linear"}}'
same '{"rms_norm_eps": 1e-6, "max_position_embeddings": 2048}' '{"rms_norm_eps": null, "max_position_embeddings": null}'
same '{}' '{"sliding_window": 64, "use_sliding_window": false, "hidden_act": null}'
same '{}' '{"sliding_window": 256}'
changed '{"rope_parameters": {"type": "linear", "rope_theta": 3000, "factor": 2.5}}'
"$BSMM" dequantize changed -o linear.gguf >/dev/null
PYTHONPATH=$tests python3 - <<'END' || fail "linear.gguf has other RoPE factors than config.json"
import struct
from model_values import Gguf
pairs = Gguf("linear.gguf").pairs
numbers = [struct.unpack("<f", pairs[f"llama.rope.{key}"][4:])[0] for key in ("freq_base", "scaling.factor")]
assert numbers == [3000, 2.5], numbers
assert pairs["llama.rope.scaling.type"][12:] == b"linear", pairs["llama.rope.scaling.type"]
END
changed '{"rope_parameters": null, "rope_scaling": {"type": "yarn"}}'
refuses "rope_type: value is yarn" dequantize changed
changed '{"rope_parameters": {"rope_theta": 0}}'
refuses "rope_theta: must be a positive number" dequantize changed
changed '{"sliding_window": 255}'
refuses "sliding_window: must be null" dequantize changed
rm changed/config.json
refuses "config.json: No such file or directory; the metadata of a GGUF file come from it" dequantize changed
echo "GGUF of folders: all passed"
