#!/bin/sh
# Compresses the images of several GPU kernels into one pack, and writes their entries of the table
# of images (src/gpu/images.h) to PACK.rows. Each image begins at a multiple of 64 bytes. If CODE is
# PTX, the script first removes comments. nvcc puts static functions into a namespace whose name has
# hashes and the name of the file. The script replaces this name by a short one. The texts of instances
# of one source then differ less, and take less space when compressed. The program STORE-PTX
# (cmake/store-ptx.c) then converts the image to the form in which packs store PTX.
#
#   usage: pack-images.sh ZSTD STORE-PTX PACK SYMBOL CODE FOLDER NAME...
#   (images: FOLDER/NAME.CODE.image)
set -eu
zstd=$1 store_ptx=$2 pack=$3 symbol=$4 code=$5 folder=$6
shift 6
trap 'rm -f "$pack.raw" "$pack.short" "$pack.stored" "$pack.places"' EXIT
: >"$pack.raw"
: >"$pack.places"
at=0
for name in "$@"; do
    image=$folder/$name.$code.image text=0
    case $code in
    compute_*)
        sed -E -e '/^\t\/\/ (begin|end) inline asm$/d' -e 's/ \/\/ callseq .*//' \
            -e 's/_ZN[0-9]+_INTERNAL_[0-9a-f]{8}_[0-9]+_[A-Za-z0-9_]*_cu_[0-9a-f]{8}/_ZN1_/g' \
            "$image" >"$pack.short"
        text=$(wc -c <"$pack.short")
        "$store_ptx" "$pack.short" "$pack.stored"
        image=$pack.stored
        ;;
    esac
    bytes=$(wc -c <"$image")
    cat "$image" >>"$pack.raw"
    head -c $((64 - bytes % 64)) /dev/zero >>"$pack.raw"
    echo "$name $at $bytes $text" >>"$pack.places"
    at=$((at + bytes + 64 - bytes % 64))
done
"$zstd" -q -f --ultra -22 --long=27 --check "$pack.raw" -o "$pack"

whole=$(wc -c <"$pack.raw") packed=$(wc -c <"$pack")
while read -r name at bytes text; do
    echo "{\"$name\", \"$code\", $symbol, $packed, $whole, $at, $bytes, $text},"
done <"$pack.places" >"$pack.rows"
