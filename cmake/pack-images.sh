#!/bin/sh
# Compresses the images of several GPU kernels into one pack, and writes their entries of the table
# of images (src/gpu/images.h) to PACK.rows. Each image begins at a multiple of 64 bytes. At least
# one zero byte follows it, because an image that is PTX text must be a C string.
#
#   usage: pack-images.sh ZSTD PACK SYMBOL CODE FOLDER NAME...   (images: FOLDER/NAME.CODE.image)
set -eu
zstd=$1 pack=$2 symbol=$3 code=$4 folder=$5
shift 5
trap 'rm -f "$pack.raw"' EXIT
: >"$pack.raw"
for name in "$@"; do
    image=$folder/$name.$code.image
    bytes=$(wc -c <"$image")
    cat "$image" >>"$pack.raw"
    head -c $((64 - bytes % 64)) /dev/zero >>"$pack.raw"
done
"$zstd" -q -f -19 --long=27 --check "$pack.raw" -o "$pack"

at=0
whole=$(wc -c <"$pack.raw") packed=$(wc -c <"$pack")
for name in "$@"; do
    bytes=$(wc -c <"$folder/$name.$code.image")
    echo "{\"$name\", \"$code\", $symbol, $packed, $whole, $at, $bytes},"
    at=$((at + bytes + 64 - bytes % 64))
done >"$pack.rows"
