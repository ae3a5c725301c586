#!/bin/sh
# Shortens the line information of PTX text that nvcc -lineinfo made, so that it takes little space
# in the library. A `.loc` keeps the file and the line. The script removes the column and the
# description of inlining, whose strings follow the code as debug sections. It also removes a `.loc`
# that repeats the previous `.loc`, and a `.loc` that another `.loc` follows before the next
# instruction. Paths of files below ROOT become relative, and all other paths lose their folders, so
# that the text does not depend on the place of the sources.
#
# The script also numbers registers and labels in the order in which the text first names them.
# Equal code in two kernels then gets numbers that compress better (src/gpu/ptx_text.h). A label
# such as $L__BB3_12 becomes $L and a number that is unique in the file. Registers are numbered from
# 1 in each function. A function declares them by their letters and number, e.g. %r<20>. Names that
# are not declared so, e.g. the special register %clock64, stay.
#
#   usage: trim-ptx.sh ROOT FULL TRIMMED
set -eu
root=$1 full=$2 trimmed=$3
sed -E -e '/^\t\.section\t\.debug_/,$d' \
    -e 's/^(\t\.loc\t[0-9]+ [0-9]+) .*/\1 0/' \
    -e "s|^(\t\.file\t[0-9]+ \")$root/|\1|" \
    -e 's|^(\t\.file\t[0-9]+ \")/.*/|\1|' "$full" |
    awk 'function renumbered(line,    done, name, key) {
             while (match(line, /%[a-z]+[0-9]+|%[a-z]+<|\$L__BB[0-9]+_[0-9]+/)) {
                 done = done substr(line, 1, RSTART - 1)
                 name = substr(line, RSTART, RLENGTH)
                 line = substr(line, RSTART + RLENGTH)
                 if (name ~ /^\$/) {
                     if (!(name in labels)) labels[name] = "$L" ++labels_count
                     name = labels[name]
                 } else if (name ~ /<$/) {
                     class = substr(name, 1, length(name) - 1)
                     used[class] = 0
                     declared[class]++
                 } else {
                     class = name
                     sub(/[0-9]+$/, "", class)
                     if (class in declared) {
                         key = name " " declared[class]
                         if (!(key in number)) number[key] = ++used[class]
                         name = class number[key]
                     }
                 }
                 done = done name
             }
             return done line
         }
         /^\t\.loc\t/ { coming = $0; next }
         /^[{}]/ { given = "" }
         coming != "" && coming != given { given = coming; print given }
         { coming = ""; print renumbered($0) }' >"$trimmed"
