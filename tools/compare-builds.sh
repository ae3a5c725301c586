#!/bin/bash
# Compares this tree with an earlier commit: the bits that both libraries write, and their times,
# paired in one process (bench/compare). Builds both under build-compare/. Exit status 1 if any bit
# differs. The other options are the program's: --device cuda:0, --no-times, ...
# usage: compare-builds.sh BASE_REV [-DCMAKE_FLAG...] [--OPTION...]
#        compare-builds.sh --prepare BASE_REV   puts what a machine without git, pkg-config and
#        jansson needs into build-compare/: then the first form works there too.
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

# The earlier tree: sources alone, of exactly that commit.
tree=$folder/tree-$base
if [ ! -d "$tree" ]; then
    mkdir "$tree.part"
    git archive "$base" | tar -x -C "$tree.part"
    mv "$tree.part" "$tree"
fi

# pkg-config's answers about a jansson that lies in build-compare.
keep_jansson() {
    mkdir -p "$folder/jansson"
    cp "$(pkg-config --variable=includedir jansson)"/jansson*.h "$folder/jansson"
    cp "$(pkg-config --variable=libdir jansson)/libjansson.a" "$folder/jansson"
    pkg-config --modversion jansson >"$folder/jansson/version"
}
if [ -n "$prepare" ]; then
    keep_jansson
    exit
fi
if ! pkg-config --exists jansson 2>/dev/null; then
    cat >"$folder/pkg-config" <<'END'
#!/bin/sh
here=$(dirname "$0")/jansson
for word in "$@"; do
    case $word in
    --version) echo 0.29.2 ;;
    --modversion) cat "$here/version" ;;
    --cflags*) echo "-I$here" ;;
    --libs*) echo "-L$here -ljansson" ;;
    esac
done
END
    chmod +x "$folder/pkg-config"
    flags+=("-DPKG_CONFIG_EXECUTABLE=$folder/pkg-config")
fi

build() { # SOURCE FOLDER TARGET...
    local source=$1 to=$2
    shift 2
    cmake -G Ninja -S "$source" -B "$to" -DCMAKE_BUILD_TYPE=Release -DBSMM_TESTS=OFF \
        -DBSMM_INSTALL=OFF "${flags[@]}" >"$to.log" 2>&1 &&
        cmake --build "$to" -j "${JOBS:-$(nproc)}" --target "$@" >>"$to.log" 2>&1 ||
        { cat "$to.log"; return 2; }
}
build "$tree" "$folder/$base" libbsmm.so
build . "$folder/new" libbsmm.so bsmm_compare
"$folder/new/bsmm_compare" \
    "$folder/$base/libbsmm.so" "$folder/new/libbsmm.so" "${options[@]}"
