#!/bin/bash
# Makes build-dist/bsmm-VERSION.tar.gz: the sources that git tracks, and the GPU images of the build
# folder BUILD in the folder images/. A build of the archive needs neither nvcc nor clang-22
# (cmake/shipped.cmake). images/SOURCES has the SHA-256 of each file that made the images. The same
# commit and images give the same bytes: files are sorted, and all have the time of the last commit.
#   usage: make-dist.sh BUILD
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "${1:?usage: make-dist.sh BUILD}" && pwd)
[ -s "$build/gpu_images.c" ] || { echo "$build: no gpu_images.c; build there first"; exit 1; }
version=$(sed -n 's/^#define BSMM_VERSION_[A-Z]* \([0-9]*\)$/\1/p' include/bsmm.h | paste -sd.)
name=bsmm-$version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/$name
images=$tree/images
mkdir -p "$tree" "$images"
git ls-files -z | tar --null --files-from=- -cf - | tar -C "$tree" -xf -
grep -o "\"$build/[^\"]*\"" "$build/gpu_images.c" | tr -d '"' | sort -u | while read -r file; do
    [ -s "$file" ] || { echo "$file: missing or empty; the build is not complete"; exit 1; }
    mkdir -p "$images/$(dirname "${file#"$build/"}")"
    cp "$file" "$images/${file#"$build/"}"
done
[ -n "$(ls -A "$images")" ] || { echo "$build has no GPU images: build with nvcc or clang-22"; exit 1; }
sed "s#\"$build/#\"@images@/#" "$build/gpu_images.c" >"$images/gpu_images.c.in"
tools/image-sources.py | xargs sha256sum >"$images/SOURCES"
mkdir -p build-dist
tar -C "$work" --sort=name --mtime="@$(git log -1 --format=%ct)" --owner=0 --group=0 --numeric-owner \
    --mode=u+rw,go=rX --format=gnu -cf - "$name" | gzip -9n >"build-dist/$name.tar.gz"
echo "build-dist/$name.tar.gz"
