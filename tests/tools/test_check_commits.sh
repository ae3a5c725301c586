#!/bin/bash
# Tests that check-commits.sh accepts commits with a short subject and a body, and names what is
# wrong with others, also in a shallow clone. Commits older than the rules are not checked.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

commit() { git commit -q --allow-empty -m "$1" ${2:+-m "$2"} ${3:+-m "$3"}; }
expect() { # usage: expect STATUS LAST_LINE
    local status=0
    "$root/tools/check-commits.sh" "$base" >"$folder/output" || status=$?
    [ "$status" = "$1" ] && [ "$(tail -n 1 "$folder/output")" = "$2" ] && return
    echo "not status $1 and '$2', but $status and:"
    cat "$folder/output"
    exit 1
}
words() { printf '%*s' "$1" '' | tr ' ' "${2:-x}"; }

git init -q "$folder/full"
cd "$folder/full"
commit "$(words 90)"
base=$(git rev-parse HEAD)
expect 0 "0 passed, 0 failed"
commit "$(words 71)é" "Why."
commit "Merge what nobody wrote" "Why."
expect 0 "2 passed, 0 failed"
commit "$(words 73)" "Why."
expect 1 "2 passed, 1 failed"
grep -q "a subject of 73 characters" "$folder/output"
commit "No reason"
commit "Names alone" "Signed-off-by: a"
expect 1 "2 passed, 3 failed"
[ "$(grep -c 'no body' "$folder/output")" = 2 ]
git reset -q --hard HEAD~2
commit "A reason and a name" "Why." "Signed-off-by: a"

git clone -q --depth 2 "file://$folder/full" "$folder/shallow"
cd "$folder/shallow"
expect 1 "1 passed, 1 failed"
git clone -q --depth 1 "file://$folder/full" "$folder/newest"
cd "$folder/newest"
expect 0 "1 passed, 0 failed"
git clone -q "file://$folder/full" "$folder/fresh"
cd "$folder/fresh"
expect 1 "3 passed, 1 failed"

# The first word of a subject must not be a past form, an -ing form or a third person.
git init -q "$folder/forms"
cd "$folder/forms"
commit "First" "Why."
unrelated=$base base=$(git rev-parse HEAD)
for word in Add Bring Feed Focus Pass Alias "Packing's" GPUs; do
    commit "$word a check" "Why."
done
expect 0 "8 passed, 0 failed"
for word in Added Adding Adds Fixes Made Tested; do
    commit "$word a check" "Why."
done
expect 1 "8 passed, 6 failed"
grep -q "a subject that begins with 'Fixes'" "$folder/output"
base=$unrelated

# In a full clone whose history does not contain BASE the check fails, because it could check
# nothing.
git init -q "$folder/other"
cd "$folder/other"
commit "Another first commit"
expect 1 "0 passed, 1 failed"
grep -q "$base is no ancestor" "$folder/output"
