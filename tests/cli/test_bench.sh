#!/bin/bash
# Tests bsmm bench: the keys that it prints, its behaviour without the libraries that it compares
# with (peers), and its exit statuses. $BSMM is the command.
set -u
failures=0
fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# usage: expect STATUS ARGUMENT...
# The function runs bench and fails if the exit status is not
# STATUS. Then $out has the output, and $err has the messages.
err_file=$(mktemp)
trap 'rm -rf "$err_file" "$err_file".d' EXIT
expect() {
    local wanted=$1 status
    shift
    out=$("$BSMM" bench "$@" 2>"$err_file")
    status=$?
    err=$(<"$err_file")
    [ "$status" = "$wanted" ] || fail "bench $*: exit status $status, expected $wanted: $err"
}
contains() {
    [[ $1 == *"$2"* ]] || fail "'$2' is not in: $1"
}

# With --surface, bench prints a line that describes the machine and then a line for each product.
# It reads the products from a file or from standard input.
cells=$err_file.cells
printf 'bf16 mxfp4 bf16 1 64 64\ne4m3/f32/1x0 fp8_block128 bf16 3 128 128\n' >"$cells"
for file in "$cells" -; do
    expect 0 --surface "$file" --threads 1 <"$cells"
    python3 -c '
import json, sys
machine, *rows = map(json.loads, sys.argv[1].splitlines())
assert machine["host"] is True and "threads: 1" in machine["machine"], machine
assert [row["cell"] for row in rows] == open(sys.argv[2]).read().splitlines(), rows
assert all(row["burst"] > 0 and row["why"] == "" for row in rows), rows
' "$out" "$cells" || fail "--surface $file: $out"
done
echo "bf16 mxfp4 bf16 1 64" >"$cells"
expect 2 --surface "$cells" --threads 1
contains "$err" "no cell: bf16 mxfp4 bf16 1 64"
expect 2 --surface "$cells" --quantize --format mxfp4
contains "$err" "--surface: takes the products of a file"
expect 1 --surface "$cells.none"
contains "$err" "$cells.none: No such file"
expect 2 --surface "$cells" --device cpu:7
rm "$cells"

small="-M 64 -N 64 -K 128 --repeats 1 --threads 1"

