#!/bin/bash
# Builds all fuzzers and runs each of them for SECONDS, two at a time. Inputs that reach new code
# are added to build-fuzz/corpus, and inputs that fail are stored in build-fuzz/artifacts.
#   usage: run-fuzzers.sh SECONDS
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
build=build-fuzz
mkdir -p "$build/artifacts"
cmake --preset fuzz
cmake --build "$build"

fuzz() { # usage: fuzz NAME SECONDS
    local name=$1 corpus=$build/corpus/$1 log=$build/$1.log seeds
    mkdir -p "$corpus"
    seeds=$(fuzz/seeds.sh "$name" | paste -sd,)
    if "$build/fuzz/fuzz_$name" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$build/artifacts/$name-" -seed_inputs="$seeds" \
        "$corpus" >"$log" 2>&1; then
        echo "fuzz_$name: $(sed -n 's/.*number_of_executed_units: //p' "$log") inputs, no failure"
    else
        tail -n 40 "$log"
        echo "fuzz_$name: FAILED, see $log and $build/artifacts"
        return 1
    fi
}
export -f fuzz
export build
names=$(find fuzz -name 'fuzz_*.c' | sed -E 's|.*/fuzz_(.*)\.c|\1|' | sort)
failed=0
echo "$names" | xargs -P 2 -I {} bash -c "fuzz {} $1" || failed=1
[ "$failed" = 0 ]
