#!/bin/bash
# Kills quantize, dequantize and convert at many moments while they write a folder. The same command
# continues each time, and the finished folder is that of a run without kills.
source "$(dirname "$0")/many.sh"
export PYTHONDONTWRITEBYTECODE=1
python3 - "$here" <<'END' || exit 1
import sys
sys.path.insert(0, sys.argv[1])
import folder_model
# 12 layers give enough shards that kills meet all steps of a run.
folder_model.LAYERS = 12
sys.argv[1] = "in"
folder_model.main()
END
mkdir in/1_Pooling && echo '{}' >in/1_Pooling/config.json
# usage: kills OUT ARGUMENT... Continues the command until it ends by itself. The delay before a
# kill grows, so that every run ends at last.
kills() {
    local out=$1 status=137 delay=1 run
    shift
    while [ $status = 137 ] && [ ! -e "$out" ]; do
        "$bsmm" "$@" -o "$out" >/dev/null 2>message &
        run=$!
        sleep "$(printf '%d.%03d' $((delay / 1000)) $((delay % 1000)))"
        kill -KILL $run 2>/dev/null
        { wait $run; } 2>/dev/null
        status=$?
        [ $status != 137 ] || killed=$((killed + 1))
        delay=$((delay * 5 / 4 + 1))
    done
    # A run that is killed after it gives the folder its name may leave the plan there.
    [ $status = 0 ] || [ $status = 137 ] || fail "$out: status $status: $(cat message)"
    [ $status = 0 ] || rm -f "$out/.bsmm-plan"
    [ ! -e "$out.part" ] || fail "$out.part is left"
}
killed=0
small=(--shard-size 20000 --threads 1)
"$bsmm" quantize in "${small[@]}" --family modelopt --format nvfp4 -o q >/dev/null || fail quantize
"$bsmm" dequantize q --shard-size 20000 -o d >/dev/null || fail dequantize
"$bsmm" convert q --shard-size 20000 --family compressed-tensors --round-global -o c >/dev/null || fail convert
for try in 1 2; do
    kills q$try quantize in "${small[@]}" --family modelopt --format nvfp4
    kills d$try dequantize q --shard-size 20000
    kills c$try convert q --shard-size 20000 --family compressed-tensors --round-global
    for kind in q d c; do
        diff -r $kind $kind$try || fail "$kind$try differs from the run without kills"
    done
done
[ $killed -gt 5 ] || fail "only $killed runs were killed"
echo "$killed runs were killed"
exit $failed
