#!/bin/bash
# Tests bsmm bench --plot by the gnuplot script that --plot FILE.gp writes. On a machine with a GPU,
# also tests a plot of the GPU with the libraries that bench compares with. $BSMM is the command.
tests=$(cd "$(dirname "$0")" && pwd)
source "$tests/scratch.sh"
holds() { grep -qF -- "$2" "$1" || fail "$1 has no '$2': $(cat "$1")"; }
lacks() { if grep -qF -- "$2" "$1"; then fail "$1 has '$2': $(cat "$1")"; fi; }
# The libraries that bench compares with on the CPU are not loaded, because a leak checker would
# report errors of their threads.
export BSMM_BENCH_OPENBLAS= BSMM_BENCH_ONEDNN=
bench() { "$BSMM" bench --repeats 1 "$@" >out; }

# For FILE.gp, bench needs no gnuplot: it only writes the script.
mkdir nothing
(PATH=$work/nothing bench --k-range 64 128 --k-step 64 -M 16 -N 16 --format mxfp4 --plot "it's.gp")
holds "it's.gp" "set output 'it''s.svg'"
holds "it's.gp" "set xlabel 'K'"
holds "it's.gp" "set ylabel 'GFLOP/s'"
[ "$(grep -c '^16 ' "it's.gp")" = 2 ] || fail "not two points: $(cat "it's.gp")"
[ ! -e "it's.svg" ] || fail "it was drawn"
if command -v gnuplot >/dev/null; then
    gnuplot "it's.gp" 2>err || fail "gnuplot: $(cat err)"
    [ ! -s err ] || fail "gnuplot: $(cat err)"
    holds "it's.svg" "</svg>"
fi

# Checks the drawing if gnuplot is installed. A single shape is a bar, a ceiling of all shapes is
# one horizontal line across the whole panel, and the titles name the device and the date.
if command -v gnuplot >/dev/null; then
    bench --format mxfp4 -M 16 -N 16 -K 128 --threads 1 --plot one.svg
    bench --format mxfp4 -M 16 -N 16 --k-range 64 256 --k-step 64 --threads 1 --plot sweep.svg
    device=$("$BSMM" devices --json | python3 -c 'import json, sys
print(next(row["title"] for row in map(json.loads, sys.stdin) if row.get("name") == "cpu"))')
    python3 "$tests/plot.py" "$device, 1 thread, $("$BSMM" --version), " one.svg sweep.svg ||
        fail "the drawings: $(cat out)"
fi

# If different kernels compute the points of one curve, the plot must name all of them.
mkdir folder
bench --m-range 1 64 -K 128 -N 64 --format mxfp4 --plot folder/m.gp
mv folder/m.gp m.gp
holds m.gp "set output 'm.svg'"
holds m.gp "set xlabel 'M'"
holds m.gp "mxfp4, N=64, K=128'"
for kernel in $(awk '$6 ~ /^(cpu|ref)/ { print $6 } $5 ~ /^(cpu|ref)/ { print $5 }' out | sort -u); do
    holds m.gp "$kernel"
done

if bench --m-range 1 2 --k-range 64 128 --k-step 64 -N 16 --plot x.gp 2>err; then
    fail "a range of both was drawn"
fi
holds err "--plot"
if bench -M 1 -N 1 -K 32 --plot "$work/nowhere/x.gp" 2>err; then fail "x.gp was kept"; fi
holds err "No such file or directory"

# On a full disk, the message names the cause and no part of a plot is left. Mounting a disk needs the
# rights of root.
mkdir disk
if mount -t tmpfs -o size=64k bench_plot disk 2>err; then
    trap 'umount "$work/disk"; rm -rf "$work"' EXIT
    cat /dev/zero >disk/filled 2>/dev/null || true
    names=x.gp
    if command -v gnuplot >/dev/null; then names+=" x.svg"; fi
    for name in $names; do
        if bench -M 1 -N 1 -K 32 --plot disk/$name 2>err; then fail "$name was written to a full disk"; fi
        holds err "disk/$name: No space left on device"
        [ ! -e disk/$name ] || fail "a part of $name is left"
    done
    umount disk
    trap 'rm -rf "$work"' EXIT
else
    echo "not tested on a full disk: $(cat err)"
fi

if ! "$BSMM" devices --json | grep '"cuda:0"' >/dev/null ||
    "$BSMM" explain --device cuda:0 -f mxfp4 -M 1 -N 1 -K 32 --json | grep 'no nvcc' >/dev/null; then
    echo "skipped the GPU's part: no CUDA device"
    exit 0
fi
on_gpu() { bench --device cuda:0 -N 128 "$@"; }
on_gpu --format fp8_groupwise -M 40 --k-range 128 256 --k-step 128 --plot k.gp
holds k.gp "set ylabel 'TFLOP/s'"
holds k.gp "set xlabel 'K'"
holds k.gp "_sheet'"
holds k.gp "title 'ceiling: "
holds k.gp "cuda_sm90a_fp8"
lacks k.gp "title 'cublaslt_fp8'"
if on_gpu --format mxfp4 --m-range 16 64 -K 256 --peer cublaslt --plot m.gp 2>err; then
    holds m.gp "cuda_sm90_small_m, cuda_sm90a_mixed"
    holds m.gp "title 'cublaslt_fp8'"
    # The y axis ends at the peak of the data sheet, even if the other library was faster.
    holds m.gp "set ylabel 'share of h"
    [ "$(awk '/^(16|32|64) / { print $6 }' m.gp | sort -u | wc -l)" = 1 ] || fail "$(cat m.gp)"
else
    lacks_cublaslt err
fi
if command -v gnuplot >/dev/null; then
    for plot in k m; do
        if [ -e $plot.gp ]; then gnuplot $plot.gp 2>err && [ ! -s err ] || fail "$(cat err)"; fi
    done
fi
echo "plots: all passed"
