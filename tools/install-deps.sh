#!/bin/sh
# Installs what the named purposes need from Debian's packages; does nothing when all is there.
# usage: install-deps.sh PURPOSE...   (build, test, run, check, fuzz, docs)
set -eu
packages_of() {
    case $1 in
    build) echo "cmake ninja-build pkg-config gcc libc6-dev libjansson-dev" ;;
    test) echo "g++ libcmocka-dev zlib1g-dev python3 gnuplot-nox libopenblas0-pthread libdnnl2" ;;
    run) echo "python3 python3-pip" ;;
    check) echo "clang-14 clang-format-14 clang-tidy-14 libomp-14-dev" ;;
    fuzz) echo "clang-14 libclang-rt-14-dev libomp-14-dev" ;;
    docs) echo "doxygen" ;;
    *) echo "$0: $1 is no purpose" >&2; exit 2 ;;
    esac
}
missing=""
for purpose in "$@"; do
    packages=$(packages_of "$purpose")
    for package in $packages; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing="$missing $package"
    done
done
[ -z "$missing" ] && exit 0
echo "installing:$missing"
sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"
# A stale index is enough for most; it is refreshed only when it is not.
install() {
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
}
install >/dev/null 2>&1 || { $sudo apt-get update -qq && install >/dev/null; }
