# Defines functions for scripts that make several checks. Such a script includes this file by
# `source`, calls `check` for each check and ends with `report`. Files of the checks belong in the
# folder $work, which is removed when the script ends.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
check() { # usage: check WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
        cat "$work/out"
    fi
}
# Prints the number of checks, and fails if one of them failed.
report() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
}
