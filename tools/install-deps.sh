#!/bin/sh
# Installs what the build and the tests need, from Debian's packages; does nothing when all is there.
set -eu
packages="cmake ninja-build pkg-config gcc libjansson-dev libcmocka-dev zlib1g-dev"
missing=""
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
echo "installing:$missing"
sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"
$sudo apt-get update -qq
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
