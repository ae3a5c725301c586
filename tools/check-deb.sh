#!/bin/bash
# Checks the Debian packages in a folder: lintian must find neither errors nor warnings. After
# extraction, the command must run and find its simulators, the man page must be readable, and a
# program must build against the library. The last line is "N passed, N failed".
#   usage: check-deb.sh [FOLDER]   (build-deb/deb unless given)
set -uo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build-deb/deb}
source tools/check-counts.sh
lintian_accepts() { # usage: lintian_accepts PACKAGE
    lintian --allow-root --fail-on error,warning "$1" && ! lintian --allow-root "$1" 2>/dev/null | grep -E '^[EW]:'
}
package_is() { [ "$(dpkg-deb -f "$1" "$2")" = "$3" ]; } # usage: package_is FILE FIELD VALUE

version=$(sed -n 's/^#define BSMM_VERSION_[A-Z]* \([0-9]*\)$/\1/p' include/bsmm.h | paste -sd.)
root=$work/root
for name in libbsmm0 libbsmm-dev bsmm-tools; do
    package=$(ls "$folder/${name}_"*.deb)
    check "$name: lintian" lintian_accepts "$package"
    check "$name: version $version-1" package_is "$package" Version "$version-1"
    check "$name: extract" dpkg-deb -x "$package" "$root"
    check "$name: the newest entry of the changelog has the version" \
        grep -qF "bsmm ($version-1)" <(zcat "$root/usr/share/doc/$name/changelog.Debian.gz" | head -n 1)
done
libraries=$(dirname "$(ls "$root"/usr/lib/*/libbsmm.so.0)")
command=$root/usr/bin/bsmm
check "the command's version" [ "$("$command" --version)" = "bsmm $version" ]
check "the command's simulators" grep -q '^sim:gfx950' <("$command" devices)
check "the man page" grep -q '^\.SH SYNOPSIS' <(zcat "$root/usr/share/man/man1/bsmm.1.gz")
check "the completion" bash -n "$root/usr/share/bash-completion/completions/bsmm"
build_consumer() {
    sed "s#^prefix=.*#prefix=$root/usr#" "$libraries/pkgconfig/bsmm.pc" >"$work/bsmm.pc"
    # shellcheck disable=SC2046 # The flags must be split into words.
    cc -std=c99 $(PKG_CONFIG_LIBDIR=$work pkg-config --cflags --libs bsmm) tests/consumer/main.c \
        $(PKG_CONFIG_LIBDIR=$work pkg-config --libs bsmm) -o "$work/consumer" && LD_LIBRARY_PATH=$libraries "$work/consumer"
}
check "a program against the library" build_consumer
needs_version() { objdump -p "$work/consumer" | grep -q 'BSMM_0\.1'; }
check "the program needs the symbol version BSMM_0.1" needs_version
report
