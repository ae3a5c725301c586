#!/bin/bash
# Checks the source archive of tools/make-dist.sh. Two runs must give the same bytes. A build
# without nvcc and clang-22 must embed the archive's GPU images. If a source has changed since the
# images were made, the build must fail and name the file. The last line is "N passed, N failed".
#   usage: check-dist.sh BUILD   (a build folder with GPU images)
set -uo pipefail
build=$(cd "${1:?usage: check-dist.sh BUILD}" && pwd)
cd "$(dirname "$0")/.."
source tools/check-counts.sh
archive() { (umask "$1" && tools/make-dist.sh "$build" >"$work/made" && cp "$(cat "$work/made")" "$2"); } # usage: archive UMASK FILE

# This folder has the programs that a build needs, and nothing else. It has neither nvcc nor
# clang-22.
mkdir "$work/bin"
for program in sh bash cc gcc c++ g++ as ld ar ranlib nm objcopy objdump strip readelf cmake ninja pkg-config zstd env uname cat; do
    found=$(command -v "$program") && ln -s "$found" "$work/bin/$program"
done
# Configures the unpacked sources. CI's compiler launcher, ccache, is not in the folder of programs.
configure() { # usage: configure FOLDER OPTION...
    rm -rf "$1" && env -u CMAKE_C_COMPILER_LAUNCHER -u CMAKE_CXX_COMPILER_LAUNCHER PATH="$work/bin" \
        cmake -G Ninja -S "$source" -B "$1" -DCMAKE_BUILD_TYPE=Release -DBSMM_TESTS=OFF "${@:2}"
}
says() { configure "${@:2}" >"$work/said" 2>&1 && grep -qF "$1" "$work/said" || { cat "$work/said"; return 1; }; }
refuses() { ! configure "${@:2}" >"$work/said" 2>&1 && tr '\n' ' ' <"$work/said" | tr -s ' ' | grep -qF "$1" || { cat "$work/said"; return 1; }; }
lacks() { ! grep -E "$1" "$2"; } # usage: lacks PATTERN FILE
# Compiles the table of GPU images (compiled kernels) alone and prints the name and code of each
# image.
embedded() {
    env PATH="$work/bin" ninja -C "$work/build" CMakeFiles/bsmm_objects.dir/gpu_images.c.o >"$work/out" 2>&1 || { cat "$work/out"; return 1; }
    printf '%s\n' '#include "gpu/images.h"' '#include <stdio.h>' 'int main(void) {' \
        '    for (const bsmm_gpu_image *i = bsmm_gpu_images; i->name; i++)' \
        '        printf("%s %s %d\n", i->name, i->code, i->pack[0] == 0x28 && i->pack[1] == 0xB5);' '}' >"$work/list.c"
    cc -I"$source/src" -I"$source/include" "$work/list.c" "$work/build/CMakeFiles/bsmm_objects.dir/gpu_images.c.o" -o "$work/list" &&
        "$work/list"
}
# Checks that the library's table of GPU images has every image that the build lists in its
# .rows files, and that each compressed image begins with zstd's magic number.
has_images() {
    embedded >"$work/images" || return 1
    sed -n 's/^{"\([^"]*\)", "\([^"]*\)".*/\1 \2 1/p' $(grep -o '"/[^"]*\.rows"' "$build/gpu_images.c" | tr -d '"') | sort >"$work/wanted"
    [ -s "$work/wanted" ] && diff "$work/wanted" <(sort "$work/images")
}

check "make the archive" archive 022 "$work/first.tar.gz"
check "make the archive again" archive 077 "$work/second.tar.gz"
check "both archives have the same bytes" cmp "$work/first.tar.gz" "$work/second.tar.gz"
tar -C "$work" -xzf "$work/first.tar.gz"
source=$(ls -d "$work"/bsmm-*/)
check "the archive's images are taken" says "taken from images/" "$work/build"
check "every image is embedded" has_images
# CMake also finds compilers outside of PATH. The next check shows that the build uses none of them
# for GPU code.
check "no rule calls a compiler for GPUs" lacks 'nvcc|clang-22' "$work/build/build.ninja"
check "with BSMM_CUDA=OFF they are not" says "CUDA kernels: left out" "$work/without" -DBSMM_CUDA=OFF -DBSMM_AMDGPU=OFF
echo "/* changed */" >>"$source/src/gpu/pack.h"
check "a changed source is named" refuses "src/gpu/pack.h differs from the file that made the GPU images" "$work/stale"
report
