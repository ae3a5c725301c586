#!/bin/sh
# Builds the Python wheel. auditwheel copies the libraries that the wheel needs into it, and names
# the oldest glibc with which the wheel runs. The script fails if this glibc is newer than 2.34. The
# GPU images of the build folder BUILD are embedded if BUILD is given and has been built.
#   usage: make-wheel.sh [BUILD]   (the wheel: build-wheel/dist/bsmm-*.whl)
set -eu
cd "$(dirname "$0")/.."
python=.cache/python/bin/python3
dist=build-wheel/dist
raw=build-wheel/raw
images=""
[ -z "${1:-}" ] || [ ! -e "$1/gpu_images.c" ] || images=$(cd "$1" && pwd)
tools/install-deps.sh build python
rm -rf "$raw" "$dist"
# The build uses the packages of .cache/python, so that it needs no network. It calls the compiler by the
# name cc, as CMake does in other builds, because ccache shares no objects between cc and gcc.
CC=${CC:-cc} "$python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir "$raw" \
    --config-settings build-dir=build-wheel/build --config-settings "cmake.define.BSMM_IMAGES_FROM=$images" \
    --config-settings cmake.define.BSMM_WERROR=ON .
PATH=$PWD/.cache/python/bin:$PATH "$python" -m auditwheel repair --plat manylinux_2_34_x86_64 --wheel-dir "$dist" "$raw"/*.whl
ls "$dist"/*.whl
