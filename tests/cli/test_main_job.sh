#!/bin/bash
# Tests tools/run-main-job (`make run`) with a generated model instead of a downloaded one, on a
# copy of the command. Other programs then stand in for the language model, to test the limit of
# the processor time.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
ln -s "$(realpath "$BSMM")" "$(realpath "$(dirname "$BSMM")/bsmm_main_job")" "$build"
if ! out=$(OFFLINE=1 "$root/tools/run-main-job" "$build" 2>&1); then
    echo "FAIL: $out"
    exit 1
fi
[[ $out == *"no network (OFFLINE=1): a generated model"* ]] || { echo "FAIL: does not say so: $out"; exit 1; }

# The generated model is the same on every machine. Results may differ from the expected ones by one
# unit of the second last digit.
awk '
function near(value, expected) { return value > expected - 0.02 && value < expected + 0.02 }
BEGIN {
    bits["mxfp8"] = 8.25;  weights["mxfp8"] = 28.61; outputs["mxfp8"] = 28.16
    bits["mxfp6"] = 6.25;  weights["mxfp6"] = 27.78; outputs["mxfp6"] = 29.34
    bits["mxfp4"] = 4.25;  weights["mxfp4"] = 15.36; outputs["mxfp4"] = 16.46
    bits["nvfp4"] = 4.5;   weights["nvfp4"] = 20.60; outputs["nvfp4"] = 23.66
    bits["fp8_block128"] = 8.002; weights["fp8_block128"] = 31.61; outputs["fp8_block128"] = 31.63
}
$1 in bits && $NF == 12 {
    rows++
    if (!near($2, bits[$1]) || !near($3, weights[$1]) || !near($4, outputs[$1]) || $6 > 1e-6) {
        print "FAIL: unexpected: " $0
        bad = 1
    }
}
END { if (rows != 5) print "FAIL: " rows + 0 " rows, expected 5"; exit bad || rows != 5 }
' <<<"$out" || exit 1

# Runs the main job with a program that takes about $1 s of processor time instead of the table, and
# ends with the status $2. The limit is 1 s. The main job must end with the status $3 and a line that
# begins with $4.
check_time() { # usage: check_time SECONDS STATUS EXPECTED BEGIN
    local out status
    printf '#!/bin/sh\nexec python3 -c "\nimport time\nwhile time.process_time() < %s: pass\nraise SystemExit(%s)"\n' \
        "$1" "$2" >"$copy/build/bsmm_llm_table"
    out=$(MAIN_JOB_SECONDS=1 "$copy/tools/run-main-job" "$copy/build" 2>&1) && status=0 || status=$?
    if [ "$status" != "$3" ] || [[ ${out##*$'\n'} != "$4: all programs took"*"at most 1 s"* ]]; then
        echo "FAIL: $1 s, status $2: status $status, $out"
        exit 1
    fi
}
copy=$build/copy
mkdir -p "$copy/build" "$copy/tools" "$copy/.cache/llm" "$copy/examples/llm"
touch "$copy/.cache/llm/model.gguf" "$copy/examples/llm/alice.txt"
cp "$root/tools/run-main-job" "$root/tools/fetch-llm" "$copy/tools"
printf '#!/bin/sh\necho Paris\n' >"$copy/build/bsmm_llm"
printf '' >"$copy/build/bsmm_llm_table"
chmod +x "$copy/build/bsmm_llm" "$copy/build/bsmm_llm_table"
check_time 0 0 0 passed
check_time 0 1 1 passed
check_time 1.5 0 1 failed
echo "main job: all passed"
