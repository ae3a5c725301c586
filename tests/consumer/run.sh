#!/bin/bash
# Installs a build into an empty folder, then builds a program that uses the installed library, in
# every way that users have: by CMake and by pkg-config, with the shared and with the static
# library, and by CMake from the sources. usage: run.sh BUILD_FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/installed
cmake --install "$1" --prefix "$prefix" >"$work/log"
libdir=$(dirname "$(find "$prefix" -name libbsmm.so)")
export LD_LIBRARY_PATH=$libdir
# Only bsmm's own package file is visible to pkg-config, because users need not have that of
# jansson.
export PKG_CONFIG_LIBDIR=$libdir/pkgconfig
for file in bin/bsmm include/bsmm.h share/man/man1/bsmm.1 \
    share/bash-completion/completions/bsmm; do
    [ -s "$prefix/$file" ] || { echo "$file is not installed"; exit 1; }
done

linkage() { # usage: linkage PROGRAM shared|static
    local linked=static
    case $(ldd "$1") in *libbsmm.so.[0-9]*) linked=shared ;; esac
    [ "$linked" = "$2" ] || { echo "$1 is linked $linked"; exit 1; }
}
by_cmake() { # usage: by_cmake shared|static|source [FLAGS...]
    local build=$work/cmake-$1
    cmake -S "$here" -B "$build" -DBSMM_FROM="$1" "${@:2}" >"$work/log" 2>&1 &&
        cmake --build "$build" --parallel "$(nproc)" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    echo "CMake, $1: $("$build/consumer")"
}
by_pkg_config() { # usage: by_pkg_config shared|static FLAGS...
    local program=$work/pkg-config-$1
    # shellcheck disable=SC2046 # The flags must be split into words.
    ${CC:-cc} -std=c99 -pedantic-errors $(pkg-config --cflags bsmm) "$here/main.c" -o "$program" "${@:2}"
    linkage "$program" "$1"
    echo "pkg-config, $1: $("$program")"
}
for kind in shared static; do
    by_cmake $kind -DCMAKE_PREFIX_PATH="$prefix"
    linkage "$work/cmake-$kind/consumer" $kind
done
by_pkg_config shared $(pkg-config --libs bsmm)
by_pkg_config static $(pkg-config --static --libs bsmm | sed 's/-lbsmm/-l:libbsmm.a/')
unset PKG_CONFIG_LIBDIR # A build from the sources needs jansson's package file.
# Prints a variable of CMake with which the build folder was made.
variable() { # usage: variable BUILD_FOLDER NAME
    sed -n "s/^$2:[A-Z]*=//p" "$1/CMakeCache.txt"
}
# The build from the sources leaves out the CUDA kernels, which another test compiles. The build has
# the options of the build folder, so that ccache finds most objects.
by_cmake source -DBSMM_SOURCE="$here/../.." -DBSMM_CUDA=OFF \
    -DCMAKE_BUILD_TYPE="$(variable "$1" CMAKE_BUILD_TYPE)" -DBSMM_WERROR="$(variable "$1" BSMM_WERROR)"
