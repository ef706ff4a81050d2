#!/bin/sh
# words.sh SOURCE [BUILD] - the table of changes of a job's word in docs/concurrency.md against that
# of src/mem/word.c: from, to, what else may change, when.
set -eu
export LC_ALL=C

cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One entry of the array to a line, its comment before it, in the words of the page.
sed -n '/clang-format off/,/clang-format on/p' src/mem/word.c | tr -s '\n ' '  ' |
    sed 's/\[DUE__/\n[DUE__/g; s|/\*|\n/*|g' | tr 'A-Z' 'a-z' |
    sed -nE '
        s|^/\* (.*) \*/ *$|\1|
        t keep
        /^\[due__[a-z]*\] = \{/ { s/^\[due__([a-z]*)\].*/from \1/p; d; }
        s/^\[due__([a-z]*)\] = may *([^,]*),.*/to \1 \2/p
        d
        : keep
        s/^/when /p' |
    awk '
        $1 == "from" { from = $2 }
        $1 == "when" { sub(/^when /, ""); when = $0 }
        $1 == "to" {
            n = split($0, part, / *\| */)
            changes = ""
            for (i = 2; i <= n; i++) {
                sub(/ *$/, "", part[i])
                sub(/^restamp/, "stamp", part[i])
                sub(/^renew/, "generation", part[i])
                sub(/^set\(/, "+", part[i])
                sub(/^clear\(/, "-", part[i])
                sub(/\)$/, "", part[i])
                changes = changes (i > 2 ? ", " : "") "`" part[i] "`"
            }
            print "| `" from "` | `" $2 "` | " changes " | " when " |"
        }' >"$work/code"
sed -n '/^| From | To | What else may change | When |$/,/^$/p' docs/concurrency.md |
    grep '^| `' | tr 'A-Z' 'a-z' >"$work/page" || true
[ "$(wc -l <"$work/code")" -ge 30 ] || { echo "words: no table in src/mem/word.c" && exit 1; }
if ! diff -u "$work/code" "$work/page"; then
    echo "words: src/mem/word.c (-) and docs/concurrency.md (+) differ"
    exit 1
fi
