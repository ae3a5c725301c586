#!/bin/sh
# Installs the Debian packages that the given purposes need. "cuda" also installs nvcc and cuobjdump
# from PyPI into .cache/.venv. "sim" also installs the Python packages of the simulators' tests into
# .cache/sim. Packages that are already installed are skipped.
#   usage: install-deps.sh PURPOSE...   (build, test, run, check, fuzz, docs, cuda, amdgpu, sim, emulate)
set -eu
packages_of() {
    case $1 in
    build) echo "cmake ninja-build pkg-config gcc libc6-dev libjansson-dev libzstd-dev" ;;
    test) echo "g++ libcmocka-dev zlib1g-dev python3 gnuplot-nox libopenblas0-pthread libdnnl2" ;;
    run) echo "python3 python3-pip" ;;
    check) echo "clang-14 clang-format-14 clang-tidy-14 libomp-14-dev ccache git" ;;
    fuzz) echo "clang-14 libclang-rt-14-dev libomp-14-dev" ;;
    docs) echo "doxygen" ;;
    cuda) echo "g++ python3 python3-pip python3-venv zstd" ;;
    amdgpu) echo "clang-22 lld-22 llvm-22 zstd" ;;
    sim) echo "clang-22 lld-22 llvm-22 python3 python3-pip python3-venv" ;;
    emulate)
        echo "valgrind qemu-user libsimde-dev gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross"
        echo "libjansson-dev:arm64 libzstd-dev:arm64 libcmocka-dev:arm64 libgomp1:arm64 zlib1g:arm64"
        ;;
    *) echo "$0: $1 is no purpose" >&2; exit 2 ;;
    esac
}
# Installs nvcc unless the machine has a CUDA toolkit. cmake/cuda.cmake looks for nvcc in the same
# places.
install_cuda() {
    requirements=$(dirname "$0")/cuda-requirements.txt
    folder=$(dirname "$0")/../.cache/.venv
    mark=$folder/.cuda-$(cksum <"$requirements" | cut -d' ' -f1)
    [ -e "$mark" ] && return
    nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc) &&
        [ -x "$(dirname "$nvcc")/cuobjdump" ] && [ -x "$(dirname "$nvcc")/nvdisasm" ] && return
    echo "installing nvcc and cuobjdump from PyPI into .cache/.venv"
    python3 -m venv "$folder"
    "$folder/bin/python3" -m pip install --quiet --disable-pip-version-check -r "$requirements"
    touch "$mark"
}

install_sim() {
    requirements=$(dirname "$0")/../tests/sim_gfx9/requirements.txt
    folder=$(dirname "$0")/../.cache/sim
    mark=$folder/.sim-$(cksum <"$requirements" | cut -d' ' -f1)
    [ -e "$mark" ] && return
    echo "installing the simulators' tests' packages from PyPI into .cache/sim"
    python3 -m venv "$folder"
    "$folder/bin/python3" -m pip install --quiet --disable-pip-version-check -r "$requirements"
    touch "$mark"
}

missing=""
wants_cuda=""
wants_sim=""
for purpose in "$@"; do
    packages=$(packages_of "$purpose")
    [ "$purpose" != cuda ] || wants_cuda=yes
    [ "$purpose" != sim ] || wants_sim=yes
    for package in $packages; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing="$missing $package"
    done
done
sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"
case $missing in *:arm64*) $sudo dpkg --add-architecture arm64 ;; esac
# An old package index is enough for most installations. It is refreshed only if an installation
# fails.
install() {
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
}
if [ -n "$missing" ]; then
    echo "installing:$missing"
    install >/dev/null 2>&1 || { $sudo apt-get update -qq && install >/dev/null; }
fi
[ -z "$wants_cuda" ] || install_cuda
[ -z "$wants_sim" ] || install_sim
