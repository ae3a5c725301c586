#!/bin/bash
# Adds one made-up thing of each kind (format, layout, recipe, kernel and so on) to a copy of the
# source tree and tests the result. Then it removes one part of each addition; the compiler or a
# test must fail and name what is missing. README.md describes the additions.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree build=$work/tree/build
passed=0

fail() {
    echo "FAILED: $*"
    echo "$passed passed, 1 failed"
    exit 1
}
pass() {
    passed=$((passed + 1))
    echo "ok: $*"
}
expect() { # usage: expect TEXT COMMAND...   (the command must fail and print TEXT)
    local text=$1
    shift
    if "$@" >"$work/output" 2>&1; then fail "$* succeeds; it must say: $text"; fi
    grep -qF -- "$text" "$work/output" || { cat "$work/output"; fail "$* does not say: $text"; }
    pass "$text"
}
run() {
    "$@" >"$work/output" 2>&1 || { cat "$work/output"; fail "$*"; }
    pass "${*##*/}"
}

# First, the copy of the source tree gets all additions.

mkdir "$tree"
(cd "$root" && tar c CMakeLists.txt cmake include src sim bench cli tests tools examples fuzz) | tar x -C "$tree"
cp -r "$tree" "$work/plain"
python3 "$here/add.py" "$tree" "$here"/*.add
python3 "$here/golden.py" "$tree"

# The option -O1 is set, because the vector code needs some optimization. Higher levels take longer
# to compile, and compiling takes most of the test's time. CCACHE_BASEDIR makes ccache store paths below
# $work as relative paths, because the name of $work differs in each run.
export CCACHE_BASEDIR=$work
cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1" -DBSMM_CUDA=OFF -DBSMM_AMDGPU=OFF \
    -DBSMM_INSTALL=OFF >"$work/output" || { cat "$work/output"; exit 1; }
tests=(test_tables test_registry test_matmul test_recipes_golden test_golden_elements test_golden_layouts
    test_sol test_quantize_coder test_quantize_fast_decode test_convert)
ninja -C "$build" "${tests[@]}" bsmm_cli >"$work/output" || { tail -n 40 "$work/output"; fail "the build"; }
run python3 "$tree/tools/check-rooms.py" "$tree" --build "$build"

# The tests below run on the CPU, so they need no compiled kernels for AMD GPUs. The sources of these
# kernels must still be correct C with the additions. The front end of clang checks this in two seconds,
# while code generation would take minutes.
amdgpu_sources() {
    local processor source
    for processor in gfx942 gfx950; do
        for source in "$tree"/src/amdgpu/cdna/*.c "$tree/src/amdgpu/$processor"/*.c; do
            clang-22 -target amdgcn-amd-amdhsa -mcpu=$processor -std=c17 -nogpulib -ffreestanding -fsyntax-only \
                -Wall -Wextra -Wshadow -Werror -I"$tree/include" -I"$tree/src" "$source" || return 1
        done
    done
}
if command -v clang-22 >/dev/null; then run amdgpu_sources; fi
export OMP_WAIT_POLICY=passive
for test in "${tests[@]}"; do
    [ "$test" = test_matmul ] || run "$build/tests/$test"
done
# These variables make the tests run products with the added formats, by every kernel on every
# device.
export BSMM_TEST_FORMATS="e1m2 fake_mx4" BSMM_TEST_VERBOSE=1
for filter in all_pairs_of_formats every_element_and_scale scale_layouts_of_few_rows; do
    run env BSMM_TEST_FILTER="test_$filter" "$build/tests/test_matmul"
    grep -q cpu_fake "$work/output" || [ "$filter" = scale_layouts_of_few_rows ] || fail "cpu_fake multiplies nothing"
    grep -q fake_any "$work/output" || fail "fake_any multiplies nothing"
done
unset BSMM_TEST_FORMATS BSMM_TEST_VERBOSE

# usage: shows TEXT WORD...   (the command with these words must print TEXT)
shows() {
    local text=$1
    shift
    run "$build/bsmm" "$@"
    grep -qE -- "$text" "$work/output" || { cat "$work/output"; fail "bsmm $* does not print: $text"; }
}
# The command's lists and words derive from the library's tables.
shows '^e1m2  *element  *4 ' formats
shows '^fake_mx4  *e1m2  *e8m0  *1x32 ' formats
shows '^fake_16x2  *16x2 ' layouts
shows '^e1m2  *1\.6  *0x6  *1\.5 ' encode e1m2 1.6
shows '^fake .*fake_mx4' recipes
shows 'cpu_fake' explain -M 8 -N 8 -K 32 --format f32:fake_mx4 --out f32
expect 'f32, f16, bf16' "$build/bsmm" dequantize --dtype e1m2 in.safetensors -o out.safetensors

# From here on, the script removes single parts of an addition. A check must find each missing part.

# usage: half NAME.add WITHOUT. Makes an overlay folder with all sections of the addition except
# those for files that match WITHOUT.
half() {
    rm -rf "$work/half"
    cp -r "$work/plain" "$work/half"
    awk -v without="$2" '/^== /{ on = $2 !~ without } on' "$here/$1" >"$work/half.add"
    python3 "$here/add.py" "$work/half" "$work/half.add"
}
object() { # usage: object SOURCE   (compiles a source of the overlay)
    python3 "$here/object.py" "$build" "$1" "$work/half" "$work/half.o"
}
# usage: relink TEST SOURCE... Links a test with the overlay's versions of these sources in place of
# the build's objects, and without the objects that $missing names.
missing=
relink() {
    local test=$1 source objects=
    shift
    cp "$build/libbsmm.a" "$work/libhalf.a"
    for object in $missing; do
        ar d "$work/libhalf.a" "$object"
    done
    for source in "$@"; do
        objects+=" $work/$(basename "$source").o"
        python3 "$here/object.py" "$build" "$source" "$work/half" "$work/$(basename "$source").o" || return 1
    done
    (cd "$build" && eval "$(ninja -t commands "$test" | tail -n 1 |
        sed "s|[^ ]*libbsmm\.a|$objects $work/libhalf.a|; s|-o tests/$test|-o $work/$test|")")
}
# usage: broken_test TEXT TEST SOURCE... Links the test as relink does. The test must then fail and
# print TEXT.
broken_test() {
    local text=$1 test=$2
    shift
    relink "$@" >"$work/output" 2>&1 || { cat "$work/output"; fail "$test does not link"; }
    expect "$text" "$work/$test"
}

half element.add bsmm.h
expect BSMM_ELEM_E1M2 object src/format/elem.c
half element.add elem.def
expect BSMM_ELEM_E1M2 object src/format/elem.c
half preset.add nothing
expect BSMM_ELEM_E1M2 object src/format/preset.c
half layout.add bsmm.h
expect BSMM_LAYOUT_FAKE_16X2 object src/format/layout.c
half layout.add layout.def
expect BSMM_LAYOUT_FAKE_16X2 object src/format/layout.c
half kernel.add cpu_fake.c
missing=cpu_fake.c.o
expect bsmm_kernel_cpu_fake relink test_registry src/core/registry.c
half backend.add fake_backend.c
missing=fake_backend.c.o
expect bsmm_backend_fake relink test_registry src/core/backend.c
missing=

cp -r "$tree/include" "$tree/src" "$work/half"
for value in ORDER_COL GLOBAL_DIVISOR COMPUTE_FAST HALVES_INTERLEAVED SCALE_BY_COL MATMUL_BATCH_INVARIANT \
    GROUP_SCALES_APART; do
    sed -i "s/V(BSMM_$value)/ /" "$work/half/src/base/choices.h"
    expect "BSMM_$value" object src/format/matrix.c
    cp "$tree/src/base/choices.h" "$work/half/src/base"
done
sed -i 's/{C, 2, 16}/{C, 1, 16}/' "$work/half/src/format/layout.def"
broken_test "fake_16x2: its digits cover 16 x 1 of a tile of 16 x 2" test_tables src/format/layout.c
sed -i 's/{C, 1, 16}/{C, 2, 8}/' "$work/half/src/format/layout.def"
broken_test "fake_16x2: two scales of a tile lie at 8" test_tables src/format/layout.c
sed -i 's/1, 1.75, 1, 0.25, 0x7/1, 1.5, 1, 0.25, 0x7/' "$work/half/src/format/elem.def"
broken_test "e1m2: its row has 4 bits, bias 1, max 1.5" test_tables src/format/elem.c
sed -i '/\.finish = finish/d' "$work/half/src/fake/fake_backend.c"
sed -i 's/static bsmm_status finish/bsmm_status finish(const void *, void *);\nbsmm_status finish/' "$work/half/src/fake/fake_backend.c"
broken_test "backend fake: its finish is NULL" test_registry src/fake/fake_backend.c

golden=$tree/tests/golden
sed -i '/fake/d' "$golden/recipes/manifest.tsv" "$golden/data/layouts.tsv"
sed -i '/e1m2/d' "$golden/data/elements.tsv"
expect "recipe fake for fake_mx4: no golden bytes" "$build/tests/test_recipes_golden"
expect "fake_16x2: 0 golden cases" "$build/tests/test_golden_layouts"
expect "encode/e1m2/sat/f16" "$build/tests/test_golden_elements"
echo "$passed passed, 0 failed"
