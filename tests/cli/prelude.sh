# Bash sources this file before every command of a transcript.
set -o pipefail

# Prints the keys of the JSON objects on standard input, once for each kind of object. Fails if a
# line is not one object.
keys() {
    python3 -c '
import json, sys
seen = []
def refuse(constant):
    raise ValueError(constant + " is not JSON")
for line in sys.stdin:
    row = json.loads(line, parse_constant=refuse)
    if list(row) not in seen:
        seen.append(list(row))
        print(*row)'
}

# Prints the values of some keys of the JSON objects on standard input.
pick() {
    python3 -c '
import json, sys
for line in sys.stdin:
    print(*(json.loads(line)[key] for key in sys.argv[1:]))' "$@"
}

# Prints the words that the shell offers when the user presses the tab key after a line.
complete_line() {
    source "$BSMM_ROOT/completions/bsmm.bash"
    COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
    _bsmm
    echo "${COMPREPLY[@]}"
}
