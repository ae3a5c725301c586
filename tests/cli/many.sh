# Test scripts of the command ($BSMM) that check many cases source this file. It makes a temporary
# folder and changes into it. A failed case does not end the script; `exit $failed` does at its end.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bsmm=$(realpath "$BSMM")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
fail() {
    echo "FAIL: $*"
    failed=1
}
# Expects that a command ends with a status and that its message contains a text.
refuses() {
    local status=$1 text=$2 message
    shift 2
    message=$("$bsmm" "$@" 2>&1)
    [[ $? == "$status" && $message == *"$text"* ]] || fail "bsmm $*: $message"
}
