#!/bin/bash
# Compares this tree with an earlier commit BASE_REV. It builds both libraries under build-compare/.
# One process (bench/compare) then compares the bits of the two libraries' results, and times the
# libraries alternately. The exit status is 1 if any bit differs. Other options, such as --device
# cuda:0 or --no-times, are passed to that program.
#   usage: compare-builds.sh BASE_REV [-DCMAKE_FLAG...] [--OPTION...]
#          compare-builds.sh --prepare BASE_REV
# With --prepare the script only makes build-compare/ usable on a machine without git, pkg-config and
# the libraries. Copy the folder there and use the first form.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$PWD/build-compare
prepare=
[ "${1:-}" != --prepare ] || { prepare=yes; shift; }
base=${1:?usage: compare-builds.sh BASE_REV [-DCMAKE_FLAG...] [--OPTION...]}
shift
flags=() options=()
for word in "$@"; do
    case $word in -D*) flags+=("$word") ;; *) options+=("$word") ;; esac
done
mkdir -p "$folder"

# This folder has the sources of the earlier commit, without anything from the working tree.
tree=$folder/tree-$base
if [ ! -d "$tree" ]; then
    mkdir "$tree.part"
    git archive "$base" CMakeLists.txt cmake include src | tar -x -C "$tree.part"
    mv "$tree.part" "$tree"
fi

# Copies the libraries and the output of pkg-config to build-compare/, for a machine that has
# neither.
packages="jansson libzstd"
keep_packages() {
    mkdir -p "$folder/packages"
    local package library
    for package in $packages; do
        library=$(cc -print-file-name="lib${package#lib}.so")
        cp "$(pkg-config --variable=includedir "$package")/${package#lib}"*.h "$folder/packages"
        cp -L "$library" "$folder/packages"
        cp -L "$library" "$folder/packages/$(objdump -p "$library" | awk '/SONAME/ { print $2 }')"
        pkg-config --modversion "$package" >"$folder/packages/$package.version"
    done
    cp "$(command -v zstd)" "$folder/packages"
}
if [ -n "$prepare" ]; then
    keep_packages
    exit
fi
if ! pkg-config --exists $packages 2>/dev/null; then
    cat >"$folder/pkg-config" <<'END'
#!/bin/sh
here=$(dirname "$0")/packages
for package; do :; done # The last argument names the package.
package=${package%% *}
for word in "$@"; do
    case $word in
    --version) echo 0.29.2 ;;
    --exists) [ -f "$here/$package.version" ] || exit 1 ;;
    --modversion) cat "$here/$package.version" ;;
    --cflags*) echo "-I$here" ;;
    --libs*) echo "-L$here -l${package#lib}" ;;
    esac
done
END
    chmod +x "$folder/pkg-config"
    flags+=("-DPKG_CONFIG_EXECUTABLE=$folder/pkg-config" "-DBSMM_ZSTD=$folder/packages/zstd")
fi

build() { # usage: build SOURCE FOLDER FLAG TARGET...
    local source=$1 to=$2 flag=$3
    shift 3
    cmake -G Ninja -S "$source" -B "$to" -DCMAKE_BUILD_TYPE=Release -DBSMM_TESTS=OFF \
        -DBSMM_INSTALL=OFF "$flag" "${flags[@]}" >"$to.log" 2>&1 &&
        cmake --build "$to" -j "${JOBS:-$(nproc)}" --target "$@" >>"$to.log" 2>&1 ||
        { cat "$to.log"; return 2; }
}
build "$tree" "$folder/$base" -DBSMM_CLI=OFF libbsmm.so
build . "$folder/new" -DBSMM_CLI=ON libbsmm.so bsmm_compare
"$folder/new/bsmm_compare" \
    "$folder/$base/libbsmm.so" "$folder/new/libbsmm.so" "${options[@]}"
