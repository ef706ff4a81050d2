#!/bin/sh
# states.sh SOURCE [BUILD] - the two tables of a store's sender and reader in
# docs/concurrency-stores.md against those of src/store/state.c: each event, and the state after it
# from each state.
set -eu
export LC_ALL=C

cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A row of the array to a row of the page; its comment has the states' names.
sed -nE '
    s|^ */\* from: (.*) \*/$|event, \1|
    t row
    s/^ *\[DUE__(SENDER|READER)_(\w+)\] = \{ (.*) \},$/\2, \3/
    t row
    d
    : row
    s/, / | /g
    s/^.*$/| & |/p' src/store/state.c | tr 'A-Z_' 'a-z ' |
    sed ':again; s/| no |/| - |/; t again' >"$work/code"
grep -E '^\| (Event|fill|send|unanswered|anew|end|end rest|end followed|shown|again|rewritten) \|' \
    docs/concurrency-stores.md | tr 'A-Z' 'a-z' >"$work/page" || true
[ "$(wc -l <"$work/code")" -ge 12 ] || { echo "states: no tables in src/store/state.c" && exit 1; }
if ! diff -u "$work/code" "$work/page"; then
    echo "states: src/store/state.c (-) and docs/concurrency-stores.md (+) differ"
    exit 1
fi
