#!/bin/sh
# Builds the Debian packages libbsmm0, libbsmm-dev and bsmm-tools in build-deb/deb. The GPU images of
# the build folder BUILD are embedded if BUILD is given and has been built. With BSMM_WERROR=ON in the
# environment, warnings are errors. CI sets it, because ccache shares objects only between builds with
# the same options.
#   usage: make-deb.sh [BUILD]
set -eu
cd "$(dirname "$0")/.."
images=""
[ -z "${1:-}" ] || [ ! -e "$1/gpu_images.c" ] || images=$(cd "$1" && pwd)
tools/install-deps.sh build deb
cmake --preset release -B build-deb -DCMAKE_INSTALL_PREFIX=/usr -DBSMM_TESTS=OFF -DBSMM_CUDA=OFF -DBSMM_AMDGPU=OFF \
    -DBSMM_WERROR="${BSMM_WERROR:-OFF}" -DBSMM_IMAGES_FROM="$images" -DCMAKE_SHARED_LINKER_FLAGS=-Wl,-z,relro,-z,now \
    -DCMAKE_EXE_LINKER_FLAGS=-Wl,-z,relro,-z,now >/dev/null
cmake --build build-deb -j "${JOBS:-$(nproc)}"
rm -rf build-deb/deb
# All files in the packages get the time of the last commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)
export SOURCE_DATE_EPOCH
(umask 022 && cd build-deb && cpack >/dev/null)
ls build-deb/deb/*.deb
