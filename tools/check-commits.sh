#!/bin/bash
# Checks that each commit has a subject of at most 72 characters and a body that says why. The
# subject must not begin with a verb in another form than the imperative. Commits up to BASE are not
# checked. In a shallow clone the script checks only the commits that the clone contains. In any
# other clone the script fails if BASE is no ancestor. The last line is "N passed, N failed".
#   usage: check-commits.sh [BASE]
set -euo pipefail
base=${1:-c4154b68f042eed4e1653d84cf01596b6829d20c}
longest=72
# The first word of a subject is taken for a past form, an -ing form or a third person if it ends in
# -ed, -ing or -s, or is one of `past`. The words of `accepted` have such an ending but are
# imperatives, or begin subjects of commits that are older than this rule.
past=" Built Did Gave Kept Made Ran Said Sped Took Was Were Wrote "
accepted=" Bring Embed Exceed Feed Need Proceed Seed Shed Shred Speed Succeed Emulated Tests "
export LC_ALL=C.UTF-8

commits() {
    if git merge-base --is-ancestor "$base" HEAD 2>/dev/null; then
        git rev-list --no-merges "$base..HEAD"
    elif [ "$(git rev-parse --is-shallow-repository)" = true ]; then
        git rev-list --no-merges HEAD
    else
        return 1
    fi
}
is_imperative() { # usage: is_imperative WORD
    [[ $accepted == *" $1 "* ]] && return
    [[ ! $1 =~ ^[A-Z][a-z]*(ed|ing|[b-rtv-z]s)$ && $past != *" $1 "* ]]
}
# Prints the lines of a commit's body, without trailers such as "Signed-off-by: NAME".
reason() { # usage: reason COMMIT
    git show -s --format=%b "$1" | grep -vE '^([A-Z][a-z]+(-[a-z]+)+: .*|[[:space:]]*)$'
}
complaint() { # usage: complaint COMMIT SUBJECT
    [ ${#2} -le $longest ] || echo "a subject of ${#2} characters; at most $longest are allowed"
    local word=${2%%[ :,]*}
    is_imperative "$word" || echo "a subject that begins with '$word'; the imperative is wanted"
    reason "$1" >/dev/null || echo "no body; it says why"
}

passed=0 failed=0
if ! checked=$(commits); then
    echo "$base is no ancestor of HEAD, so no commit can be checked"
    failed=1
fi
for commit in $checked; do
    subject=$(git show -s --format=%s "$commit")
    if complaints=$(complaint "$commit" "$subject") && [ -z "$complaints" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        sed "s/^/$(git rev-parse --short "$commit"): /" <<<"$complaints"
        echo "    $subject"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
