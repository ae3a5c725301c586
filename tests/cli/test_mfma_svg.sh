#!/bin/bash
# Tests that the drawings of `bsmm mfma --svg` have axes, indices and a legend, and can be read. The
# test draws each operand of each instruction. $BSMM is the command.
tests=$(cd "$(dirname "$0")" && pwd)
source "$tests/scratch.sh"
export PYTHONDONTWRITEBYTECODE=1

drawings=0
while read -r name; do
    for operand in A B C D scale_a scale_b; do
        "$BSMM" mfma "$name" --operand $operand --svg >"$name.$operand.svg" 2>err && drawings=$((drawings + 1)) && continue
        grep -q "takes no scales" err || fail "$name, $operand: $(cat err)"
        rm "$name.$operand.svg"
    done
done < <("$BSMM" mfma --json | sed -E 's/.*"instruction":"([^"]*)".*/\1/' | sort -u)
[ $drawings -ge 250 ] || fail "only $drawings drawings"
for type in e4m3 e2m3 e3m2 e2m1; do
    "$BSMM" mfma v_mfma_scale_f32_16x16x128_f8f6f4 --type $type --svg >$type.svg
done
python3 "$tests/picture.py" 1 ./*.svg || fail "see above"

# A lane holds four adjacent elements of a row of A, which are one cell. Adjacent elements of D are in
# different lanes, so that each is a cell.
for row in "A 64" "D 256"; do
    read -r operand cells <<<"$row"
    found=$(grep -cE '>[0-9]+ v[0-9]' v_mfma_f32_16x16x16_bf16."$operand".svg)
    [ "$found" = "$cells" ] || fail "operand $operand has $found cells"
done

# The check must fail for a drawing without axis titles, legend, indices or units, or with small text.
good=v_mfma_f32_32x32x16_fp8_fp8.D.svg
[ -s $good ] || fail "$good was not drawn"
for change in /axis-title/d 's/id="legend"//' 's/class="index"//' 's/bits//' 's/font-size="12"/font-size="9"/' \
    's/fill="#[0-9a-f]*"/fill="hsl(5,60%,92%)"/'; do
    sed "$change" $good | python3 "$tests/picture.py" 1 - >/dev/null 2>&1 && fail "a drawing after sed '$change' passes"
done
true
