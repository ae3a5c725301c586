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

# README's table of four products must have the figures of the chart below it, and no share of a peak in
# PERFORMANCE may be far above 1, because then the peak is that of other instructions.
check_figures() {
    PYTHONPATH="$root/tools" python3 - "$1" "$root/docs/PERFORMANCE.md" <<'EOF'
import re
import sys
from pathlib import Path

import figures

readme = Path(sys.argv[1]).read_text(encoding="utf-8")
picks = re.search(r"<!-- peers: (.*?) -->", readme)[1].split(", ")
table = readme[readme.index("| product, M x N x K |"):].splitlines()[2:]
for pick, line in zip(picks, table, strict=False):
    name, index = pick.split()
    machine = figures.load(name)
    (_, shape, ours, _, _, peer, theirs), _ = figures.rows_of(machine)[int(index)]
    cube = re.fullmatch(r"(\d+)\^3", shape)
    wanted = [" x ".join([cube[1]] * 3) if cube else shape, f"{ours:g} {machine['unit']}", f"{theirs:g} {machine['unit']}", peer]
    for text in wanted:
        assert text in line, f"{text} is not in the line {line}"
assert len(picks) == 4 and table[4] == "", table[:5]
for name in "zen5", "emerald", "zen3", "h200":
    machine = figures.load(name)
    for row, run in figures.rows_of(machine):
        assert row[4] is None or figures.ratio(machine, row[2], row[4]) < 1.05, row
        assert re.search(r"\b[0-9a-f]{7,}$", run["commit"]) and re.fullmatch(r"20\d\d-\d\d-\d\d", run["date"]), run
page = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
assert len(page) <= 150, f"PERFORMANCE has {len(page)} lines"
heads = [line for line in page if line.startswith("| product | shape | bsmm,")]
assert len(heads) == sum(line.startswith("<!-- figure: ") for line in page) == 4, heads
EOF
}
export PYTHONDONTWRITEBYTECODE=1
check_figures "$root/README.md"

# Each drawing of a scale layout has axis titles, indices and a legend, and text that can be read. The
# check must fail for a drawing that lacks one of them.
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

# The checks must fail after one figure of README or one number of a drawing is changed.
copy=$(mktemp)
trap 'rm -f "$copy"' EXIT
sed 's/ 765.5 us/ 764.5 us/' "$root/README.md" >"$copy"
if check_figures "$copy" 2>/dev/null; then
    echo "a wrong figure of README passes"
    exit 1
fi
sed 's/^  0 |  0 /  0 |  7 /' "$root/docs/LAYOUTS.md" >"$copy"
if "$root/tools/update-docs.py" --check "$BSMM" "$copy" >/dev/null; then
    echo "a wrong drawing passes"
    exit 1
fi
