#!/bin/sh
# Shortens the line information of PTX text that nvcc -lineinfo made, so that it takes little space
# in the library. A `.loc` keeps the file and the line. The script removes the column and the
# description of inlining, whose strings follow the code as debug sections. It also removes a `.loc`
# that repeats the previous `.loc`, and a `.loc` that another `.loc` follows before the next
# instruction. Paths of files below ROOT become relative, and all other paths lose their folders, so
# that the text does not depend on the place of the sources.
#
#   usage: trim-ptx.sh ROOT FULL TRIMMED
set -eu
root=$1 full=$2 trimmed=$3
sed -E -e '/^\t\.section\t\.debug_/,$d' \
    -e 's/^(\t\.loc\t[0-9]+ [0-9]+) .*/\1 0/' \
    -e "s|^(\t\.file\t[0-9]+ \")$root/|\1|" \
    -e 's|^(\t\.file\t[0-9]+ \")/.*/|\1|' "$full" |
    awk '/^\t\.loc\t/ { coming = $0; next }
         /^[{}]/ { given = "" }
         coming != "" && coming != given { given = coming; print given }
         { coming = ""; print }' >"$trimmed"
