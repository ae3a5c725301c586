#!/bin/bash
# The drawings, tables and code in the documents are what the program and the examples say today;
# README's example is 12 lines.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
documents=("$root"/README.md "$root"/docs/*.md "$root"/docs/notes/*.md)
"$root/tools/update-docs.py" --check "$BSMM" "${documents[@]}"

lines=$(sed -n '/^```c$/,/^```$/p' "$root/README.md" | grep -cv '^```')
[ "$lines" = 12 ] || { echo "README's example has $lines lines"; exit 1; }

# Links inside the repository lead somewhere.
for document in "${documents[@]}" "$root"/CONTRIBUTING.md; do
    while read -r link; do
        [ -e "$(dirname "$document")/$link" ] || { echo "$document: no $link"; exit 1; }
    done < <(grep -oE '\]\([^):#]+\)' "$document" | tr -d '()]')
done

# The check itself sees a drawing that is not current.
copy=$(mktemp)
trap 'rm -f "$copy"' EXIT
sed 's/^  0 |  0 /  0 |  7 /' "$root/docs/LAYOUTS.md" >"$copy"
if "$root/tools/update-docs.py" --check "$BSMM" "$copy" >/dev/null; then
    echo "a wrong drawing passes"
    exit 1
fi
