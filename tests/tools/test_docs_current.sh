#!/bin/bash
# Tests that the generated drawings, tables and code in the documents are what the program prints
# and what the examples contain now. The example in README.md must have 12 lines.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
documents=("$root"/README.md "$root"/docs/*.md "$root"/docs/notes/*.md)
"$root/tools/update-docs.py" --check "$BSMM" "${documents[@]}"

lines=$(sed -n '/^```c$/,/^```$/p' "$root/README.md" | grep -cv '^```')
[ "$lines" = 12 ] || { echo "README's example has $lines lines"; exit 1; }

# Each chart names bsmm's version and the day of the measured commit.
for chart in "$root"/docs/figures/*.svg; do
    grep -qE '>bsmm [0-9]+\.[0-9]+\.[0-9]+, commit .* of 20[0-9-]{8}<' "$chart" || { echo "$chart: no date"; exit 1; }
done

# Checks that every link inside the repository leads to a file that exists.
for document in "${documents[@]}" "$root"/CONTRIBUTING.md; do
    while read -r link; do
        [ -e "$(dirname "$document")/$link" ] || { echo "$document: no $link"; exit 1; }
    done < <(grep -oE '\]\([^):#]+\)' "$document" | tr -d '()]')
done

# The check must fail after one number of a drawing is changed.
copy=$(mktemp)
trap 'rm -f "$copy"' EXIT
sed 's/^  0 |  0 /  0 |  7 /' "$root/docs/LAYOUTS.md" >"$copy"
if "$root/tools/update-docs.py" --check "$BSMM" "$copy" >/dev/null; then
    echo "a wrong drawing passes"
    exit 1
fi
