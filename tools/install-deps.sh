#!/bin/sh
# Installs the Debian packages that the given purposes need. "cuda" also installs nvcc and cuobjdump
# from PyPI into .cache/.venv. "sim" also installs the Python packages of the simulators' tests into
# .cache/sim; "python" those of the Python wheel into .cache/python; "torch" torch into .cache/torch,
# which takes some GB. Packages that are already installed are skipped.
#   usage: install-deps.sh PURPOSE...
#   (build, test, run, check, fuzz, docs, deb, cuda, amdgpu, sim, emulate, python, torch)
set -eu
packages_of() {
    case $1 in
    build) echo "cmake ninja-build pkg-config gcc libc6-dev libjansson-dev libzstd-dev" ;;
    test) echo "g++ libcmocka-dev zlib1g-dev abigail-tools python3 gnuplot-nox libopenblas0-pthread libdnnl2" ;;
    run) echo "python3 python3-pip" ;;
    check) echo "clang-14 clang-format-14 clang-tidy-14 libomp-14-dev ccache git" ;;
    fuzz) echo "clang-14 libclang-rt-14-dev libomp-14-dev" ;;
    docs) echo "doxygen" ;;
    deb) echo "dpkg-dev lintian" ;;
    cuda) echo "g++ python3 python3-pip python3-venv zstd" ;;
    amdgpu) echo "clang-22 lld-22 llvm-22 zstd" ;;
    python | torch) echo "python3 python3-dev python3-pip python3-venv" ;;
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

# Installs the Python packages of a requirements file into a virtual environment below .cache.
install_packages() { # usage: install_packages FOLDER REQUIREMENTS WHAT
    folder=$(dirname "$0")/../.cache/$1
    mark=$folder/.$1-$(cksum <"$2" | cut -d' ' -f1)
    [ -e "$mark" ] && return
    echo "installing $3 from PyPI into .cache/$1"
    python3 -m venv "$folder"
    "$folder/bin/python3" -m pip install --quiet --disable-pip-version-check -r "$2"
    touch "$mark"
}

missing=""
wanted=" $* "
for purpose in "$@"; do
    packages=$(packages_of "$purpose")
    for package in $packages; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing="$missing $package"
    done
done
sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"
case $missing in *:arm64*) $sudo dpkg --add-architecture arm64 ;; esac
# An old package index is enough for most installations. The script refreshes the index only if an
# installation fails.
install() {
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
}
if [ -n "$missing" ]; then
    echo "installing:$missing"
    install >/dev/null 2>&1 || { $sudo apt-get update -qq && install >/dev/null; }
fi
root=$(dirname "$0")/..
case $wanted in *" cuda "*) install_cuda ;; esac
case $wanted in *" sim "*) install_packages sim "$root/tests/sim_gfx9/requirements.txt" "the simulators' tests' packages" ;; esac
case $wanted in *" python "*) install_packages python "$root/python/requirements.txt" "the wheel's packages" ;; esac
case $wanted in *" torch "*)
    install_packages torch "$root/python/requirements-torch.txt" "torch"
    "$root/.cache/torch/bin/python3" -m pip install --quiet --disable-pip-version-check --no-deps \
        -r "$root/python/requirements-peers.txt"
    ;;
esac
