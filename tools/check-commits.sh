#!/bin/bash
# Checks that each commit has a subject of at most 72 characters and a body that says why. Commits
# up to BASE are not checked. In a shallow clone the script checks only the commits that the clone
# contains. If BASE is no ancestor, the script checks no commit. The last line is "N passed, N
# failed".
#   usage: check-commits.sh [BASE]
set -euo pipefail
base=${1:-c4154b68f042eed4e1653d84cf01596b6829d20c}
longest=72
export LC_ALL=C.UTF-8

commits() {
    if git merge-base --is-ancestor "$base" HEAD 2>/dev/null; then
        git rev-list --no-merges "$base..HEAD"
    elif [ "$(git rev-parse --is-shallow-repository)" = true ]; then
        git rev-list --no-merges HEAD
    fi
}
# Prints the lines of a commit's body, without trailers such as "Signed-off-by: NAME".
reason() { # usage: reason COMMIT
    git show -s --format=%b "$1" | grep -vE '^([A-Z][a-z]+(-[a-z]+)+: .*|[[:space:]]*)$'
}
complaint() { # usage: complaint COMMIT SUBJECT
    [ ${#2} -le $longest ] || echo "a subject of ${#2} characters; at most $longest are allowed"
    reason "$1" >/dev/null || echo "no body; it says why"
}

passed=0 failed=0
for commit in $(commits); do
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
