#!/bin/bash
# Tests that the command finds AMD's driver under each name that it may have. A fake driver
# (tests/fake_hip) stands for the library. The test is skipped if the machine has an AMD GPU.
set -u
fake=$(dirname "$BSMM")/tests/fake_hip/libamdhip64.so.6
[ -e "$fake" ] || { echo "skipped: there is no fake driver"; exit 0; }
"$BSMM" devices | grep -q '^hip:0 ' && { echo "skipped: there is an AMD GPU"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for version in 5 6 7; do
    mkdir "$folder/$version" && cp "$fake" "$folder/$version/libamdhip64.so.$version"
    LD_LIBRARY_PATH=$folder/$version "$BSMM" devices | grep -q '^hip:0 *Fake AMD GPU 0 ' ||
        { echo "libamdhip64.so.$version is not found"; exit 1; }
done
