#!/bin/sh
# Turns the plain comments of a C header into doxygen comments. A comment before a declaration gets
# /**. A comment after a field, enumerator or macro gets /**<. If a line declares several fields,
# each field gets the comment. The fields struct_size and reserved get a comment here, because they
# mean the same in every struct.
exec awk '
function trailing(comment) {
    sub(/\/\* /, "/**< ", comment)
    return comment
}
/^ *\/\* -+$/ { sub(/\/\* -+/, "/*") }
/^ *\/\* / { sub(/\/\* /, "/** ") }
/^    (const )?[a-z0-9_]+ \**[a-z0-9_\[\]]+(, \**[a-z0-9_\[\]]+)*;( +\/\*.*)?$/ {
    end = index($0, ";")
    declaration = substr($0, 5, end - 5)
    comment = substr($0, end + 1)
    if (comment == "" && declaration ~ / struct_size$/) comment = " /* sizeof the struct */"
    if (comment == "" && declaration ~ / reserved$/) comment = " /* 0 */"
    match(declaration, /^(const )?[a-z0-9_]+ /)
    type = substr(declaration, 1, RLENGTH)
    count = split(substr(declaration, RLENGTH + 1), names, ", ")
    for (i = 1; i < count; i++) print "    " type names[i] ";" trailing(comment)
    print "    " type names[count] ";" trailing(comment)
    next
}
/[^ ] +\/\* / { sub(/\/\* /, "/**< ") }
{ print }' "$1"
