# Test scripts of the command ($BSMM) that check many cases source this file. It makes a temporary
# folder and changes into it. A failed case sets $failed, and the script ends with `exit $failed`.
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
# usage: refuses STATUS TEXT ARGUMENT... Expects that the command ends with this status and that its
# message contains the text.
refuses() {
    local status=$1 text=$2 message
    shift 2
    message=$("$bsmm" "$@" 2>&1)
    [[ $? == "$status" && $message == *"$text"* ]] || fail "bsmm $*: $message"
}
