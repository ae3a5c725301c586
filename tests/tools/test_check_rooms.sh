#!/bin/bash
# Tests that tools/check-rooms.py accepts this repository. In a copy, the test adds includes and
# calls that one folder of the source tree may not make to another; the tool must name each of them.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

"$root/tools/check-rooms.py"

mkdir -p "$tree"/{include,cli,examples,tests,sim/{common,gfx9},src/{base,format,core,ref,cpu/pack,gpu,cuda/host,io,other}}
touch "$tree"/include/bsmm.h "$tree"/src/{base/base.h,format/format.h,core/kernel.h,core/plan.h} \
    "$tree"/src/{ref/ref.h,gpu/params.h,cuda/host/plan.h,cpu/pack/pack.h} "$tree"/cli/cli.h \
    "$tree"/sim/{common/memory.h,gfx9/sim.h}
accept() { # usage: accept FILE INCLUDE
    echo "#include \"$2\"" >"$tree/$1"
    "$root/tools/check-rooms.py" "$tree" >"$tree/output" || { cat "$tree/output"; exit 1; }
    rm "$tree/$1"
}
refuse() { # usage: refuse FILE INCLUDE
    echo " #  include \"$2\"" >"$tree/$1"
    if "$root/tools/check-rooms.py" "$tree" >"$tree/output"; then
        echo "$1 may include $2"
        exit 1
    fi
    grep -q "^$1: " "$tree/output"
    rm "$tree/$1"
}
accept src/base/a.c bsmm.h
accept src/core/a.c format/format.h
accept src/cpu/pack/a.c core/kernel.h
accept src/cuda/host/a.c gpu/params.h
accept src/gpu/a.c core/kernel.h
accept cli/a.c cli.h
accept tests/a.c common/memory.h
refuse src/base/a.c format/format.h
refuse src/format/a.c core/kernel.h
refuse src/format/a.c ../core/kernel.h
refuse src/core/a.c ref/ref.h
refuse src/ref/a.c core/plan.h
refuse src/cpu/pack/a.c ref/ref.h
refuse src/io/a.c ../ref/ref.h
refuse src/gpu/a.c cuda/host/plan.h
refuse src/cuda/host/a.c cpu/pack/pack.h
refuse src/cpu/pack/a.c gpu/params.h
refuse cli/a.c base/base.h
refuse examples/a.c cli.h
refuse tests/a.c gfx9/sim.h
refuse src/other/a.c bsmm.h
refuse src/ref/a.c missing.h

# tools/check-rooms.py finds calls in the object files of a build. The test compiles such object
# files from sources without includes.
objects=$tree/build/CMakeFiles/bsmm_objects.dir
compile() { # usage: compile FILE CODE
    mkdir -p "$(dirname "$objects/$1")"
    echo "$2" | "${CC:-cc}" -x c -c -o "$objects/$1.o" -
}
accept_calls() {
    "$root/tools/check-rooms.py" "$tree" --build "$tree/build" >"$tree/output" || { cat "$tree/output"; exit 1; }
}
refuse_call() { # usage: refuse_call FILE SYMBOL
    compile "$1" "void $2(void); void a(void) { $2(); }"
    if "$root/tools/check-rooms.py" "$tree" --build "$tree/build" >"$tree/output"; then
        echo "$1 may call $2"
        exit 1
    fi
    grep -q "^$1: refers to $2 of " "$tree/output"
    rm "$objects/$1.o"
}
accept_call() { # usage: accept_call FILE SYMBOL
    compile "$1" "void $2(void); void a(void) { $2(); }"
    accept_calls
    rm "$objects/$1.o"
}
if "$root/tools/check-rooms.py" "$tree" --build "$tree/build" >"$tree/output"; then
    echo "a build without objects passes"
    exit 1
fi
echo 'void core_declared(void);' >"$tree/src/core/kernel.h"
echo 'void public_call(void);' >"$tree/include/bsmm.h"
compile src/core/plan.c 'void core_declared(void) {} void core_own(void) {} void public_call(void) {}'
compile src/ref/ref.c 'void ref_own(void) {} int bsmm_kernel_ref;'
compile src/format/format.c 'void format_own(void) {}'
compile src/quantize/store.c 'void bsmm_recipe_store(void) {} void quantize_own(void) {}'
accept_calls
accept_call src/io/a.c format_own
accept_call src/cpu/a.c core_declared
accept_call src/cpu/a.c bsmm_recipe_store
accept_call src/core/a.c bsmm_kernel_ref
refuse_call src/cpu/a.c core_own
refuse_call src/cpu/a.c public_call
refuse_call src/cpu/a.c bsmm_kernel_ref
refuse_call src/io/a.c ref_own
refuse_call src/ref/a.c quantize_own
refuse_call src/core/a.c quantize_own
refuse_call src/format/a.c core_declared
objects=$tree/build/CMakeFiles/bsmm_cli.dir
accept_call cli/a.c public_call
refuse_call cli/a.c format_own
refuse_call bench/a.c core_declared
