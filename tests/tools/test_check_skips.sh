#!/bin/bash
# Tests when checks of .ci/run say "skipped". They may do so only if something is absent that they
# name. A check that could run but fails must fail.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill $server; rm -rf "$work"' EXIT
mkdir "$work/tools"
cp "$root"/tools/test-{python,python-torch,peers}.sh "$work/tools"
fail() {
    echo "FAIL: $*"
    cat "$work/output"
    exit 1
}
# usage: ends STATUS FIRST_WORD LAST_LINE SCRIPT [ARGUMENT]
ends() {
    local status=0
    "$work/tools/$4" ${5:+"$5"} >"$work/output" 2>&1 || status=$?
    [ "$status" = "$1" ] || fail "$4 ends with $status; must be $1"
    [ -z "$2" ] || grep -q "^$2: " "$work/output" || fail "$4 does not say: $2"
    [ -z "$3" ] || [ "$(tail -n 1 "$work/output")" = "$3" ] || fail "$4: the last line must be: $3"
}

# The Python packages cannot be installed. There is a network if the server of packages answers, even
# if its answer is an error.
printf '#!/bin/sh\nexit 1\n' >"$work/tools/install-deps.sh"
chmod +x "$work/tools/install-deps.sh"
python3 - >"$work/port" 2>/dev/null <<'END' &
import http.server
with http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as server:
    print(server.server_port, flush=True)
    server.serve_forever()
END
server=$!
for _ in {1..100}; do
    [ -s "$work/port" ] && break
    sleep 0.1
done
export PIP_INDEX_URL=http://127.0.0.1:$(cat "$work/port")/simple no_proxy=127.0.0.1
ends 1 failed "0 passed, 1 failed" test-python.sh
kill $server
wait $server || true
server=
ends 0 skipped "0 passed, 0 failed" test-python.sh

# Packages that are not installed are absent. One that is installed but cannot be imported is not.
ends 0 skipped "0 passed, 0 failed" test-python-torch.sh
ends 0 skipped "0 passed, 0 failed" test-peers.sh build
mkdir -p "$work/.cache/torch/bin" "$work/packages"
cat >"$work/.cache/torch/bin/python3" <<END
#!/bin/sh
PYTHONPATH=$work/packages exec python3 -S "\$@"
END
chmod +x "$work/.cache/torch/bin/python3"
echo 'raise ImportError("broken")' >"$work/packages/transformers.py"
ends 0 "skipped: compressed_tensors modelopt quark" "0 passed, 0 failed" test-peers.sh build
for package in compressed_tensors modelopt quark; do
    cp "$work/packages/transformers.py" "$work/packages/$package.py"
done
ends 1 "" "" test-peers.sh build
echo "skips: all passed"
