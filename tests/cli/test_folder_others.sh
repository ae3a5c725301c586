#!/bin/bash
# Tests which files of an input folder the output folder gets besides the weights.
source "$(dirname "$0")/many.sh"
export PYTHONDONTWRITEBYTECODE=1
python3 "$here/folder_model.py" in || exit 1
q=(quantize in --format mxfp4)

# The configurations of sentence-transformers are in subfolders, and a snapshot of Hugging Face has
# symbolic links to files.
mkdir -p in/1_Pooling in/deep/er in/.cache in/onnx in/original/more elsewhere
echo '{"pooling": 1}' >in/1_Pooling/config.json
echo code >in/deep/er/code.py
echo hidden >in/.cache/x
echo linked >elsewhere/blob && ln -s ../elsewhere/blob in/linked.txt
echo weights >in/onnx/model.onnx && echo weights >in/original/more/part.pth
ln -s . in/loop && ln -s nowhere in/dangling && mkfifo in/pipe
"$bsmm" "${q[@]}" -o out >/dev/null 2>message || fail "$(cat message)"
[ "$(cd out && find . -mindepth 1 | sort | tr '\n' ' ')" = \
    "./1_Pooling ./1_Pooling/config.json ./config.json ./deep ./deep/er ./deep/er/code.py ./linked.txt ./model.safetensors ./tokenizer.json " ] ||
    fail "files: $(cd out && find . | sort)"
cmp in/1_Pooling/config.json out/1_Pooling/config.json && cmp elsewhere/blob out/linked.txt || fail "contents"
[ -f out/linked.txt ] && [ ! -L out/linked.txt ] || fail "a link is copied as a link"
[ "$(cat message)" = "bsmm quantize: warning: in/onnx: is not copied, because it has weights
bsmm quantize: warning: in/original: is not copied, because it has weights" ] || fail "warnings: $(cat message)"

# An output inside the input's folder does not contain itself, and is not part of the next output.
for name in first second; do
    "$bsmm" "${q[@]}" -o in/$name >/dev/null 2>&1 || fail "an output in the input's folder"
    rm -rf plain && cp -r in/$name plain
    diff -r out plain || fail "differs from an output elsewhere"
done

# An unfinished output in the input's folder is no part of the output either.
"$bsmm" "${q[@]}" -o late --shard-size 20000 >/dev/null 2>&1 || fail "shards"
(ulimit -f 24 && trap '' XFSZ && "$bsmm" "${q[@]}" -o in/late --shard-size 20000 >/dev/null 2>&1)
[ -e in/late.part ] || fail "the limited run is not interrupted"
"$bsmm" "${q[@]}" -o in/late --shard-size 20000 >/dev/null 2>message || fail "does not continue"
grep -q late message && fail "warnings: $(cat message)"
diff -r late in/late || fail "differs from an output elsewhere"

# A subfolder that cannot be read is left out, with a warning. A file that cannot be read is noticed
# before the work. Root can read everything, so root runs the command as another user.
if [ "$(id -u)" != 0 ] || command -v setpriv >/dev/null; then
    chmod 777 .
    user=()
    [ "$(id -u)" != 0 ] || user=(setpriv --reuid 65534 --clear-groups)
    mkdir -p in/closed in/deep/closed && echo secret | tee in/closed/x >in/deep/closed/x
    chmod 000 in/closed in/deep/closed
    "${user[@]}" "$bsmm" "${q[@]}" -o open >/dev/null 2>message || fail "an unreadable subfolder: $(cat message)"
    for folder in in/closed in/deep/closed; do
        grep -q "warning: $folder: is not copied, because it cannot be read" message || fail "$(cat message)"
    done
    [ -f open/deep/er/code.py ] && [ ! -e open/closed ] && [ ! -e open/deep/closed ] || fail "copies $(find open)"
    rm -rf open && chmod 700 in/closed in/deep/closed && rm -r in/closed in/deep/closed

    chmod 000 elsewhere/blob
    "${user[@]}" "$bsmm" "${q[@]}" -o unread >/dev/null 2>message && fail "an unreadable file"
    grep -q "in/linked.txt: cannot read it" message || fail "$(cat message)"
    [ ! -e unread ] && [ ! -e unread.part ] || fail "leaves a folder"
fi
exit $failed
