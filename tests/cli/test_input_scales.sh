#!/bin/bash
# Tests calibrated input scales with unusual names, values, types and shapes.
source "$(dirname "$0")/many.sh"
check() { python3 -B "$here/input_scales.py" "$@" || fail "input_scales.py $*"; }
check make
convert() { "$bsmm" convert "$1" -o "$2" --family compressed-tensors --round-global 2>&1 || fail "convert $1"; }
to_tensors=(--family compressed-tensors --round-global)
quantize=(quantize plain.safetensors --format nvfp4 --family modelopt --input-scales amax.json)

# The name of a weight may be short or long, and need not end with ".weight".
echo '{"w": 1.5, "b": 2}' >amax.json
"$bsmm" "${quantize[@]}" --include w -o short.safetensors >/dev/null 2>&1 || fail "a short name"
check scale short.safetensors w.input_scale 0.0005580357392318547
convert long.safetensors long-out.safetensors >/dev/null
name=$(printf 'n%.0s' {1..600})
check scale long-out.safetensors "$name.input_global_scale" 4
check scale long-out.safetensors "$name.input_scale" none

# A scale must be a positive number whose reciprocal is finite, because engines divide by it.
for name in zero:0 negative:-1 nan:nan inf:inf tiny:9.99995e-41; do
    refuses 1 "l.input_scale: value is ${name#*:}; must be a positive number with a finite reciprocal" convert "${name%:*}.safetensors" -o none.safetensors "${to_tensors[@]}"
done
refuses 1 "l.input_scale: is BF16 []; must be one F32 number" convert bf16.safetensors -o none.safetensors "${to_tensors[@]}"
refuses 1 "l.input_scale: is F32 [3]; must be one F32 number" convert three.safetensors -o none.safetensors "${to_tensors[@]}"
for value in 1e-45 1e-40; do
    echo "{\"b\": $value}" >amax.json
    for family in modelopt compressed-tensors; do
        refuses 1 "b.weight: --input-scales: the largest magnitude $value gives a scale of " quantize plain.safetensors -o none.safetensors --format nvfp4 --family "$family" --input-scales amax.json --include b.weight
    done
done
[ ! -e none.safetensors ] || fail "a refused run leaves a file"

# convert keeps the input scale if the new checkpoint family can store one with this format.
# Otherwise it warns that the scale is left out.
for size in 1x64 1x128 64x128; do
    convert "fp8-$size.safetensors" "out-$size.safetensors" >/dev/null
    check scale "out-$size.safetensors" l.input_scale 0.5
done
convert fp8-128x128.safetensors out.safetensors | grep -q "l.input_scale: is left out, because compressed-tensors has no scheme with input scales for fp8_block128" || fail "no warning of 128x128"
check scale out.safetensors l.input_scale none
convert foreign.safetensors out.safetensors | grep -q "l.input_global_scale: is left out, because modelopt stores no input scale of this name" || fail "no warning of a foreign name"
check scale out.safetensors p.input_scale 0.75 # p.weight is not converted, so its scale is copied
echo '{"b": 2}' >amax.json
# Some formats of a family cannot have an input scale. A weight in such a format is written without
# one.
"$bsmm" quantize square.safetensors --format fp8_tensor --family compressed-tensors --input-scales amax.json -o square-out.safetensors >out 2>&1 ||
    fail "a weight without an input scale: $(cat out)"
grep -q "b.weight: gets no input scale, because compressed-tensors stores it as fp8_block128, which has none" out || fail "no warning of a format without input scales: $(cat out)"
check scale square-out.safetensors b.input_scale none
refuses 1 "w: --input-scales: amax.json has no value for this layer" "${quantize[@]}" --include w -o none.safetensors
[ "$("$bsmm" "${quantize[@]}" --include w -o none.safetensors 2>&1 | wc -l)" = 1 ] || fail "a second message"

# The configuration does not depend on how weights are divided among shards. It lists only schemes
# that some layer has.
"$bsmm" convert several -o several-out --family modelopt --layout row_major --shard-size 9500 --include l0.weight >/dev/null || fail "several shards"
check inputs several-out
"$bsmm" convert alone -o alone-out --family modelopt 2>&1 | grep -q "config.json gets no quantization_config: the family modelopt has no scheme for fp8_tensor without input scales" || fail "no warning of a missing scheme"
check no_config alone-out

# bsmm refuses to overwrite the file of --input-scales.
cp amax.json amax.safetensors
refuses 1 "amax.safetensors: is the input's file amax.safetensors; name another output" quantize plain.safetensors --format nvfp4 --family modelopt --include b.weight --input-scales amax.safetensors -o amax.safetensors
cmp -s amax.json amax.safetensors || fail "the calibration is overwritten"
exit $failed