# With --json, bench prints one object in each line. The objects must have exactly the documented
# keys.
expect 0 --format mxfp4 $small --json
keys=$(python3 -c '
import json, sys
row = json.loads(sys.argv[1])
assert row["format"] == "mxfp4" and (row["m"], row["n"], row["k"]) == (64, 64, 128), row
assert row["seconds"] > 0 and row["ceiling_gflops"] > 0, row
assert abs(row["gflops"] - 2 * 64 * 64 * 128 / row["seconds"] / 1e9) < 1e-9 * row["gflops"], row
assert abs(row["share"] - row["gflops"] / row["ceiling_gflops"]) < 1e-9, row
assert 0 < row["probe_share"] <= 1 and 1 <= row["measured"] <= 3, row
assert row["disturbed"] == (row["probe_share"] < 0.9 or row["share"] > 1), row
assert row["measured"] == 3 or not row["disturbed"], row
assert 0 < row["max_error"] < 2e-3, row
assert row["cold"] is False and row["threads"] >= 1 and row["ceiling"] != "dram_read", row
assert abs(row["b_gbs"] - (64 * 64 + 64 * 4) / row["seconds"] / 1e9) < 1e-9 * row["b_gbs"], row
print(",".join(row))' "$out") || fail "bad row: $out"
documented=format,m,n,k,device,kernel,seconds,gflops,ceiling_gflops,share,ceiling,peers,max_error
documented+=,threads,b_packed,pack_b_seconds,cold,b_gbs,intensity,error_level,probe_share,measured,disturbed
[ "$keys" = "$documented" ] || fail "keys are $keys"

# With --check, error_level is the kernel's typical error divided by the largest typical error that is
# expected of it. error_level is null without --check. It is also null for the reference kernel, for
# which no expected error was measured.
for row in "f32 --check:0.5:1.01" "bf16 --check --kernel ref:none" "f32:none"; do
    IFS=: read -r options least most <<<"$row"
    expect 0 --format $options -M 64 -N 64 -K 512 --repeats 1 --threads 1 --json
    python3 -c '
import json, sys
level, least, most = json.loads(sys.argv[1])["error_level"], *sys.argv[2:]
assert level is None if least == "none" else float(least) <= level <= float(most), level' "$out" "$least" "$most" ||
        fail "error_level of $options: $out"
done
expect 2 --format mxfp4 --quantize --check
contains "$err" "--check: is for products, not for conversions"

# Loading another library for comparison takes long. Only the tests of these libraries load one.
export BSMM_BENCH_OPENBLAS= BSMM_BENCH_ONEDNN=

# bench accepts and validates every named format and pairs of formats. It also accepts the options
# of Triton's tutorial, which vary K.
for format in nvfp4 mxfp8 mxfp6 fp8_groupwise bf16:nvfp4 f32; do
    expect 0 --format $format -M 33 -N 40 -K 200 --repeats 1 --threads 1 --json
done
expect 0 --K_range 128 256 --K_step 64 --bench --format mixed -M 32 -N 32 --repeats 1 --json
[ "$(wc -l <<<"$out")" = 3 ] || fail "three values of K: $out"
contains "$out" '"k":192'
expect 0 --kernel ref $small --json
contains "$out" '"kernel":"ref"'

# All rows of a run have the same ceiling. A busy machine may mark rows as disturbed, but the
# measured rate is never above the ceiling.
expect 0 --k-range 128 384 --k-step 128 -M 64 -N 64 --repeats 2 --threads 1 --json
python3 -c 'import json, sys
rows = [json.loads(line) for line in sys.argv[1].splitlines()]
assert len(rows) == 3 and len({row["ceiling_gflops"] for row in rows}) == 1, rows
assert all(row["disturbed"] or row["share"] <= 1 for row in rows), rows' "$out" || fail "ceilings: $out"

expect 0 --m-range 1 7 --k-range 64 128 --k-step 64 -N 32 --repeats 1 --json
[ "$(python3 -c 'import json, sys
print([(row["m"], row["k"]) for row in map(json.loads, sys.argv[1].splitlines())])' "$out")" = \
    "[(1, 64), (1, 128), (2, 64), (2, 128), (4, 64), (4, 128)]" ] || fail "ranges of M and K: $out"

# If the kernel can use a packed B, bench packs B before the measurement, unless --no-pack-b is
# given. With --cold, each run reads B from memory.
expect 0 $small --no-pack-b --json
contains "$out" '"b_packed":false,"pack_b_seconds":null'
expect 0 --kernel cpu_f32 $small --cold --json
contains "$out" '"cold":true'
contains "$out" '"b_packed":false'
expect 0 --format mxfp4 -M 1 -N 512 -K 512 --cold --repeats 1
contains "$out" "from memory in each run"
# LeakSanitizer crashes on oneDNN's thread-local storage, so this run does not scan that storage.
out=$(env -u BSMM_BENCH_OPENBLAS -u BSMM_BENCH_ONEDNN LSAN_OPTIONS=use_tls=0 \
    "$BSMM" bench --format mxfp8 -M 2 -N 256 -K 256 \
    --cold --repeats 1 --json) || fail "cold, with the peers that are there"
python3 -c '
import ctypes, json, sys
row = json.loads(sys.argv[1])
def is_there(files):
    for file in files:
        try:
            return bool(ctypes.CDLL(file))
        except OSError:
            pass
files = {"openblas": ["libopenblas.so.0"], "onednn_bf16": ["libdnnl.so.3", "libdnnl.so.2"]}
for peer in files:
    assert (row["peers"].get(peer, 0) > 0) == bool(is_there(files[peer])), (peer, row)' "$out" || fail "the peers in $out"

# If the libraries to compare with are missing, bench says so and measures the rest.
BSMM_BENCH_OPENBLAS=/nonexistent/libopenblas.so
expect 0 $small --json
contains "$out" '"peers":{}'
expect 0 $small
contains "$out" "peer openblas: none (/nonexistent/libopenblas.so cannot be loaded)"
contains "$out" "peer onednn_bf16: none (BSMM_BENCH_ONEDNN is empty)"
BSMM_BENCH_OPENBLAS=

# The times of a simulated GPU come from a model. The output says so, and the times are the same in
# every run. In each row below, `place` says how the output names the places where waves wait: by a
# source line if the kernels have line tables, else by an instruction. `product` is a part of the
# names of the kernels that multiply; if it is empty, all kernels multiply.
while read -r device format place product; do
    "$BSMM" devices | grep -q "^$device " || continue
    explained=$("$BSMM" explain --device "$device" --format "$format" -M 64 -N 64 -K 128 2>&1)
    [[ $explained =~ built\ without\ (AMD|CUDA)\ kernels ]] && continue
    model="--device $device --format $format -M 64 -N 64 -K 128"
    expect 0 $model --json
    contains "$out" '"modelled":true'
    contains "$out" '"counters":null'
    first=$(grep -o '"seconds":[^,]*' <<<"$out")
    # A product of 64 x 64 tiles keeps few matrix units busy. All fractions must be from 0 to 1.
    expect 0 $model --json --counters
    contains "$out" "$first"
    python3 -c 'import json, sys
row = json.loads(sys.argv[1])
assert row["counters"], row
assert abs(row["share"] * row["ceiling_gflops"] / row["gflops"] - 1) < 1e-6, row
products = [c for c in row["counters"] if sys.argv[2] in c["kernel"]]
assert products, row
for c in products:
    assert c["matrix_busy"] <= c["matrix_loop"] <= 1 or "gfx" in sys.argv[3] and not c["matrix_loop"], c
    assert 0 < c["matrix_busy"] < 1 and 64 * 64 * 2 <= c["memory_bytes"], c
for c in row["counters"]:
    assert 0 <= c["shared_conflicts"] <= 1 and 0 <= c["l3_bytes"], c
    waits = {k: v for k, v in c.items() if k.startswith("wait_")}
    assert sum(waits.values()) < 1, c
    assert c["lines"] and all(line["line"] for line in c["lines"]), c
    by_line = {k: sum(line[k] for line in c["lines"]) for k in waits}
    assert all(by_line[k] <= waits[k] * 1.000001 for k in waits), c
    assert sum(by_line.values()) > sum(waits.values()) / 4, c
assert abs(sum(c["seconds"] for c in row["counters"]) / row["seconds"] - 1) < 1e-5, row' "$out" "$product" "$device" || fail "counters: $out"
    as_json=$out
    expect 0 $model --sampled
    contains "$out" "model"
    expect 0 $model --counters
    # With --counters, a table of launches and a table of source lines follow the table of products.
    # Each row begins with the size of the product and the number of the launch or line.
    python3 -c 'import json, sys
launches = json.loads(sys.argv[1])["counters"]
tables = [table.splitlines()[1:] for table in sys.argv[2].split("\n\n")[-2:]]
wanted = [["64 128 " + c["kernel"] for c in launches],
          ["64 128 " + c["kernel"] + " " + line["line"] for c in launches for line in c["lines"]]]
for rows, starts in zip(tables, wanted):
    assert len(rows) == len(starts), (rows, starts)
    for row, start in zip(rows, starts):
        assert " ".join(row.split()).startswith(" ".join(start.split()) + " "), (row, start)' "$as_json" "$out" ||
        fail "the tables of counters: $out"
    contains "$out" " us model"
    contains "$out" "conflicts"
    contains "$out" "$place"
done <<<"sim:gfx942 mxfp4 s_waitcnt
sim:sm_90a fp8_block128 gemm_body.h: gemm_block"

# On Blackwell, one launch copies the scales of both operands to the layout that the product reads.
# With K of 96, a row has three scales, and threads copy them one at a time.
for size in "1 96" "1 512" "128 512"; do
    "$BSMM" devices | grep -q "^sim:sm_100 " || continue
    "$BSMM" explain --device sim:sm_100 --format mxfp8 -M 1 -N 64 -K 64 2>&1 | grep -q "^cuda_sm100f_scaled_small_m *taken" || continue
    expect 0 --device sim:sm_100 --format mxfp8 -M ${size% *} -N 64 -K ${size#* } --counters --json
    python3 -c 'import json, sys
launches = [c["kernel"] for c in json.loads(sys.argv[1])["counters"]]
assert len(launches) == 2 and launches[0] == "move_both", launches' "$out" || fail "copies of scales: $out"
done
expect 2 --sampled
contains "$err" "--sampled: is for products on devices whose times come from a model"
expect 2 --counters
contains "$err" "--counters: the times of the device cpu do not come from a model"

# bench measures conversions with --quantize and --dequantize.
for pair in f32:mxfp4 bf16:nvfp4 f32:fp8_block128; do
    wide=${pair%:*} format=${pair#*:}
    expect 0 --quantize --from $wide --format $format -M 96 -K 256 --repeats 1 --json
    contains "$out" "\"work\":\"quantize\",\"from\":\"$wide\",\"to\":\"$format\""
    expect 0 --dequantize --out $wide --format $format -M 96 -K 256 --repeats 1 --json
    contains "$out" "\"work\":\"dequantize\",\"from\":\"$format\",\"to\":\"$wide\""
done
expect 0 --quantize --from bf16 --format nvfp4 -M 96 -K 256 --repeats 1 --json
contains "$out" '"amax":null'
expect 0 --quantize --amax --from bf16 --format nvfp4 -M 96 -K 256 --repeats 1 --json
contains "$out" '"amax":"given"'

# A conversion may be faster than its probe of memory (share > 1) only in a row that is marked as
# disturbed. The caches hold this small matrix, and the probe's memory is as large.
for work in '--quantize --threads 1' --dequantize; do
    expect 0 $work --format mxfp4 -M 1024 -K 512 --repeats 1 --json
    python3 -c 'import json, sys
row = json.loads(sys.argv[1])
elements = 1024 * 512
wide = {"f32": 4, "f16": 2}[row["to"] if row["work"] == "dequantize" else row["from"]]
moved = elements * wide + elements / 2 + elements / 32 # bytes of the wide matrix, of codes and of scales
assert abs(row["gbs"] * 1e9 * row["seconds"] / moved - 1) < 1e-9, row
assert abs(row["share"] * row["ceiling_gbs"] / row["gbs"] - 1) < 1e-9, row
assert row["disturbed"] == (row["probe_share"] < 0.9 or row["share"] > 1), row' "$out" || fail "share: $out"
done

# In a table, numbers end where their headings end, and texts begin where their headings begin.
expect 0 --quantize --from f32 --format mxfp4 -M 96 -K 256 --repeats 1
python3 -c 'import re, sys
heads, row = sys.argv[1].splitlines()[:2]
for name in ("rows", "cols", "GB/s", "ceiling"):
    end = re.search(rf"(?<=\s){name}(?=\s)", heads).end()
    assert row[end - 1].isdigit() and row[end:end + 1].isspace(), (name, heads, row)
for name in ("from", "to", "amax"):
    begin = re.search(rf"(?<=\s){name}(?=\s)", heads).start()
    assert not row[begin].isspace() and row[begin - 1].isspace(), (name, heads, row)' "$out" ||
    fail "alignment: $out"

# The output of a table of products begins with the machine and the storage form of B. The column
# `of` has the names of ceilings, so it is aligned on the left.
expect 0 --format mxfp4 $small
python3 -c 'import sys
lines = sys.argv[1].splitlines()
heads, row = next(pair for pair in zip(lines, lines[1:]) if pair[0].startswith("format "))
begin = heads.index(" of ") + 1
assert row[begin - 1] == " " and row[begin].isalpha() and len(row[begin:].split()[0]) > 2, (heads, row)' "$out" ||
    fail "alignment of the ceiling: $out"
contains "${out%%$'\n'*}" ", 1 threads"
contains "$out" $'\nB: packed in advance if the kernel packs it, '

# bench accepts the option names of Triton's tutorial, although the help lists only bsmm's names.
expect 0 --help
contains "$out" "--k-range"
for hidden in "--bench" "--K_range" "--K_step"; do
    ! grep -q "^      $hidden" <<<"$out" || fail "the help lists $hidden: $out"
done

# Wrong usage gives exit status 2 and a message that names the mistake.
expect 2 -M 0
contains "$err" "must be 1 to"
expect 2 --k-range 512 256
contains "$err" "must not be above"
expect 2 --k-step 0 $small
expect 2 --repeats 0
expect 2 --out mxfp4 $small
contains "$err" "must be f32, f16 or bf16"
expect 2 --format mxfp5 $small
contains "$err" "mxfp5"
expect 2 $small --threads 100000
expect 2 --m-range 8 4
contains "$err" "--m-range: value is 8 4"
expect 2 --quantize --dequantize --format mxfp4
expect 2 --quantize --format bf16
contains "$err" "must be one block-scaled format"
expect 2 --quantize --format bf16:mxfp4
expect 2 --quantize --format mxfp4 --k-range 64 1024
expect 2 --quantize --format mxfp4 --plot "$err_file.gp"
contains "$err" "--plot: is for products"
expect 2 --from mxfp4 $small
contains "$err" "--from: value is mxfp4"
expect 2 --amax --dequantize --format nvfp4
contains "$err" "--amax: is for --quantize"
expect 2 --quantize --relayout nv_128x4 --format mxfp4
contains "$err" "only one"
expect 2 --relayout nonesuch --format mxfp4
expect 2 --dequantize --format mxfp4 --threads 1000
contains "$err" "every processor"
expect 2 --quantize --recipe deepseek --format mxfp4
contains "$err" "--recipe: value is"
expect 2 --plot - $small
expect 2 --kernel nonesuch $small
contains "$err" "must be one of"
expect 2 --device tpu $small
expect 2 -K many
expect 2 --no-such-option

# --challenge measures a product with the formats and layouts of AMD's FP8 groupwise challenge, and
# refuses options that contradict them. The last JSON object has the geometric mean of the times,
# which for one shape is the time of this shape.
expect 0 --challenge -M 128 -N 256 -K 384 --repeats 1 --threads 1 --json
python3 -c '
import json, sys
row, mean = map(json.loads, sys.argv[1].splitlines())
assert (row["m"], row["n"], row["k"]) == (128, 256, 384) and row["checked"] == 128 * 256, row
assert row["format"] == "fp8_group128_fnuz:fp8_block128_fnuz" and row["modelled"] is False, row
assert row["published_seconds"] is None and 0 < row["max_error"] < 5e-3, row
assert abs(row["share"] * row["seconds"] - row["light_seconds"]) < 1e-6 * row["light_seconds"], row
assert mean["shapes"] == 1 and abs(mean["mean_seconds"] / row["seconds"] - 1) < 1e-9, mean
assert abs(mean["mean_share"] - row["share"]) < 1e-9, mean' "$out" || fail "bad challenge: $out"
# bench prints the times that others have published for a shape of the challenge. With
# AddressSanitizer this product would take 7 s, so it is skipped.
if ! ldd "$BSMM" | grep -q libasan; then
    expect 0 --challenge -M 1024 -N 1536 -K 7168 --repeats 1 --json
    contains "$out" '"published_seconds":7.63'
fi
expect 0 --challenge -M 128 -N 128 -K 128 --repeats 1 --threads 1 --format fp8_groupwise
contains "$out" "geometric means"
# In columns of numbers, headings and cells are aligned on the right.
python3 -c '
import sys
lines = sys.argv[1].splitlines()
at = next(i for i, line in enumerate(lines) if " published " in line)
head, row = lines[at:at + 2]
for title in "time", "light", "share", "published", "checked", "max error":
    end = head.index(title) + len(title)
    assert row[end - 1] != " " and row[end:end + 1] in ("", " "), (title, head, row)' "$out" || fail "columns of --challenge: $out"
expect 2 --challenge --format mxfp4
contains "$err" "--format: value is mxfp4; must be fp8_group128_fnuz:fp8_block128_fnuz"
expect 2 --challenge --format fp8_group128
expect 2 --challenge --out f32
contains "$err" "--out: value is f32; must be bf16"
expect 2 --challenge --m-range 8 16
contains "$err" "--m-range: is not for --challenge"
expect 2 --challenge --quantize
expect 2 --challenge --device sim:sm_80
contains "$err" "no model of time"

# A correct command that cannot be carried out gives exit status 1.
expect 1 --device cuda:99 $small
expect 1 --plot /nonexistent/plot.svg $small
contains "$err" "No such file or directory"
mkdir "$err_file".d
PATH=$err_file.d expect 1 --plot "$err_file.d/plot.svg" $small
contains "$err" "gnuplot"

if command -v gnuplot >/dev/null; then
    expect 0 --k-range 64 128 --k-step 64 -M 16 -N 16 --repeats 1 --plot "$err_file.d/it's.svg"
    grep -q "</svg>" "$err_file.d/it's.svg" || fail "no plot was drawn"
    # A limit on the size of files acts like a full disk.
    export BSMM_LIMITED=$BSMM
    BSMM="$err_file.d/limited"
    printf '#!/bin/bash\ntrap "" XFSZ\nulimit -f 4\nexec "$BSMM_LIMITED" "$@"\n' >"$BSMM"
    chmod +x "$BSMM"
    expect 1 --plot "$err_file.d/half.svg" $small
    contains "$err" "gnuplot failed"
    [ ! -e "$err_file.d/half.svg" ] || fail "half a plot was left"
    BSMM=$BSMM_LIMITED
fi

[ "$failures" = 0 ] && echo "bench: all passed"
[ "$failures" = 0 ]
