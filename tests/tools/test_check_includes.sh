#!/bin/bash
# check-includes.py accepts this repository and refuses each planted violation, by name.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

"$root/tools/check-includes.py"

mkdir -p "$tree"/{include,cli,examples,src/{base,format,core,ref,cpu/pack,gpu,cuda/host,io,other}}
touch "$tree"/include/bsmm.h "$tree"/src/{base/base.h,format/format.h,core/kernel.h,core/plan.h} \
    "$tree"/src/{ref/ref.h,gpu/params.h,cuda/host/plan.h,cpu/pack/pack.h} "$tree"/cli/cli.h
accept() { # FILE INCLUDE
    echo "#include \"$2\"" >"$tree/$1"
    "$root/tools/check-includes.py" "$tree" >"$tree/output" || { cat "$tree/output"; exit 1; }
    rm "$tree/$1"
}
refuse() { # FILE INCLUDE
    echo "  #  include \"$2\"" >"$tree/$1"
    if "$root/tools/check-includes.py" "$tree" >"$tree/output"; then
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
refuse src/other/a.c bsmm.h
refuse src/ref/a.c missing.h
