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

# Each drawing of a scale layout has axis titles, indices and a legend, and text that can be read. The
# check must fail for a drawing that lacks one of them.
export PYTHONDONTWRITEBYTECODE=1
picture="$root/tests/cli/picture.py"
python3 "$picture" 2 "$root"/docs/layouts/*.svg
for change in '0,/axis-title/s///' 's/id="legend"//' 's/class="index"//' 's/bytes//g' 's/font-size="12"/font-size="9"/'; do
    if sed "$change" "$root/docs/layouts/nv_8x4.svg" | python3 "$picture" 2 - >/dev/null 2>&1; then
        echo "a drawing passes after sed '$change'"
        exit 1
    fi
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
